//! A maker asked to stop does so before its next version, as if that had failed: what it began is removed, and servers
//! it started end. A signal that ended the process instead would leave both.

use anyhow::{Result, ensure};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static MAKERS: AtomicUsize = AtomicUsize::new(0);
static IS_ASKED: AtomicBool = AtomicBool::new(false);

/// Asks what is being made to stop, and whatever would be made from now on not to begin; says whether anything is being
/// made. For a handler of signals: if so, the process ends by itself within the time that a version takes.
pub fn stop() -> bool {
    IS_ASKED.store(true, Ordering::SeqCst);
    MAKERS.load(Ordering::SeqCst) > 0
}

/// Returns an error once [`stop`] was called.
pub(super) fn go_on() -> Result<()> {
    ensure!(!IS_ASKED.load(Ordering::SeqCst), "stopped, as asked; nothing unfinished is left");
    Ok(())
}

/// Something is being made until this is dropped.
pub(super) struct Making;

impl Making {
    pub(super) fn begin() -> Result<Self> {
        MAKERS.fetch_add(1, Ordering::SeqCst);
        let making = Self;
        go_on().map(|()| making)
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        MAKERS.fetch_sub(1, Ordering::SeqCst);
    }
}
