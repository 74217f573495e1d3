//! The two streams of the program: results and reports on standard output, warnings on standard error. Whatever text
//! goes through here can drive no terminal: names may come from anyone. JSON is for programs, and exact.

use crate::error::CliError;
use crate::render::{visible, visible_lines};
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use terminal_size::{Width, terminal_size_of};

/// How often `-v` is given for a log of what is done.
pub(crate) const VERBOSITY_OF_LOG: u8 = 2;

/// Form and amount of what is printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// JSON instead of text.
    pub(crate) json: bool,
    /// No reports, no progress.
    pub(crate) quiet: bool,
    /// 0, or how often `-v` was given.
    pub(crate) verbosity: u8,
}

#[allow(clippy::unused_self, reason = "one way to print")]
impl Output {
    /// A line of a report: left out when quiet, or when JSON is wanted.
    pub(crate) fn report(self, line: impl Display) -> Result<(), CliError> {
        if self.quiet || self.json { Ok(()) } else { self.line(line) }
    }

    /// A line that is (part of) what was asked for; never left out.
    pub(crate) fn line(self, line: impl Display) -> Result<(), CliError> {
        raw_line(&visible_lines(&line.to_string()))
    }

    /// One JSON value on a line of its own.
    pub(crate) fn json(self, value: &impl Serialize) -> Result<(), CliError> {
        let text = serde_json::to_string(value).map_err(|error| CliError::Output(error.into()))?;
        raw_line(&text)
    }

    /// Prints one JSON value, or a line where JSON is not wanted.
    pub(crate) fn json_or_line(self, value: &impl Serialize, line: impl Display) -> Result<(), CliError> {
        if self.json { self.json(value) } else { self.line(line) }
    }

    /// Prints one JSON value, or a line of a report where JSON is not wanted.
    pub(crate) fn json_or_report(self, value: &impl Serialize, line: impl Display) -> Result<(), CliError> {
        if self.json { self.json(value) } else { self.report(line) }
    }

    /// One JSON value on a line of standard error, beside a document on standard output.
    pub(crate) fn json_aside(self, value: &impl Serialize) {
        if let Ok(text) = serde_json::to_string(value) {
            error_line(&text);
        }
    }

    /// A warning, for a person: one line.
    pub(crate) fn warn(self, line: impl Display) {
        if !self.json {
            error_line(&visible(line.to_string().as_bytes()));
        }
    }

    /// Something that is wrong and does not end the command.
    pub(crate) fn error(self, message: impl Display) {
        let line = if self.json {
            serde_json::json!({ "message_type": "error", "error": { "message": message.to_string() } }).to_string()
        } else {
            format!("silt: {}", visible(message.to_string().as_bytes()))
        };
        error_line(&line);
    }

    /// Columns of the terminal that standard output is; `None` if it is none, where nothing is to be cut or wrapped.
    pub(crate) fn columns(self) -> Option<usize> {
        terminal_size_of(io::stdout()).map(|(Width(columns), _)| usize::from(columns)).filter(|columns| *columns > 0)
    }

    /// Tells whether a progress line can be drawn and is wanted.
    pub(crate) fn draws_progress(self) -> bool {
        !self.quiet && !self.json && self.verbosity < VERBOSITY_OF_LOG && io::stderr().is_terminal()
    }
}

fn raw_line(line: &str) -> Result<(), CliError> {
    writeln!(io::stdout().lock(), "{line}").map_err(CliError::Output)
}

/// A line on standard error. Nothing can be told to someone whose standard error is closed.
pub(crate) fn error_line(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Standard output for many lines; the caller flushes.
pub(crate) fn buffered() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}
