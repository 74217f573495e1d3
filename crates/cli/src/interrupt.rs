//! Ctrl-C, and the signals that ask a program to end. While the engine works, the first one is a request that the engine sees at
//! its next piece of work, so that it can release its lease; a second one, or one while nothing is at stake, ends the program.

use crate::error::EXIT_INTERRUPTED;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);
static WORKING: AtomicBool = AtomicBool::new(false);

/// Starts listening. Where that fails the signals keep their usual effect, which is safe: a kill at any moment is.
pub(crate) fn listen() {
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::Relaxed) || !WORKING.load(Ordering::Relaxed) {
            std::process::exit(i32::from(EXIT_INTERRUPTED));
        }
    });
}

/// Whether the user asked to stop.
pub(crate) fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// While it lives, the first signal only asks.
pub(crate) struct Working(());

impl Working {
    pub(crate) fn begin() -> Self {
        WORKING.store(true, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        WORKING.store(false, Ordering::Relaxed);
    }
}
