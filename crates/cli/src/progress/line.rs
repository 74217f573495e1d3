//! The lines that are drawn on a terminal while work goes on, each cut to its width.
//!
//! ```text
//! [0:29] 42.10%  54.7 MiB/s  681.0 MiB / 1.6 GiB  2580 / 5307 files  ETA 0:17
//!        120.3 MiB duplicates  2 errors  sent 9.000 MiB, received 838 B
//!        /home/me/photos/2026/summer.jpg
//! ```
//! The second is there where it has something to say, the third where the work comes to files one after another. Once a
//! backup's snapshot stands and what it replaced is moved, a single line shows that: `[0:41] settling older snapshots
//! 12.0 MiB / 40.0 MiB`.

use super::{Counts, rate::Rate};
use crate::render::{brief, clock, counted, plural, shortened};
use std::time::Duration;

/// Blanks before the lines below the first.
const INDENT: usize = 7;

/// A reading of the counters, as it is shown.
pub(super) struct Reading<'r> {
    /// Noun for what is counted as files, in the singular.
    pub(super) noun: &'static str,
    pub(super) counts: &'r Counts,
    pub(super) elapsed: Duration,
    pub(super) rate: &'r Rate,
}

impl Reading<'_> {
    /// The lines for a terminal of this width; `current` is the entry that the work has come to.
    pub(super) fn lines(&self, current: Option<&str>, columns: usize) -> String {
        // A line as wide as the terminal would be followed by an empty one.
        let room = columns.saturating_sub(1);
        let mut lines = vec![shortened(&self.main(), room)];
        if !self.settles() {
            let details = self.details();
            let below = details.iter().map(String::as_str).chain(current);
            lines.extend(below.map(|line| " ".repeat(INDENT) + &shortened(line, room.saturating_sub(INDENT))));
        }
        lines.join("\n")
    }

    /// All in one line, for who asked once.
    pub(super) fn line(&self) -> String {
        [Some(self.main()), self.details()].into_iter().flatten().collect::<Vec<_>>().join("  ")
    }

    fn settles(&self) -> bool {
        self.counts.bytes_to_settle > 0
    }

    fn main(&self) -> String {
        let Counts { files_total, bytes_total, files_done, bytes_done, .. } = *self.counts;
        let began = clock(self.elapsed);
        if self.settles() {
            let [done, total] = [self.counts.bytes_settled, self.counts.bytes_to_settle].map(brief);
            return format!("[{began}] settling older snapshots  {done} / {total}");
        }
        let speed = match self.rate.bytes_per_second() {
            0 => String::new(),
            rate => format!("  {}/s", brief(rate)),
        };
        if !self.counts.is_total_known {
            let seen = match files_total {
                0 => String::new(),
                total => format!("  (found {}, {} so far)", counted(total, self.noun), brief(bytes_total)),
            };
            return format!("[{began}]{speed}  {}  {}{seen}", brief(bytes_done), counted(files_done, self.noun));
        }
        let (bytes, files) = (brief(bytes_done), files_done);
        let total = format!("{} / {files_total} {}", files, plural(files_total, self.noun));
        let eta = self.rate.remaining(self.counts).map(|left| format!("  ETA {}", clock(left))).unwrap_or_default();
        format!("[{began}] {:.2}%{speed}  {bytes} / {}  {total}{eta}", percent(self.counts), brief(bytes_total))
    }

    /// Text that only some work has; `None` if there is none.
    fn details(&self) -> Option<String> {
        let Counts { bytes_duplicate, problems, transfer, .. } = *self.counts;
        let parts = [
            (bytes_duplicate > 0).then(|| format!("{} duplicates", brief(bytes_duplicate))),
            (problems > 0).then(|| counted(problems, "error")),
            transfer.text(),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("  "))
    }
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
    use unicode_width::UnicodeWidthStr;

    fn line(counts: &Counts, seconds: u64, rate: &Rate) -> String {
        Reading { noun: "file", counts, elapsed: Duration::from_secs(seconds), rate }.line()
    }

    #[test]
    fn without_a_total_no_percentage_is_claimed() {
        let counts = Counts { files_done: 1, bytes_done: 2048, files_total: 7, bytes_total: 9000, ..Counts::default() };
        assert_eq!(line(&counts, 5, &Rate::default()), "[0:05]  2.0 KiB  1 file  (found 7 files, 8.8 KiB so far)");
    }

    #[test]
    fn with_a_total_percentage_and_time_left_show() {
        let mut rate = Rate::default();
        rate.sample(Duration::ZERO, 0);
        rate.sample(Duration::from_secs(2), 2048);
        let totals = Counts { files_total: 8, bytes_total: 4096, is_total_known: true, ..Counts::default() };
        let counts = Counts { files_done: 3, bytes_done: 2048, problems: 2, ..totals };
        let expected = "[0:02] 50.00%  1.0 KiB/s  2.0 KiB / 4.0 KiB  3 / 8 files  ETA 0:02  2 errors";
        assert_eq!(line(&counts, 2, &rate), expected);
    }

    #[test]
    fn duplicates_errors_and_what_went_over_the_network_show() {
        let transfer = Transfer::new(2048, 1);
        let counts = Counts { transfer, problems: 1, bytes_duplicate: 1024, ..Counts::default() };
        let expected = "[0:00]  0 B  0 files  1.0 KiB duplicates  1 error  sent 2.000 KiB, received 1 B";
        assert_eq!(line(&counts, 0, &Rate::default()), expected);
    }

    #[test]
    fn what_is_settled_afterwards_shows_alone() {
        let counts = Counts { bytes_settled: 1024, bytes_to_settle: 4096, problems: 1, ..Counts::default() };
        let reading = Reading { noun: "file", counts: &counts, elapsed: Duration::ZERO, rate: &Rate::default() };
        assert_eq!(reading.lines(Some("/a"), 80), "[0:00] settling older snapshots  1.0 KiB / 4.0 KiB");
    }

    #[test]
    fn each_line_fits_the_terminal() {
        let totals = Counts { files_total: 3_000_000, bytes_total: 1 << 43, is_total_known: true, ..Counts::default() };
        let counts = Counts { transfer: Transfer::new(1 << 40, 1 << 39), bytes_duplicate: 1 << 40, ..totals };
        let mut rate = Rate::default();
        rate.sample(Duration::ZERO, 0);
        rate.sample(Duration::from_secs(1), 1 << 29);
        let reading = Reading { noun: "file", counts: &counts, elapsed: Duration::from_secs(40_000), rate: &rate };
        let path = "/home/somebody/".to_owned() + &"\u{4e2d}\u{6587}/".repeat(40) + "end.txt";
        for columns in [1, 20, 40, 80, 120] {
            let lines = reading.lines(Some(&path), columns);
            assert_eq!(lines.lines().count(), 3, "{lines}");
            assert!(lines.lines().all(|line| line.width() <= columns.max(10)), "{columns}: {lines}");
        }
        assert!(reading.lines(Some(&path), 80).ends_with("/end.txt"));
    }

    #[test]
    fn work_of_no_bytes_goes_by_files() {
        let counts = Counts { files_done: 1, files_total: 4, is_total_known: true, ..Counts::default() };
        assert!(line(&counts, 0, &Rate::default()).contains(" 25.00%"));
        let nothing = Counts { is_total_known: true, ..Counts::default() };
        assert!(line(&nothing, 0, &Rate::default()).contains(" 100.00%"));
    }
}
