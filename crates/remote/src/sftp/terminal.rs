//! The terminal, lent to a program in another process group for as long as it may ask for a password. Without that the
//! system stops a program that reads from a terminal which is not its own.

use nix::sys::signal::{SigSet, SigmaskHow, Signal, killpg};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};
use std::fs::File;

/// A terminal that is lent; it comes back when the value is dropped.
#[derive(Debug)]
pub(super) struct Lent {
    terminal: File,
    owner: Pid,
}

impl Lent {
    /// Lends the terminal to a process group; `None` where there is no terminal, or it is not ours to lend.
    pub(super) fn to(group: u32) -> Option<Self> {
        let terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
        let (owner, group) = (getpgrp(), Pid::from_raw(i32::try_from(group).ok()?));
        if tcgetpgrp(&terminal).ok()? != owner {
            return None;
        }
        tcsetpgrp(&terminal, group).ok()?;
        // It may have been stopped before the terminal was its own.
        let _ = killpg(group, Signal::SIGCONT);
        Some(Self { terminal, owner })
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // Who takes a terminal back from the background is sent this signal, which would stop him.
        let stop = SigSet::from(Signal::SIGTTOU);
        if let Ok(before) = stop.thread_swap_mask(SigmaskHow::SIG_BLOCK) {
            let _ = tcsetpgrp(&self.terminal, self.owner);
            let _ = before.thread_set_mask();
        }
    }
}
