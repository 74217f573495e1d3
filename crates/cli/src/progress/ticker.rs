//! A thread that does something at intervals until told to stop.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub(super) struct Ticker {
    stop: Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    pub(super) fn start(interval: Duration, mut tick: impl FnMut() + Send + 'static) -> Self {
        let (stop, stopped) = channel();
        let run = move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                tick();
            }
        };
        // Without the thread there is no progress to see, and the work goes on.
        let thread = thread::Builder::new().name("progress".into()).spawn(run).ok();
        Self { stop, thread }
    }

    /// Ends the thread and waits for it: no tick happens after this returns.
    pub(super) fn stop(self) {
        drop(self.stop);
        if let Some(thread) = self.thread {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn nothing_ticks_after_the_stop() {
        let ticks = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&ticks);
        let ticker = Ticker::start(Duration::from_millis(1), move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        while ticks.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        ticker.stop();
        let seen = ticks.load(Ordering::SeqCst);
        thread::sleep(Duration::from_millis(5));
        assert_eq!(ticks.load(Ordering::SeqCst), seen);
    }
}
