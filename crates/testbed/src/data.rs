//! The data that is cut, whole in memory: random, real, of low entropy. One set at a time, none above 1.6 GB.

use crate::archive;
use crate::corpus::content::Content;
use crate::corpus::{self, Amount, Corpora, Corpus};
use crate::deterministic::Sequence;
use crate::table;
use anyhow::{Result, ensure};
use std::ops::Range;
use std::path::Path;

/// Bytes of a data set at most; what lies beyond is left out, by whole versions.
const BYTES_MAX: u64 = 1_600_000_000;

/// Bytes to cut.
#[derive(Debug)]
pub struct Data {
    /// Short name, for tables.
    pub name: String,
    /// Description, in a sentence.
    pub description: String,
    /// All versions, one after another.
    pub bytes: Vec<u8>,
    /// Where each version ends; the last with the bytes.
    pub ends: Vec<usize>,
    /// Files that they are of.
    pub files: usize,
    /// Parts that belong to the data and are not in the bytes, in words; empty if there are none.
    pub left_out: String,
}

impl Data {
    /// A single version.
    pub fn single(name: &str, description: String, bytes: Vec<u8>) -> Self {
        let ends = vec![bytes.len()];
        Self { name: name.into(), description, bytes, ends, files: 1, left_out: String::new() }
    }

    /// The versions of a corpus, as many of the first as make at most so many bytes; of the first alone a part, if it
    /// is larger. What cannot be read is left out. The description says so.
    ///
    /// # Errors
    /// If nothing can be read.
    pub fn of(corpus: &Corpus, bytes_max: u64) -> Result<Self> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        let (mut files, mut unreadable, mut is_part) = (0, 0, false);
        for version in &corpus.versions {
            let begin = bytes.len();
            let room = bytes_max.saturating_sub(begin as u64);
            let files_before = files;
            if version.is_dir() {
                let taken = archive::append_found(&mut bytes, version, room)?;
                files += taken.files;
                unreadable += taken.unreadable;
                is_part = taken.is_part;
            } else {
                is_part = archive::append_first(&mut bytes, version, room)?;
                files += 1;
            }
            if is_part && begin > 0 {
                bytes.truncate(begin);
                files = files_before;
                is_part = false;
                break;
            }
            ends.push(bytes.len());
            if is_part {
                break;
            }
        }
        ensure!(!bytes.is_empty() && files > 0, "{} holds no file that can be read", corpus.name);
        let (count, all) = (ends.len(), corpus.versions.len());
        let mut left_out = Vec::new();
        if count < all {
            left_out.push(format!("all but the first {count} of {all}"));
        }
        if is_part {
            left_out.push(format!("what lies beyond {}", table::bytes(bytes_max)));
        }
        if unreadable > 0 {
            left_out.push(format!("{unreadable} entries that cannot be read"));
        }
        let left_out = left_out.join(" and ");
        let without = if left_out.is_empty() { String::new() } else { format!(", without {left_out}") };
        let description = format!("{}{without}; {}", corpus.description, table::bytes(bytes.len() as u64));
        Ok(Data { name: corpus.name.clone(), description, bytes, ends, files, left_out })
    }

    /// Where each version lies in the bytes.
    pub fn ranges(&self) -> Vec<Range<usize>> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| begin..end).collect()
    }
}

/// Where data comes from, before it is in memory.
pub enum Source {
    /// Bytes without any pattern.
    Random {
        /// Short name, for tables.
        name: &'static str,
        /// Length.
        bytes: usize,
    },
    /// See [`low_entropy`].
    LowEntropy {
        /// Length.
        bytes: usize,
    },
    /// Versions of something, one after another: a folder as the archive `tar` makes of it, a file as it is.
    Versions(Corpus),
}

impl Source {
    /// Returns the data for the table of speeds: in memory, real, of low entropy, in the cache. A cache holds the last,
    /// the others are much larger than any.
    pub fn for_speed(corpora: &Corpora, amount: Amount) -> Result<Vec<Self>> {
        let (random, low_entropy) = match amount {
            Amount::Little => (64 << 20, 64 << 20),
            Amount::Memory | Amount::Full => (1 << 30, 512 << 20),
        };
        Ok(vec![
            Self::Random { name: "random", bytes: random },
            Self::Versions(corpora.releases(amount)?),
            Self::LowEntropy { bytes: low_entropy },
            Self::Random { name: "cached", bytes: 1 << 20 },
        ])
    }

    /// Returns the data for the table of savings.
    pub fn for_savings(corpora: &Corpora, amount: Amount) -> Result<Vec<Self>> {
        Ok(corpora.for_savings(amount)?.into_iter().map(Self::Versions).collect())
    }

    /// Returns the data in which resemblance is looked for.
    pub fn for_resemblance(corpora: &Corpora, amount: Amount) -> Result<Vec<Self>> {
        Ok(corpora.for_resemblance(amount)?.into_iter().map(Self::Versions).collect())
    }

    /// The user's own: a file, or a folder with one file or folder per version.
    pub fn given(path: &Path) -> Result<Self> {
        if path.is_dir() {
            return Ok(Self::Versions(corpus::given(path)?));
        }
        let name = path.file_name().map_or("data".into(), |name| name.to_string_lossy().into_owned());
        let description = "a file given by the user".into();
        Ok(Self::Versions(Corpus { name, description, versions: vec![path.to_path_buf()] }))
    }

    /// Brings it into memory.
    pub fn load(&self) -> Result<Data> {
        match self {
            Self::Random { name, bytes } => {
                let description = format!("{} MiB of random bytes", bytes >> 20);
                Ok(Data::single(name, description, random(1, *bytes)))
            }
            Self::LowEntropy { bytes } => {
                let description =
                    format!("{} MiB of runs, repeated patterns, few values and sparse pages", bytes >> 20);
                Ok(Data::single("low-entropy", description, low_entropy(1, *bytes)))
            }
            Self::Versions(corpus) => Data::of(corpus, BYTES_MAX),
        }
    }
}

/// Bytes without any pattern.
pub fn random(seed: u64, count: usize) -> Vec<u8> {
    Content::Packed.bytes(Sequence::new(seed), count)
}

/// Makes data that hashes find hard and images of machines are full of, in stretches of 1 to 256 KiB: zeros (more than
/// anything else), runs of another byte, short patterns again and again, two values only, and pages of text thinly
/// strewn over zeros.
pub fn low_entropy(seed: u64, count: usize) -> Vec<u8> {
    Content::LowEntropy.bytes(Sequence::new(seed + 1), count)
}

/// Lines of a log, and among them runs of one byte, 256 bytes to 64 KiB long, that are so many percent of all.
pub fn mixed(seed: u64, count: usize, runs_percent: u64) -> Vec<u8> {
    Content::Mixed { runs_percent }.bytes(Sequence::new(seed), count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn versions_follow_one_another() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("1"), "one").unwrap();
        fs::write(folder.path().join("2"), "two").unwrap();
        let data = Source::given(folder.path()).unwrap().load().unwrap();
        assert_eq!(data.bytes, b"onetwo");
        assert_eq!(data.ranges(), [0..3, 3..6]);
        assert_eq!(Source::given(&folder.path().join("2")).unwrap().load().unwrap().bytes, b"two");
    }

    #[test]
    fn what_is_beyond_the_bound_is_left_out_and_told() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("1"), "one").unwrap();
        fs::write(folder.path().join("2"), "two").unwrap();
        let corpus = corpus::given(folder.path()).unwrap();
        let of = |bytes_max| {
            let data = Data::of(&corpus, bytes_max).unwrap();
            (String::from_utf8(data.bytes).unwrap(), data.ends, data.description)
        };
        let description = "2 versions given by the user";
        assert_eq!(of(6), ("onetwo".into(), vec![3, 6], format!("{description}; 6 B")));
        assert_eq!(of(5), ("one".into(), vec![3], format!("{description}, without all but the first 1 of 2; 3 B")));
        let first = "without all but the first 1 of 2 and what lies beyond 2 B";
        assert_eq!(of(2), ("on".into(), vec![2], format!("{description}, {first}; 2 B")));
    }
}
