//! Ctrl-C, and the signals that ask a program to end. While a run lasts the first one asks to stop before the next
//! method, while a corpus is made before its next version; a second one, or one at any other time, ends the program.
//! The journal is whole either way.

use super::EXIT_INTERRUPTED;
use siltstone_testbed::corpus;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);
static MEASURING: AtomicBool = AtomicBool::new(false);

/// Starts listening. Where that fails the signals keep their usual effect, which is safe.
pub(super) fn listen() {
    let _ = ctrlc::set_handler(|| {
        let (was_asked, is_making) = (ASKED.swap(true, Ordering::Relaxed), corpus::stop());
        if was_asked || !(is_making || MEASURING.load(Ordering::Relaxed)) {
            std::process::exit(i32::from(EXIT_INTERRUPTED));
        }
        let what = if is_making { "version" } else { "method" };
        eprintln!("\nstopping when this {what} is done; once more to stop at once");
    });
}

/// Tells whether the user asked to stop.
pub(super) fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// From here on the first signal only asks.
pub(super) fn measuring() {
    MEASURING.store(true, Ordering::Relaxed);
}
