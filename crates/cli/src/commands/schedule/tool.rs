//! Programs of the system that are asked: `systemctl`, `systemd-analyze`, `crontab`.

use std::io::{self, Write};
use std::process::{Command, Stdio};

/// A program did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    #[error("cannot start '{program}': {source}; is it installed?")]
    NotStarted { program: &'static str, source: io::Error },
    #[error("'{program} {arguments}' failed: {said}")]
    Failed { program: &'static str, arguments: String, said: String },
}

impl ToolError {
    /// Tells whether there is no such program.
    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::NotStarted { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Output of the program, if it ran.
    pub(super) fn said(&self) -> &str {
        match self {
            Self::Failed { said, .. } => said,
            Self::NotStarted { .. } => "",
        }
    }
}

/// Runs a program with this on its standard input, and returns what it prints.
pub(super) fn run(program: &'static str, arguments: &[&str], input: &str) -> Result<String, ToolError> {
    let not_started = |source| ToolError::NotStarted { program, source };
    let mut command = Command::new(program);
    // Messages are looked at, so they are to be in one language.
    command.args(arguments).env("LC_ALL", "C").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(not_started)?;
    if let Some(mut stdin) = child.stdin.take() {
        // It may end without having read everything; then its status tells.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(not_started)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said = if lines.is_empty() { output.status.to_string() } else { lines.join(" | ") };
    Err(ToolError::Failed { program, arguments: arguments.join(" "), said })
}
