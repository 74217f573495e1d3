//! Speed and time left, from the last half minute: the beginning of a run says little about its end.

use super::Counts;
use std::collections::VecDeque;
use std::time::Duration;

const WINDOW: Duration = Duration::from_secs(30);
/// Bound on the samples kept: one in 100 ms fills the window.
const SAMPLES_MAX: usize = 300;

/// Bytes done at moments past.
#[derive(Default)]
pub(super) struct Rate {
    samples: VecDeque<(Duration, u64)>,
}

impl Rate {
    /// Notes what is done by now.
    pub(super) fn sample(&mut self, elapsed: Duration, bytes_done: u64) {
        self.samples.push_back((elapsed, bytes_done));
        let is_old = |(at, _): &(Duration, u64)| elapsed.saturating_sub(*at) > WINDOW;
        while self.samples.len() > SAMPLES_MAX || (self.samples.len() > 2 && self.samples.front().is_some_and(is_old)) {
            self.samples.pop_front();
        }
    }

    /// Bytes per second; 0 as long as nothing is known.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate"
    )]
    pub(super) fn bytes_per_second(&self) -> u64 {
        let ends = self.samples.front().zip(self.samples.back());
        let Some(((began, first), (ended, last))) = ends else {
            return 0;
        };
        let seconds = ended.saturating_sub(*began).as_secs_f64();
        if seconds > 0.0 { (last.saturating_sub(*first) as f64 / seconds) as u64 } else { 0 }
    }

    /// How long the rest will take; `None` while the total or the speed is unknown.
    pub(super) fn remaining(&self, counts: &Counts) -> Option<Duration> {
        let rate = self.bytes_per_second();
        let left = counts.bytes_total.saturating_sub(counts.bytes_done);
        (counts.is_total_known && rate > 0).then(|| Duration::from_secs(left.div_ceil(rate)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_that_of_the_window() {
        let mut rate = Rate::default();
        assert_eq!(rate.bytes_per_second(), 0);
        for second in 0..100 {
            // A fast beginning, then 10 bytes a second.
            rate.sample(Duration::from_secs(second), if second < 5 { second * 1000 } else { 5000 + (second - 5) * 10 });
        }
        assert_eq!(rate.bytes_per_second(), 10);
        let counts = Counts { bytes_total: 6040, bytes_done: 5940, is_total_known: true, ..Counts::default() };
        assert_eq!(rate.remaining(&counts), Some(Duration::from_secs(10)));
        assert_eq!(rate.remaining(&Counts { is_total_known: false, ..counts }), None);
    }
}
