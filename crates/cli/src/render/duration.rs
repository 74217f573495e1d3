//! Durations as a clock shows them.

use std::time::Duration;

/// `0:29`, `12:05`, `1:02:03`.
pub(crate) fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Seconds with their fraction, for JSON.
pub(crate) fn seconds(milliseconds: u64) -> f64 {
    Duration::from_millis(milliseconds).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_show_only_where_there_are_any() {
        let text = |seconds| clock(Duration::from_secs(seconds));
        assert_eq!([text(0), text(29), text(725), text(3723)], ["0:00", "0:29", "12:05", "1:02:03"]);
    }
}
