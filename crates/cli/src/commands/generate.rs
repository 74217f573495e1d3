//! `silt generate`: completion scripts for shells.

use super::Context;
use crate::args::Cli;
use crate::error::{CliError, Done};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Write completion scripts for shells (- for standard output)
#[derive(Args, Debug)]
#[group(required = true, multiple = true)]
#[allow(clippy::struct_field_names, reason = "they are the names of the options")]
pub(crate) struct GenerateArgs {
    /// For bash
    #[arg(long, value_name = "FILE")]
    bash_completion: Option<PathBuf>,
    /// For zsh
    #[arg(long, value_name = "FILE")]
    zsh_completion: Option<PathBuf>,
    /// For fish
    #[arg(long, value_name = "FILE")]
    fish_completion: Option<PathBuf>,
}

pub(super) fn run(arguments: &GenerateArgs, _: &Context) -> Result<Done, CliError> {
    let scripts = [
        (&arguments.bash_completion, Shell::Bash),
        (&arguments.zsh_completion, Shell::Zsh),
        (&arguments.fish_completion, Shell::Fish),
    ];
    for (file, shell) in scripts {
        if let Some(file) = file {
            write(file, &script(shell))?;
        }
    }
    Ok(Done::Whole)
}

fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "silt", &mut script);
    script
}

fn write(file: &Path, script: &[u8]) -> Result<(), CliError> {
    if file.as_os_str() == "-" {
        return std::io::stdout().lock().write_all(script).map_err(CliError::Output);
    }
    std::fs::write(file, script).map_err(|source| CliError::OutputFile { path: file.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_know_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let text = String::from_utf8(script(shell)).expect("text");
            assert!(text.contains("backup") && text.contains("restore"), "{shell}");
        }
    }
}
