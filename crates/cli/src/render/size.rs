//! Bytes for people: powers of 1024, three decimals, as restic prints them.

/// `838 B`, `1.031 KiB`, `20.643 GiB`.
#[allow(clippy::cast_precision_loss, reason = "three decimals are shown")]
pub(crate) fn size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| bytes >> shift > 0) {
        Some((shift, unit)) => format!("{:.3} {unit}", bytes as f64 / (1u64 << shift) as f64),
        None => format!("{bytes} B"),
    }
}

/// Bytes gained or lost: `3.023 KiB (3096 bytes)`.
pub(crate) fn exact(bytes: i64) -> String {
    let sign = if bytes < 0 { "-" } else { "" };
    format!("{sign}{} ({bytes} bytes)", size(bytes.unsigned_abs()))
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
        assert_eq!(size(5 << 40), "5.000 TiB");
        assert_eq!(size(u64::MAX), "16777216.000 TiB");
    }
}
