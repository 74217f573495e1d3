//! PAX records (POSIX 1003.1, `pax`, "Extended Header"), and the numbers in headers and records.

use siltstone_store::Time;

/// Records that stand before a member, or before all that follow.
#[derive(Clone, Default, Debug)]
pub(super) struct Records(Vec<(Vec<u8>, Vec<u8>)>);

impl Records {
    /// No records.
    pub(super) const fn none() -> Self {
        Self(Vec::new())
    }

    /// Reads the body of an extended header; `None` if it is malformed. A value may hold any bytes, ends of lines
    /// included: the length of the record counts.
    pub(super) fn parse(mut body: &[u8]) -> Option<Self> {
        let mut records = Vec::new();
        while body.first().is_some_and(|&byte| byte != 0) {
            let space = body.iter().take(20).position(|&byte| byte == b' ')?;
            let (digits, _) = body.split_at(space);
            let bytes: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
            let (record, rest) = body.split_at_checked(bytes)?;
            let record = record.get(space + 1..)?.strip_suffix(b"\n")?;
            let equals = record.iter().position(|&byte| byte == b'=')?;
            let (key, value) = record.split_at(equals);
            records.push((key.to_vec(), value.get(1..)?.to_vec()));
            body = rest;
        }
        Some(Self(records))
    }

    /// Takes over records that hold from here on.
    pub(super) fn merge(&mut self, later: Self) {
        for (key, value) in later.0 {
            self.0.retain(|(before, _)| *before != key);
            self.0.push((key, value));
        }
    }

    /// The last value of a key. An empty one stands for none: what the header says holds.
    pub(super) fn get(&self, key: &str) -> Option<&[u8]> {
        let last = self.0.iter().rev().find(|(found, _)| found == key.as_bytes());
        last.map(|(_, value)| value.as_slice())
    }

    /// All records in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(key, value)| (key.as_slice(), value.as_slice()))
    }

    /// Bytes of memory that they take, about.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.0.iter().map(|(key, value)| (key.len() + value.len() + 64) as u64).sum()
    }
}

/// A number of a record.
pub(super) fn decimal<T: std::str::FromStr>(value: &[u8]) -> Option<T> {
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

/// A moment of a record: seconds since 1970 with a fraction, before it with a minus sign. Digits beyond nanoseconds are
/// dropped towards the past.
pub(super) fn moment(value: &[u8]) -> Option<Time> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let (is_before, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let (kept, dropped) = fraction.split_at(fraction.len().min(9));
    let parts: i128 = format!("{kept:0<9}").parse().ok()?;
    let sum = whole.checked_mul(1_000_000_000)?.checked_add(parts)?;
    let is_rounded = is_before && dropped.bytes().any(|byte| byte != b'0');
    let sum = if is_before { -sum - i128::from(is_rounded) } else { sum };
    Some(Time {
        seconds: i64::try_from(sum.div_euclid(1_000_000_000)).ok()?,
        nanoseconds: u32::try_from(sum.rem_euclid(1_000_000_000)).ok()?,
    })
}

/// A number of a header: octal digits, or binary with the first bit set (two's complement after it). A blank field is
/// zero.
pub(super) fn number(field: &[u8]) -> Option<i64> {
    let (&first, rest) = field.split_first()?;
    if first & 0x80 != 0 {
        // The marking bit is replaced by the sign, which is the bit below it.
        let begin = if first & 0x40 != 0 { i128::from(first) - 0x100 } else { i128::from(first & 0x3f) };
        let wide = rest.iter().try_fold(begin, |sum, &byte| sum.checked_mul(256)?.checked_add(byte.into()))?;
        return i64::try_from(wide).ok();
    }
    let text: &[u8] = field.split(|&byte| byte == 0).next().unwrap_or_default();
    let text = std::str::from_utf8(text).ok()?.trim();
    if text.is_empty() { Some(0) } else { i64::from_str_radix(text, 8).ok().filter(|&number| number >= 0) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_hold_ends_of_lines_and_equals_signs() {
        let records = Records::parse(b"12 path=a\nb\n15 comment=x=y\n\0\0\0").unwrap();
        let found: Vec<_> = records.iter().collect();
        assert_eq!(found, [(&b"path"[..], &b"a\nb"[..]), (b"comment", b"x=y")]);
    }

    #[test]
    fn the_last_of_equal_keys_holds() {
        let mut records = Records::parse(b"8 a=one\n").unwrap();
        records.merge(Records::parse(b"8 a=two\n8 b=ten\n").unwrap());
        assert_eq!(
            (records.get("a"), records.get("b"), records.get("c")),
            (Some(&b"two"[..]), Some(&b"ten"[..]), None)
        );
    }

    #[test]
    fn malformed_records_are_refused() {
        let bodies: [&[u8]; 7] =
            [b"9 a=one\n", b"8 a=one", b"x a=one\n", b" a=one\n", b"8 aaone\n", b"3 a\n", b"99999 a=b\n"];
        for body in bodies {
            assert!(Records::parse(body).is_none(), "{}", body.escape_ascii());
        }
    }

    #[test]
    fn moments_lie_on_both_sides_of_1970() {
        let cases: [(&str, i64, u32); 8] = [
            ("0", 0, 0),
            ("5.000000001", 5, 1),
            ("-1", -1, 0),
            ("-0.5", -1, 500_000_000),
            ("-1.999999999", -2, 1),
            ("1.9999999999", 1, 999_999_999),
            ("-1.0000000001", -2, 999_999_999),
            ("-9223372036854775807.000000001", i64::MIN, 999_999_999),
        ];
        for (text, seconds, nanoseconds) in cases {
            assert_eq!(moment(text.as_bytes()), Some(Time { seconds, nanoseconds }), "{text}");
        }
        for bad in ["", "-", ".", "1.x", "1e9", "--1", "99999999999999999999"] {
            assert_eq!(moment(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn numbers_are_octal_or_binary() {
        let minus_two = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe];
        let large = [0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0];
        let cases: [(&[u8], Option<i64>); 9] = [
            (b"0000644\0", Some(0o644)),
            (b"    755 ", Some(0o755)),
            (b"\0\0\0\0", Some(0)),
            (b"77777777777", Some(0o77_777_777_777)),
            (&minus_two, Some(-2)),
            (&large, Some(2 << 32)),
            (b"9", None),
            (b"-7", None),
            (&[0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], None),
        ];
        for (field, expected) in cases {
            assert_eq!(number(field), expected, "{}", field.escape_ascii());
        }
    }
}
