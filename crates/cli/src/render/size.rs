//! Bytes for people: powers of 1024, three decimals, as restic prints them.

use super::plural;

/// `838 B`, `1.031 KiB`, `20.643 GiB`.
#[allow(clippy::cast_precision_loss, reason = "three decimals are shown")]
pub(crate) fn size(bytes: u64) -> String {
    match unit(bytes) {
        Some((shift, unit)) => format!("{:.3} {unit}", bytes as f64 / (1u64 << shift) as f64),
        None => format!("{bytes} B"),
    }
}

/// Bytes at a glance, for what changes while one looks: `838 B`, `1.0 KiB`, `20.6 GiB`.
#[allow(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub(crate) fn brief(bytes: u64) -> String {
    match unit(bytes) {
        Some((shift, unit)) => format!("{:.1} {unit}", bytes as f64 / (1u64 << shift) as f64),
        None => format!("{bytes} B"),
    }
}

/// The largest unit that goes into so many bytes, by its power of two; `None` for bytes.
fn unit(bytes: u64) -> Option<(u32, &'static str)> {
    [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")].into_iter().find(|(shift, _)| bytes >> shift > 0)
}

/// Bytes gained or lost: `3.023 KiB (3096 bytes)`.
pub(crate) fn exact(bytes: i64) -> String {
    let sign = if bytes < 0 { "-" } else { "" };
    let unit = plural(bytes.unsigned_abs(), "byte");
    format!("{sign}{} ({bytes} {unit})", size(bytes.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_begins_at_its_power() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1056), "1.031 KiB");
        assert_eq!(size(1 << 20), "1.000 MiB");
        assert_eq!([brief(1023), brief(1056), brief(3 << 29)], ["1023 B", "1.0 KiB", "1.5 GiB"]);
        assert_eq!(size(5 << 40), "5.000 TiB");
        assert_eq!(size(u64::MAX), "16777216.000 TiB");
    }
}
