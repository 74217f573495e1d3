//! A point in time as `--time` takes it: `2012-11-01 22:08:41` in the local zone, RFC 3339, or `now`.

use crate::environment::store_time;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use siltstone_store::Time;

use std::str::FromStr;

/// A moment, as the store writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Moment(pub(crate) Time);

impl FromStr for Moment {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let moment = if text == "now" { Some(Timestamp::now()) } else { parse(text, &TimeZone::system()) };
        let expected = "expected a time such as '2012-11-01 22:08:41', '2012-11-01T22:08:41+01:00' or 'now'";
        moment.map(|moment| Self(store_time(moment))).ok_or(expected)
    }
}

fn parse(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let stamped = || text.parse::<Timestamp>().ok();
    let civil = text.parse::<DateTime>().or_else(|_| text.parse::<Date>().map(Date::into));
    let local = || civil.ok()?.to_zoned(zone.clone()).ok().map(|zoned: Zoned| zoned.timestamp());
    stamped().or_else(local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_times_and_stamped_ones() {
        let east = TimeZone::fixed(jiff::tz::offset(1));
        let seconds = |text| parse(text, &east).map(Timestamp::as_second);
        assert_eq!(seconds("1970-01-01 01:00:05"), Some(5));
        assert_eq!(seconds("1970-01-01T01:00:05"), Some(5));
        assert_eq!(seconds("1970-01-02"), Some(86_400 - 3600));
        assert_eq!(seconds("1970-01-01T00:00:05Z"), Some(5));
        assert_eq!(seconds("1970-01-01T02:00:05+02:00"), Some(5));
        assert_eq!(seconds("yesterday"), None);
        assert_eq!(seconds("2012-13-01 00:00:00"), None);
    }
}
