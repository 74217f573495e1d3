//! How hard to compress: restic's words, or a level of zstd.

use siltstone_store::region::ZSTD_LEVEL_DEFAULT;
use std::str::FromStr;

/// A compression mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Compression {
    level: i32,
}

impl Compression {
    /// The level of zstd that stands for it.
    pub(crate) fn level(self) -> i32 {
        self.level
    }
}

impl Default for Compression {
    fn default() -> Self {
        Self { level: ZSTD_LEVEL_DEFAULT }
    }
}

/// zstd's least level: it looks for next to no matches and codes no literals, so that nearly every region is stored as
/// it is.
const OFF: i32 = -131_072;
const FASTEST: i32 = 1;
const BETTER: i32 = 9;
const MAX: i32 = 19;
const LEVELS: std::ops::RangeInclusive<i32> = -7..=22;

impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let level = match text {
            "off" => OFF,
            "fastest" => FASTEST,
            "auto" => ZSTD_LEVEL_DEFAULT,
            "better" => BETTER,
            "max" => MAX,
            number => number.parse().ok().filter(|level| LEVELS.contains(level) && *level != 0).ok_or_else(|| {
                format!(
                    "expected off, fastest, auto, better, max, or a level from {} to {} but 0",
                    LEVELS.start(),
                    LEVELS.end()
                )
            })?,
        };
        Ok(Self { level })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_levels() {
        let level = |text: &str| text.parse::<Compression>().map(Compression::level);
        assert_eq!(level("auto"), Ok(ZSTD_LEVEL_DEFAULT));
        assert_eq!(level("max"), Ok(19));
        assert_eq!(level("12"), Ok(12));
        assert_eq!(level("-5"), Ok(-5));
        for bad in ["", "0", "23", "Auto", "3.5"] {
            assert!(level(bad).is_err(), "{bad}");
        }
    }
}
