//! The two streams of the program: results and reports on standard output, warnings on standard error.

use crate::error::CliError;
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

/// What the user wants to see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// JSON instead of text.
    pub(crate) json: bool,
    /// No reports, no progress.
    pub(crate) quiet: bool,
    /// 0, or how often `-v` was given.
    pub(crate) verbosity: u8,
}

impl Output {
    /// A line of a report: left out when quiet, or when JSON is wanted.
    pub(crate) fn report(self, line: impl Display) -> Result<(), CliError> {
        if self.quiet || self.json { Ok(()) } else { self.line(line) }
    }

    /// A line that is (part of) what was asked for; never left out.
    #[allow(clippy::unused_self, reason = "one way to print")]
    pub(crate) fn line(self, line: impl Display) -> Result<(), CliError> {
        writeln!(io::stdout().lock(), "{line}").map_err(CliError::Output)
    }

    /// One JSON value on a line of its own.
    pub(crate) fn json(self, value: &impl Serialize) -> Result<(), CliError> {
        let text = serde_json::to_string(value).map_err(|error| CliError::Output(error.into()))?;
        self.line(text)
    }

    /// A warning, for a person.
    pub(crate) fn warn(self, line: impl Display) {
        if !self.json {
            // Nothing can be told to someone whose standard error is closed.
            let _ = writeln!(io::stderr().lock(), "{line}");
        }
    }

    /// Something that is wrong and does not end the command.
    pub(crate) fn error(self, message: impl Display) {
        let line = if self.json {
            serde_json::json!({ "message_type": "error", "error": { "message": message.to_string() } }).to_string()
        } else {
            format!("silt: {message}")
        };
        let _ = writeln!(io::stderr().lock(), "{line}");
    }

    /// Whether a progress line can be drawn and is wanted.
    pub(crate) fn draws_progress(self) -> bool {
        !self.quiet && !self.json && io::stderr().is_terminal()
    }
}

/// Standard output for many lines; the caller flushes.
pub(crate) fn buffered() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}
