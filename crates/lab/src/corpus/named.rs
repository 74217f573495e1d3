//! Corpora by name, with sizes chosen for a run: what is made once is kept in the folder of [`Corpora`] for the next run.

use super::disk::Disk;
use super::dump;
use super::postgres::Postgres;
use super::recipe::Recipe;
use super::streams::{Mixed, Stream};
use super::syn::Syn;
use super::{Amount, Corpora, Corpus, History, system, wheels};
use anyhow::{Context, Result};

/// A corpus that a run can ask for.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is and what making it takes, in a sentence without a full stop.
    pub description: &'static str,
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Syn,
    Disk,
    LowEntropy,
    Mixed,
    Random,
    History(History),
    Database,
    Postgres,
    Wheels,
    System,
}

/// What a run takes where the user names neither data nor corpora: made by the lab itself, without a program or a network.
pub const DEFAULTS: [&str; 2] = ["syn", "disk"];

/// All that can be asked for by name: first what the lab makes itself, always the same from a seed; then what takes programs or a
/// network, always from the same fixed seeds or releases.
pub const KINDS: [Named; 13] = [
    Named {
        name: "syn",
        description: "a tree of files that are created, deleted and modified, as the papers' SYN",
        source: Source::Syn,
    },
    Named {
        name: "disk",
        description: "a virtual machine's disk, rewritten in place, a third of it zeros",
        source: Source::Disk,
    },
    Named {
        name: "low-entropy",
        description: "runs, repeated patterns, few values and sparse pages",
        source: Source::LowEntropy,
    },
    Named { name: "mixed", description: "records, a tenth of them runs of one byte", source: Source::Mixed },
    Named { name: "random", description: "bytes without any pattern", source: Source::Random },
    Named {
        name: "openssl",
        description: "releases of a source tree, as folders (fetched by cargo)",
        source: Source::History(History::Openssl),
    },
    Named {
        name: "tars",
        description: "releases of a package, as archives (fetched by npm)",
        source: Source::History(History::Tars),
    },
    Named {
        name: "numpy",
        description: "releases of compiled programs, as folders (fetched by pip)",
        source: Source::Wheels,
    },
    Named {
        name: "redis",
        description: "dumps of a changing key-value store (needs Redis)",
        source: Source::History(History::Redis),
    },
    Named { name: "database", description: "a growing SQLite database (needs sqlite3)", source: Source::Database },
    Named {
        name: "postgres",
        description: "the data folder of a server between runs of pgbench (needs PostgreSQL)",
        source: Source::Postgres,
    },
    Named {
        name: "system",
        description: "a root file system with ever more packages, as folders (needs root on Debian)",
        source: Source::System,
    },
    Named {
        name: "image",
        description: "image of a root file system as packages come and go (needs root on Debian)",
        source: Source::History(History::System),
    },
];

impl Corpora {
    /// The corpus of this name, made or fetched if it is not there yet. The seed is that of what the lab makes itself.
    ///
    /// Little is 20 to 60 MB in five versions or more where the lab makes it; full 1 GB or more in twenty or more.
    ///
    /// # Errors
    /// If there is no such name, or it cannot be made: what is missing is named.
    pub fn named(&self, name: &str, amount: Amount, seed: u64) -> Result<Corpus> {
        let named = KINDS.iter().find(|named| named.name == name).with_context(|| {
            let names: Vec<&str> = KINDS.iter().map(|named| named.name).collect();
            format!("no corpus is called '{name}': there are {}", names.join(", "))
        })?;
        let corpus =
            self.from(named.source, amount, seed).with_context(|| format!("the corpus {name} cannot be made"))?;
        Ok(Corpus { name: name.into(), ..corpus })
    }

    fn from(&self, source: Source, amount: Amount, seed: u64) -> Result<Corpus> {
        let is_little = amount == Amount::Little;
        let stream = |versions, size| Stream { seed, versions, size, changed_percent: 1.0 };
        let stream = || if is_little { stream(5, 6_000_000) } else { stream(20, 52_000_000) };
        let recipe = match source {
            Source::History(history) => return self.history(history, amount),
            Source::Database => return dump::corpus(self, amount),
            Source::Wheels => return wheels::corpus(self, amount),
            Source::System => return system::corpus(self, amount),
            Source::Syn if is_little => Recipe::Syn(Syn::new(seed, 6, 6_000_000)),
            Source::Syn => Recipe::Syn(Syn::new(seed, 25, 44_000_000)),
            Source::Disk if is_little => Recipe::Disk(Disk::new(seed, 6, 4_000_000)),
            Source::Disk => Recipe::Disk(Disk::new(seed, 20, 52_000_000)),
            Source::LowEntropy => Recipe::LowEntropy(stream()),
            Source::Mixed => Recipe::Mixed(Mixed { stream: stream(), runs_percent: 10 }),
            Source::Random => Recipe::Random(stream()),
            Source::Postgres => {
                let (versions, size) = if is_little { (3, 1) } else { (20, 100_000_000) };
                Recipe::Postgres(Postgres { seed, versions, size, transactions_percent: 1.0 })
            }
        };
        let amount = if is_little { "little" } else { "full" };
        recipe.make(&self.folder()?.join(format!("{}-{amount}-seed-{seed}", recipe.kind())), self.missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn the_defaults_are_there_without_a_network_and_are_little_when_little_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let corpora = Corpora::at(folder.path().to_path_buf());
        for name in DEFAULTS {
            let corpus = corpora.named(name, Amount::Little, 1).unwrap();
            let bytes: u64 = corpus.versions.iter().map(|version| tree::bytes(version).unwrap()).sum();
            assert!(corpus.versions.len() >= 5 && (20_000_000..60_000_000).contains(&bytes), "{name}: {bytes}");
            assert_eq!(corpora.named(name, Amount::Little, 1).unwrap().versions, corpus.versions);
        }
    }

    #[test]
    fn names_differ_and_an_unknown_one_is_told_them_all() {
        let error = Corpora::at("nowhere".into()).named("none", Amount::Little, 1).unwrap_err().to_string();
        for (at, named) in KINDS.iter().enumerate() {
            assert!(error.contains(named.name));
            assert!(KINDS[..at].iter().all(|other| other.name != named.name));
        }
    }
}
