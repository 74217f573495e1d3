//! Corpora by name, with sizes chosen for a run: what is made once is kept in the folder of [`Corpora`] for the next
//! run.

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
    /// Description, and what making it takes, in a sentence without a full stop.
    pub description: &'static str,
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    /// Made here, little or full, from a seed.
    Recipe(fn(bool, u64) -> Recipe),
    History(History),
    Other(fn(&Corpora, Amount) -> Result<Corpus>),
}

/// Corpora of a run where the user names neither data nor corpora: made by the lab itself, without a program or a
/// network.
pub const DEFAULTS: [&str; 2] = ["syn", "disk"];

/// All that can be asked for by name: first what the lab makes itself, always the same from a seed; then what takes
/// programs or a network, always from the same fixed seeds or releases.
pub const KINDS: [Named; 14] = [
    Named {
        name: "syn",
        description: "a tree of files that are created, deleted and modified, as the papers' SYN",
        source: Source::Recipe(syn),
    },
    Named {
        name: "long",
        description: "the same over 120 versions, two files in five modified in each: hundreds of deltas a version",
        source: Source::Recipe(long),
    },
    Named {
        name: "disk",
        description: "a virtual machine's disk, rewritten in place, a third of it zeros",
        source: Source::Recipe(disk),
    },
    Named {
        name: "low-entropy",
        description: "runs, repeated patterns, few values and sparse pages",
        source: Source::Recipe(low_entropy),
    },
    Named { name: "mixed", description: "records, a tenth of them runs of one byte", source: Source::Recipe(mixed) },
    Named { name: "random", description: "bytes without any pattern", source: Source::Recipe(random) },
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
        source: Source::Other(wheels::corpus),
    },
    Named {
        name: "redis",
        description: "dumps of a changing key-value store (needs Redis)",
        source: Source::History(History::Redis),
    },
    Named {
        name: "database",
        description: "a growing SQLite database (needs sqlite3)",
        source: Source::Other(dump::corpus),
    },
    Named {
        name: "postgres",
        description: "the data folder of a server between runs of pgbench (needs PostgreSQL)",
        source: Source::Recipe(postgres),
    },
    Named {
        name: "system",
        description: "a root file system with ever more packages, as folders (needs root on Debian)",
        source: Source::Other(system::corpus),
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
        let corpus = self.from(named.source, name, amount, seed);
        let corpus = corpus.with_context(|| format!("the corpus {name} cannot be made"))?;
        Ok(Corpus { name: name.into(), ..corpus })
    }

    fn from(&self, source: Source, name: &str, amount: Amount, seed: u64) -> Result<Corpus> {
        let is_little = amount == Amount::Little;
        let recipe = match source {
            Source::Recipe(recipe) => recipe(is_little, seed),
            Source::History(history) => return self.history(history, amount),
            Source::Other(make) => return make(self, amount),
        };
        let amount = if is_little { "little" } else { "full" };
        recipe.make(&self.folder.join(format!("{name}-{amount}-seed-{seed}")), self.missing)
    }
}

fn syn(is_little: bool, seed: u64) -> Recipe {
    Recipe::Syn(if is_little { Syn::new(seed, 6, 6_000_000) } else { Syn::new(seed, 25, 44_000_000) })
}

/// MeGA's data sets have a hundred versions and more, and hundreds of deltas in each.
fn long(is_little: bool, seed: u64) -> Recipe {
    let (versions, size) = if is_little { (12, 3_000_000) } else { (120, 12_000_000) };
    let changes = Syn::new(seed, versions, size);
    Recipe::Syn(Syn { modified_percent: 40.0, changed_percent_min: 0.5, changed_percent_max: 3.0, ..changes })
}

fn disk(is_little: bool, seed: u64) -> Recipe {
    Recipe::Disk(if is_little { Disk::new(seed, 6, 4_000_000) } else { Disk::new(seed, 20, 52_000_000) })
}

fn low_entropy(is_little: bool, seed: u64) -> Recipe {
    Recipe::LowEntropy(stream(is_little, seed))
}

fn mixed(is_little: bool, seed: u64) -> Recipe {
    Recipe::Mixed(Mixed { stream: stream(is_little, seed), runs_percent: 10 })
}

fn random(is_little: bool, seed: u64) -> Recipe {
    Recipe::Random(stream(is_little, seed))
}

fn stream(is_little: bool, seed: u64) -> Stream {
    let (versions, size) = if is_little { (5, 6_000_000) } else { (20, 52_000_000) };
    Stream { seed, versions, size, changed_percent: 1.0 }
}

pub(super) fn postgres_history(corpora: &Corpora, amount: Amount) -> Result<Corpus> {
    corpora.from(Source::Recipe(postgres), "postgres", amount, 1)
}

fn postgres(is_little: bool, seed: u64) -> Recipe {
    let (versions, size) = if is_little { (3, 80_000_000) } else { (20, 100_000_000) };
    Recipe::Postgres(Postgres { seed, versions, size, transactions_percent: 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_need_nothing_and_are_as_large_as_a_run_expects() {
        for named in DEFAULTS.map(|name| KINDS.iter().find(|named| named.name == name).unwrap()) {
            let Source::Recipe(recipe) = named.source else { panic!("{} is fetched", named.name) };
            let (little, full) = (recipe(true, 1), recipe(false, 1));
            assert!(little.is_repeatable() && little.versions() >= 5 && full.versions() >= 20);
            assert!((20_000_000..45_000_000).contains(&little.bytes()), "{}", little.bytes());
            assert!((1_000_000_000..1_600_000_000).contains(&full.bytes()), "{}", full.bytes());
        }
    }

    #[test]
    fn what_is_made_once_is_kept_for_its_seed() {
        let folder = tempfile::tempdir().unwrap();
        let corpora = Corpora::at(folder.path().to_path_buf());
        let first = corpora.named("disk", Amount::Little, 1).unwrap();
        assert_eq!((first.name.as_str(), first.versions.len()), ("disk", 6));
        assert_eq!(corpora.named("disk", Amount::Little, 1).unwrap().versions, first.versions);
        assert_ne!(corpora.named("disk", Amount::Little, 2).unwrap().versions, first.versions);
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
