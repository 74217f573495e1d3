//! Moments, in the zone of this machine.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use siltstone_store::Time;

/// `2015-05-08 21:38:30`.
pub(crate) fn local(time: Time) -> String {
    zoned(time, TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// `2015-05-08T21:38:30.123456789+02:00`.
pub(crate) fn rfc3339(time: Time) -> String {
    stamped(time, TimeZone::system())
}

fn stamped(time: Time, zone: TimeZone) -> String {
    zoned(time, zone).strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string()
}

/// Moments that no calendar holds become its first or last.
fn zoned(time: Time, zone: TimeZone) -> Zoned {
    let nanoseconds = i32::try_from(time.nanoseconds).unwrap_or(0);
    let edge = if time.seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::new(time.seconds, nanoseconds).unwrap_or(edge).to_zoned(zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_show_as_far_as_they_go() {
        let east = || TimeZone::fixed(jiff::tz::offset(2));
        let text = |seconds, nanoseconds| stamped(Time { seconds, nanoseconds }, east());
        assert_eq!(text(0, 0), "1970-01-01T02:00:00+02:00");
        assert_eq!(text(0, 120_000_000), "1970-01-01T02:00:00.12+02:00");
        assert_eq!(text(-1, 999_999_999), "1970-01-01T01:59:59.999999999+02:00");
        assert!(text(i64::MAX, 0).starts_with("9999-12-3"));
    }
}
