//! Stream through the pipeline: versions one after another, in memory, and no more of them than a run can take in a
//! short time.

use crate::data::Data;
use std::ops::Range;

/// Most that goes through, bytes: enough for some tenths of a second of the fastest, little enough for several
/// rounds of all. AE takes 3 GB of each data set (section 4.4).
const BYTES_MAX: usize = 128 << 20;
/// Most that goes through where all is to be quick, bytes.
const BYTES_MAX_QUICK: usize = 32 << 20;

/// Versions of something, oldest first.
#[derive(Clone, Debug)]
pub(super) struct Stream<'d> {
    pub(super) versions: Vec<&'d [u8]>,
}

impl<'d> Stream<'d> {
    /// As many of the first versions as a run takes; if that is not even two, what fits of the first two, half of it of
    /// each.
    pub(super) fn of(data: &'d Data, quick: bool) -> Self {
        let bytes_max = if quick { BYTES_MAX_QUICK } else { BYTES_MAX };
        Self { versions: chosen(&data.ranges(), bytes_max).into_iter().map(|range| &data.bytes[range]).collect() }
    }

    /// Returns the sum of their bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.versions.iter().map(|version| version.len() as u64).sum()
    }
}

fn chosen(versions: &[Range<usize>], bytes_max: usize) -> Vec<Range<usize>> {
    let fitting = versions.iter().take_while(|version| version.end <= bytes_max).count();
    if fitting >= versions.len().min(2) {
        return versions[..fitting].to_vec();
    }
    let first = &versions[..versions.len().min(2)];
    let share = bytes_max / first.len();
    first.iter().map(|version| version.start..version.end.min(version.start + share)).collect()
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)] // Versions are ranges.
mod tests {
    use super::chosen;

    #[test]
    fn whole_versions_are_taken_as_long_as_there_are_two() {
        assert_eq!(chosen(&[0..40, 40..80, 80..120], 100), [0..40, 40..80]);
        assert_eq!(chosen(&[0..40, 40..80], 100), [0..40, 40..80]);
        assert_eq!(chosen(&[0..40, 40..180, 180..190], 100), [0..40, 40..90]);
        assert_eq!(chosen(&[0..300, 300..310], 100), [0..50, 300..310]);
        assert_eq!(chosen(&[0..300], 100), [0..100]);
    }
}
