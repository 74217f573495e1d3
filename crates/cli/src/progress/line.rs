//! The line that is drawn on a terminal.

use super::{Counts, rate::Rate};
use crate::render::{clock, size};
use std::time::Duration;

/// `[0:29] 42.10%  54.700 MiB/s  681.000 MiB / 1.580 GiB  2580 / 5307 files  2 errors  sent 9.000 MiB, received 838 B
/// ETA 0:17`; without a total, what is done.
pub(super) fn text(counts: &Counts, elapsed: Duration, rate: &Rate) -> String {
    let began = clock(elapsed);
    let speed = format!("{}/s", size(rate.bytes_per_second()));
    let (files, bytes) = (counts.files_done, size(counts.bytes_done));
    let errors = match counts.problems {
        0 => String::new(),
        problems => format!("  {problems} errors"),
    };
    let transfer = counts.transfer.text().map_or_else(String::new, |text| format!("  {text}"));
    if !counts.is_total_known {
        let seen = match counts.files_total {
            0 => String::new(),
            total => format!("  (found {total} files, {} so far)", size(counts.bytes_total)),
        };
        return format!("[{began}]  {speed}  {bytes}  {files} files{errors}{transfer}{seen}");
    }
    let (files_total, bytes_total) = (counts.files_total, size(counts.bytes_total));
    let eta = rate.remaining(counts).map(|left| format!("  ETA {}", clock(left))).unwrap_or_default();
    let percent = percent(counts);
    let done = format!("{bytes} / {bytes_total}  {files} / {files_total} files");
    format!("[{began}] {percent:.2}%  {speed}  {done}{errors}{transfer}{eta}")
}

#[allow(clippy::cast_precision_loss, reason = "two decimals are shown")]
fn percent(counts: &Counts) -> f64 {
    100.0 * fraction(counts.bytes_done, counts.bytes_total, fraction(counts.files_done, counts.files_total, 1.0))
}

/// The done part, from 0 to 1; `empty` where there is nothing to do.
#[allow(clippy::cast_precision_loss, reason = "a share, shown with few digits")]
pub(super) fn fraction(done: u64, total: u64, empty: f64) -> f64 {
    if total == 0 { empty } else { (done as f64 / total as f64).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Transfer;

    #[test]
    fn without_a_total_no_percentage_is_claimed() {
        let counts = Counts { files_done: 3, bytes_done: 2048, files_total: 7, bytes_total: 9000, ..Counts::default() };
        let text = text(&counts, Duration::from_secs(5), &Rate::default());
        assert_eq!(text, "[0:05]  0 B/s  2.000 KiB  3 files  (found 7 files, 8.789 KiB so far)");
    }

    #[test]
    fn with_a_total_percentage_and_time_left_show() {
        let mut rate = Rate::default();
        rate.sample(Duration::ZERO, 0);
        rate.sample(Duration::from_secs(2), 2048);
        let totals = Counts { files_total: 8, bytes_total: 4096, is_total_known: true, ..Counts::default() };
        let counts = Counts { files_done: 3, bytes_done: 2048, problems: 2, ..totals };
        let text = text(&counts, Duration::from_secs(2), &rate);
        assert_eq!(text, "[0:02] 50.00%  1.000 KiB/s  2.000 KiB / 4.000 KiB  3 / 8 files  2 errors  ETA 0:02");
    }

    #[test]
    fn what_went_over_the_network_shows() {
        let counts = Counts { transfer: Transfer::new(2048, 1), ..Counts::default() };
        let text = text(&counts, Duration::ZERO, &Rate::default());
        assert_eq!(text, "[0:00]  0 B/s  0 B  0 files  sent 2.000 KiB, received 1 B");
    }

    #[test]
    fn work_of_no_bytes_goes_by_files() {
        let counts = Counts { files_done: 1, files_total: 4, is_total_known: true, ..Counts::default() };
        assert!(text(&counts, Duration::ZERO, &Rate::default()).contains(" 25.00%"));
        let nothing = Counts { is_total_known: true, ..Counts::default() };
        assert!(text(&nothing, Duration::ZERO, &Rate::default()).contains(" 100.00%"));
    }
}
