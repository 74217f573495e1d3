//! Ctrl-C, and the signals that ask a program to end. While a run lasts the first one asks to stop before the next method; a second
//! one, or one at any other time, ends the program. The journal is whole either way.

use super::EXIT_INTERRUPTED;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);
static MEASURING: AtomicBool = AtomicBool::new(false);

/// Starts listening. Where that fails the signals keep their usual effect, which is safe.
pub(super) fn listen() {
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::Relaxed) || !MEASURING.load(Ordering::Relaxed) {
            std::process::exit(i32::from(EXIT_INTERRUPTED));
        }
        eprintln!("\nstopping when this method is done; once more to stop at once");
    });
}

/// Whether the user asked to stop.
pub(super) fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// From here on the first signal only asks.
pub(super) fn measuring() {
    MEASURING.store(true, Ordering::Relaxed);
}
