//! The log of what is done to the repository, for `-vv`: a line on standard error for each call to the storage, commit,
//! password hashed and index opened, with the seconds since the program began. With `--json` each line is a document,
//! and has the time of day. A server logs each request without being asked to.

use crate::output::{Output, VERBOSITY_OF_LOG};
use std::io::{self, IsTerminal};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::time::uptime;

/// Starts the log, if it is wanted; that of a server is, unless it is to be quiet.
pub(crate) fn listen(output: Output, serves: bool) {
    let is_detailed = output.verbosity >= VERBOSITY_OF_LOG;
    if !is_detailed && (!serves || output.quiet) {
        return;
    }
    let lines = tracing_subscriber::fmt()
        .with_max_level(if is_detailed { LevelFilter::DEBUG } else { LevelFilter::INFO })
        .with_writer(io::stderr)
        .with_target(false)
        .with_thread_names(true);
    if output.json {
        lines.json().flatten_event(true).init();
    } else {
        lines.with_timer(uptime()).with_ansi(io::stderr().is_terminal()).init();
    }
}
