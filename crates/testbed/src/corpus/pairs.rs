//! Pairs of chunks whose resemblance is known (modified.rs), as files: two versions, of which the second has every
//! chunk of the first under the same name, modified. Beside them `pairs.csv` says how alike each pair is, so that an
//! estimate can be held against it.

use super::modified::{Modification, Pair};
use super::record::{Changes, Version};
use super::stop::go_on;
use crate::deterministic::Sequence;
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Bytes of the windows whose sets are compared: those of the Rabin fingerprints of N-Transform and Finesse in crate
/// `similar`.
const WINDOW_BYTES: usize = 48;
const CHUNK_BYTES_MAX: usize = 64 << 20;

/// Parameters of pairs of chunks, one of each modified.
#[derive(Clone, PartialEq, Debug, Serialize, clap::Args)]
pub struct Pairs {
    /// Seed: the same gives the same bytes
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of pairs
    #[arg(long, default_value_t = 5000)]
    pub pairs: u64,
    /// Bytes of a chunk
    #[arg(long, default_value_t = 8192)]
    pub chunk_bytes: usize,
    /// `MoR`: the probability of a modification at each byte
    #[arg(long, default_value_t = 0.0005)]
    pub rate: f64,
    /// `MoL`: bytes inserted, deleted or replaced by a modification
    #[arg(long, default_value_t = 100)]
    pub length: usize,
}

impl Pairs {
    pub(super) fn check(&self) -> Result<()> {
        ensure!((0.0..=1.0).contains(&self.rate), "--rate is a probability: from 0 to 1");
        let are_bounded = [self.chunk_bytes, self.length].iter().all(|bytes| (1..=CHUNK_BYTES_MAX).contains(bytes));
        ensure!(are_bounded, "chunks and modifications are from 1 byte to {} MiB", CHUNK_BYTES_MAX >> 20);
        Ok(())
    }

    /// Both versions and the table into `folder`.
    pub(super) fn make(&self, folder: &Path) -> Result<Vec<Version>> {
        let names = ["0-old", "1-new"];
        for name in names {
            fs::create_dir_all(folder.join(name)).with_context(|| format!("{} cannot be made", folder.display()))?;
        }
        let mut table = b"name,old_bytes,new_bytes,resemblance\n".to_vec();
        let (mut bytes, mut modified) = ([0, 0], 0);
        for number in 0..self.pairs {
            go_on()?;
            let modification = Modification { rate: self.rate, length: self.length };
            let pair = Pair::new(self.chunk_bytes, modification, Sequence::of(&[self.seed, number]).next());
            let file = format!("{number:06}.bin");
            for ((chunk, name), total) in [&pair.old, &pair.new].into_iter().zip(names).zip(&mut bytes) {
                let path = folder.join(name).join(&file);
                fs::write(&path, chunk).with_context(|| format!("{} cannot be written", path.display()))?;
                *total += chunk.len() as u64;
            }
            modified += u64::from(pair.old != pair.new);
            let resemblance = pair.resemblance(WINDOW_BYTES);
            writeln!(table, "{file},{},{},{resemblance:.6}", pair.old.len(), pair.new.len())?;
        }
        fs::write(folder.join("pairs.csv"), table)?;
        let changes = [None, Some(Changes { modified, ..Changes::default() })];
        let versions = names.into_iter().zip(bytes).zip(changes);
        let version =
            |((name, bytes), changes): ((&str, _), _)| Version { name: name.into(), bytes, files: self.pairs, changes };
        Ok(versions.map(version).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::syn::digest;

    #[test]
    fn a_seed_gives_the_same_bytes_everywhere_and_for_ever() {
        let digests = [1, 2].map(|seed| {
            let folder = tempfile::tempdir().unwrap();
            let pairs = Pairs { seed, pairs: 5, chunk_bytes: 4096, rate: 0.001, length: 50 };
            let versions = pairs.make(folder.path()).unwrap();
            assert_eq!((versions[0].bytes, versions[0].files), (5 * 4096, 5));
            assert_eq!(fs::read_to_string(folder.path().join("pairs.csv")).unwrap().lines().count(), 6);
            digest(folder.path())
        });
        assert_eq!(digests[0], "6c64a45b99560c81");
        assert_ne!(digests[0], digests[1]);
    }
}
