//! A token bucket that is told the time: it fills at a rate, holds what comes in [`SAVED_MAX`], and may be overdrawn,
//! for which who comes next waits. It is kept as the moment at which it will be even, as in the "virtual scheduling"
//! form of the generic cell rate algorithm (ITU-T I.371).

use std::time::Duration;

/// Time without traffic that is made up for later: timers wake some milliseconds late.
const SAVED_MAX: Duration = Duration::from_millis(100);
const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// See the module.
#[derive(Debug)]
pub(super) struct Pace {
    bytes_per_second: u64,
    /// Moment at which all bytes taken until now will have passed at the rate.
    even_at: Duration,
}

impl Pace {
    /// A bucket that fills at this rate, which is above 0.
    pub(super) fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second: bytes_per_second.max(1), even_at: Duration::ZERO }
    }

    /// Takes bytes at a moment and returns the time until they may pass. Moments do not go back.
    pub(super) fn take(&mut self, now: Duration, bytes: u64) -> Duration {
        let begin = self.even_at.max(now.saturating_sub(SAVED_MAX));
        self.even_at = begin.saturating_add(self.time_of(bytes));
        begin.saturating_sub(now)
    }

    /// The time in which bytes pass at the rate.
    fn time_of(&self, bytes: u64) -> Duration {
        let nanos = u128::from(bytes) * NANOS_PER_SECOND / u128::from(self.bytes_per_second);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes pieces one after the other, each as soon as the one before has passed and a timer has woken late by
    /// `late`; returns the moment at which the last one has passed.
    fn passed(rate: u64, pieces: u64, bytes: u64, late: Duration) -> Duration {
        let mut pace = Pace::new(rate);
        (0..pieces).fold(Duration::ZERO, |now, _| {
            let wait = pace.take(now, bytes);
            if wait.is_zero() { now } else { now + wait + late }
        })
    }

    #[test]
    fn a_stream_of_pieces_has_the_rate_whatever_the_size_of_a_piece() {
        for bytes in [1000, 10_000, 100_000] {
            let took = passed(1_000_000, 10_000_000 / bytes, bytes, Duration::ZERO);
            assert_eq!(
                took,
                Duration::from_nanos(10_000_000_000 - bytes * 1000),
                "the last piece has no wait behind it"
            );
        }
    }

    #[test]
    fn late_timers_cost_nothing() {
        let took = passed(1_000_000, 1000, 10_000, Duration::from_millis(3));
        assert!(took < Duration::from_millis(10_005), "{took:?}");
    }

    #[test]
    fn two_connections_share_the_rate() {
        let mut pace = Pace::new(1000);
        let waits = [0, 0, 0, 0].map(|now| pace.take(Duration::from_secs(now), 500).as_millis());
        assert_eq!(waits, [0, 500, 1000, 1500]);
    }

    #[test]
    fn a_pause_saves_little() {
        let mut pace = Pace::new(1000);
        assert_eq!(pace.take(Duration::from_hours(1), 1000), Duration::ZERO);
        assert_eq!(pace.take(Duration::from_hours(1), 1000), Duration::from_millis(900));
    }

    #[test]
    fn numbers_of_any_size_are_borne() {
        for rate in [0, 1, u64::MAX] {
            let mut pace = Pace::new(rate);
            for bytes in [0, 1, u64::MAX, u64::MAX] {
                pace.take(Duration::MAX, bytes);
            }
        }
    }
}
