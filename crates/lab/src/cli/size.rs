//! A number of bytes such as `500`, `64k`, `512M` or `2GiB`: powers of 1024, as with `silt`.

/// Reads a size.
///
/// # Errors
/// A sentence that says what was expected.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let expected = || "expected a size such as 500, 64k, 512M or 2G".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| expected())?;
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return Err(expected()),
    };
    number.checked_mul(1 << shift).ok_or_else(|| "the size is too great".to_owned())
}

/// Reads an expected size of chunks.
pub(super) fn chunk_size(text: &str) -> Result<u32, String> {
    u32::try_from(size(text)?).map_err(|_| "the size is too great".to_owned())
}

/// Reads a size, as whole MiB.
pub(super) fn mebibytes(text: &str) -> Result<u64, String> {
    match size(text)? >> 20 {
        0 => Err("that is less than 1 MiB: give a unit, as in 4G".to_owned()),
        mebibytes => Ok(mebibytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_powers_of_1024() {
        assert_eq!(size("500"), Ok(500));
        assert_eq!(size("64k"), Ok(64 << 10));
        assert_eq!(size("8KiB"), Ok(8 << 10));
        assert_eq!(mebibytes("4G"), Ok(4096));
        assert_eq!(chunk_size("8K"), Ok(8192));
        for bad in ["", "k", "1.5k", "-1", "5x", "99999999999G", "5 M"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        assert!(mebibytes("4096").is_err() && chunk_size("4G").is_err());
    }
}
