//! Retries: the number of times a request is made, and the time between.
//!
//! The waits grow by two and are drawn at random below their bound ("full jitter", Brooker, AWS Architecture Blog,
//! 2015), so that clients which failed together do not come back together.

use std::time::{Duration, Instant};

/// The budget of one call: the tries, the waits between them, and the time after which none follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Retries {
    /// Tries of a request, the first one included; at least 1.
    pub tries: u32,
    /// Bound of the first wait.
    pub first_wait: Duration,
    /// Greatest bound of a wait.
    pub wait_max: Duration,
    /// Time since the first failure after which no other try begins: a try may take long where the rate is limited.
    pub budget: Duration,
    /// Time without a byte after which a request is given up.
    pub silence: Duration,
}

impl Default for Retries {
    /// Twelve tries within three minutes: the waits are 30 seconds on average, a minute at most.
    fn default() -> Self {
        Self {
            tries: 12,
            first_wait: Duration::from_millis(100),
            wait_max: Duration::from_secs(10),
            budget: Duration::from_mins(3),
            silence: Duration::from_secs(30),
        }
    }
}

impl Retries {
    /// Returns this budget with this number of tries, and waits of at most this time.
    #[must_use]
    pub fn with_tries(mut self, tries: u32, wait_max: Duration) -> Self {
        self.tries = tries.max(1);
        self.first_wait = self.first_wait.min(wait_max);
        self.wait_max = wait_max;
        self
    }

    /// Returns this budget with this time of silence.
    #[must_use]
    pub fn with_silence(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// The bound of the wait after this number of tries.
    fn bound(&self, made: u32) -> Duration {
        let doubled = self.first_wait.saturating_mul(1u32.checked_shl(made.saturating_sub(1)).unwrap_or(u32::MAX));
        doubled.min(self.wait_max)
    }
}

/// The tries of one call.
#[derive(Debug)]
pub(crate) struct Tries {
    retries: Retries,
    made: u32,
    /// Moment of the first failure.
    failed: Option<Instant>,
}

impl Tries {
    pub(crate) fn new(retries: Retries) -> Self {
        Self { retries, made: 0, failed: None }
    }

    /// Waits for the next try after a failed one; `false`, at once, if the budget is spent.
    pub(crate) async fn again(&mut self) -> bool {
        self.made += 1;
        let failed = *self.failed.get_or_insert_with(Instant::now);
        if self.made >= self.retries.tries || failed.elapsed() >= self.retries.budget {
            return false;
        }
        tokio::time::sleep(drawn_below(self.retries.bound(self.made))).await;
        true
    }

    /// The number of tries that failed.
    pub(crate) fn made(&self) -> u32 {
        self.made
    }
}

/// A random time below this one; the time itself where the system has no random numbers.
fn drawn_below(bound: Duration) -> Duration {
    let share = getrandom::u32().map_or(1.0, |drawn| f64::from(drawn) / f64::from(u32::MAX));
    bound.mul_f64(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_their_bound() {
        let retries = Retries::default();
        let bounds: Vec<u128> = (1..=9).map(|made| retries.bound(made).as_millis()).collect();
        assert_eq!(bounds, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(retries.bound(u32::MAX), retries.wait_max);
    }
}
