//! The log of what is done to the repository, for `-vv`: a line on standard error for each call to the storage, commit,
//! password hashed and index opened, with the seconds since the program began. With `--json` each line is a document,
//! and has the time of day.

use crate::output::{Output, VERBOSITY_OF_LOG};
use std::io::{self, IsTerminal};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::time::uptime;

/// Starts the log, if it is wanted.
pub(crate) fn listen(output: Output) {
    if output.verbosity < VERBOSITY_OF_LOG {
        return;
    }
    let lines = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::DEBUG)
        .with_writer(io::stderr)
        .with_target(false)
        .with_thread_names(true);
    if output.json {
        lines.json().flatten_event(true).init();
    } else {
        lines.with_timer(uptime()).with_ansi(io::stderr().is_terminal()).init();
    }
}
