//! A number of bytes such as `500`, `64K`, `512M` or `2GiB`: powers of 1024, as restic has it.

use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected a size such as 500, 64K, 512M or 2G";
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| EXPECTED)?;
        let unit = unit.to_ascii_lowercase();
        let shift = match unit.strip_suffix("ib").or_else(|| unit.strip_suffix('b')).unwrap_or(&unit) {
            "" if unit != "ib" => 0,
            "k" => 10,
            "m" => 20,
            "g" => 30,
            "t" => 40,
            _ => return Err(EXPECTED),
        };
        number.checked_mul(1 << shift).map(Self).ok_or("the size is too great")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_powers_of_1024() {
        let bytes = |text: &str| text.parse::<Size>().map(|size| size.0);
        assert_eq!(bytes("500"), Ok(500));
        assert_eq!(bytes("500b"), Ok(500));
        assert_eq!(bytes("64K"), Ok(64 << 10));
        assert_eq!(bytes("64KiB"), Ok(64 << 10));
        assert_eq!(bytes("512m"), Ok(512 << 20));
        assert_eq!(bytes("2G"), Ok(2 << 30));
        assert_eq!(bytes("1T"), Ok(1 << 40));
        for bad in ["", "G", "1.5G", "-1", "5x", "5ib", "99999999T", "5 M"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
