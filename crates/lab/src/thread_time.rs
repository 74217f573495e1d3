//! The processor time of a thread: what work in memory on one thread takes, whatever else the machine does. On a
//! machine at rest it is the time that goes by.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Processor time that this thread has taken.
pub(crate) fn taken() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Processor time that this thread takes for some work, seconds; and what comes of it.
pub(crate) fn of<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let begin = taken();
    let done = work();
    (taken().saturating_sub(begin).as_secs_f64(), done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_takes_no_processor_time() {
        let (seconds, ()) = of(|| std::thread::sleep(Duration::from_millis(60)));
        assert!(seconds < 0.03, "{seconds}");
        let (seconds, sum) = of(|| (0..3_000_000_u64).fold(0, |sum, number| std::hint::black_box(sum ^ number)));
        assert!(seconds > 0.0 && sum < 1 << 22, "{seconds}");
    }
}
