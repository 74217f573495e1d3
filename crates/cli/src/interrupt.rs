//! Signals. While the engine works, the first one that asks the program to end (Ctrl-C, SIGTERM, SIGHUP) is a request
//! that the engine sees at its next piece of work, so that it can release its lease; a second one, or one while nothing
//! is at stake, ends the program. SIGUSR1 asks how far the work is, and SIGINFO (Ctrl-T) where the system has it.

use crate::error::EXIT_INTERRUPTED;
#[cfg(any(target_os = "macos", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd"))]
use signal_hook::consts::SIGINFO;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag::{register, register_conditional_shutdown};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// True if the next signal ends the program where it stands.
static ENDS_AT_ONCE: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));
/// True while hooks are to run yet, which the first signal must not keep from it.
static HELD: AtomicBool = AtomicBool::new(false);
/// Signals that ask how far the work is.
const STATUS_SIGNALS: &[i32] = &[
    SIGUSR1,
    #[cfg(any(target_os = "macos", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd"))]
    SIGINFO,
];
/// Prints how far the work is, while there is any.
static STATUS: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// Starts listening. Where that fails the signals keep their usual effect, which is safe: a kill at any moment is.
pub(crate) fn listen() {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if !is_ignored(signal) {
            let _ = listen_to_end(signal);
        }
    }
    let _ = listen_for_status();
}

/// Handlers run in the order in which they are registered.
fn listen_to_end(signal: i32) -> io::Result<()> {
    register_conditional_shutdown(signal, i32::from(EXIT_INTERRUPTED), Arc::clone(&ENDS_AT_ONCE))?;
    register(signal, Arc::clone(&ENDS_AT_ONCE))?;
    register(signal, Arc::clone(&ASKED)).map(|_| ())
}

/// Without the thread nothing is printed, and the work goes on.
fn listen_for_status() -> io::Result<()> {
    let mut signals = Signals::new(STATUS_SIGNALS)?;
    let print = move || {
        for _ in signals.forever() {
            if let Some(print) = &*STATUS.lock().unwrap_or_else(PoisonError::into_inner) {
                print();
            }
        }
    };
    std::thread::Builder::new().name("status".into()).spawn(print).map(|_| ())
}

/// Tells whether whoever started the program wants it to outlive this signal, as `nohup` does.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let bits = ignored.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0);
    bits >> (signal - 1) & 1 != 0
}

/// Tells whether the user asked to stop.
pub(crate) fn is_asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// While it lives, the first signal only asks.
pub(crate) struct Working(());

impl Working {
    /// `status` prints how far the work is.
    pub(crate) fn begin(status: impl Fn() + Send + 'static) -> Self {
        *STATUS.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(status));
        ENDS_AT_ONCE.store(is_asked(), Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        *STATUS.lock().unwrap_or_else(PoisonError::into_inner) = None;
        ENDS_AT_ONCE.store(!HELD.load(Ordering::SeqCst) || is_asked(), Ordering::SeqCst);
    }
}

/// While it lives, the first signal only asks, also where the engine does no work.
pub(crate) struct Held(());

impl Held {
    pub(crate) fn begin() -> Self {
        HELD.store(true, Ordering::SeqCst);
        ENDS_AT_ONCE.store(is_asked(), Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.store(false, Ordering::SeqCst);
        ENDS_AT_ONCE.store(true, Ordering::SeqCst);
    }
}
