//! Corpora that can be made, with all parameters: a command line and a [`Record`] have the same.

use super::content::Content;
use super::disk::Disk;
use super::dump::Sqlite;
use super::pairs::Pairs;
use super::postgres::Postgres;
use super::record::{Record, Version};
use super::registry::Package;
use super::stop::go_on;
use super::store::Redis;
use super::streams::{Mixed, Stream};
use super::syn::Syn;
use super::{Corpus, image, once, postgres, system};
use crate::deterministic::Sequence;
use crate::install::Missing;
use crate::{program, table};
use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// More would make names of different lengths, and fill any disk.
const VERSIONS_MAX: u64 = 100_000;

/// A kind of corpus and its parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Subcommand)]
#[serde(untagged)] // In a record the kind stands beside the parameters.
#[allow(clippy::doc_markdown)] // These lines are shown as help, where quotes would stay.
pub enum Recipe {
    /// A tree of files that are created, deleted and modified; as the papers' SYN
    Syn(Syn),
    /// A virtual machine's disk, rewritten in place
    Disk(Disk),
    /// Runs, repeated patterns, few values, sparse pages
    LowEntropy(Stream),
    /// Bytes without any pattern
    Random(Stream),
    /// Records with runs of one byte among them
    Mixed(Mixed),
    /// Pairs of chunks with known resemblance, by MoR and MoL of Odess
    Pairs(Pairs),
    /// Dumps of a Redis server between writes
    Redis(Redis),
    /// A growing SQLite database
    Sqlite(Sqlite),
    /// A PostgreSQL data folder between runs of pgbench
    Postgres(Postgres),
    /// Debian's root file system with ever more packages, as folders (root only)
    System(System),
    /// The image of a disk with Debian on it while packages come and go (root only)
    Image(Image),
    /// Successive releases of a package of cargo, npm or pip
    Releases(Releases),
}

/// Root file systems.
#[derive(Clone, PartialEq, Debug, Serialize, Args)]
pub struct System {
    /// Versions, at most 5
    #[arg(long, default_value_t = system::VERSIONS_MAX as u64)]
    pub versions: u64,
}

/// Images of a disk.
#[derive(Clone, PartialEq, Debug, Serialize, Args)]
pub struct Image {
    /// Versions, at most 22
    #[arg(long, default_value_t = image::VERSIONS_MAX as u64)]
    pub versions: u64,
}

/// Releases of a package.
#[derive(Clone, PartialEq, Debug, Serialize, Args)]
pub struct Releases {
    /// The package: cargo:NAME, npm:NAME or pip:NAME
    #[arg(long)]
    pub package: String,
    /// The newest so many, or all there are
    #[arg(long, default_value_t = 20)]
    pub versions: u64,
}

impl Recipe {
    /// Its kind, as on the command line.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Syn(_) => "syn",
            Self::Disk(_) => "disk",
            Self::LowEntropy(_) => "low-entropy",
            Self::Random(_) => "random",
            Self::Mixed(_) => "mixed",
            Self::Pairs(_) => "pairs",
            Self::Redis(_) => "redis",
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgres",
            Self::System(_) => "system",
            Self::Image(_) => "image",
            Self::Releases(_) => "releases",
        }
    }

    /// Makes the versions and their record in `folder`, unless it is there already: what is there is always whole.
    ///
    /// # Errors
    /// If a parameter makes no sense, the disk is too full, or a program that takes part is not there or fails.
    pub fn make(&self, folder: &Path, missing: Missing) -> Result<Corpus> {
        self.check()?;
        once(folder, |partial| {
            self.expect_space(partial)?;
            let versions = self.fill(partial, missing)?;
            self.record(versions)?.write(partial)
        })?;
        let record = Record::read(folder)?;
        let record = record.with_context(|| format!("{} is there, but was not made here", folder.display()))?;
        record.corpus(folder)
    }

    fn fill(&self, folder: &Path, missing: Missing) -> Result<Vec<Version>> {
        match self {
            Self::Syn(syn) => return syn.make(folder),
            Self::Disk(disk) => return disk.make(folder),
            Self::LowEntropy(stream) => {
                // Data in memory has the same bytes: `data::low_entropy`.
                return stream.make(folder, Content::LowEntropy, &Sequence::new(stream.seed.wrapping_add(1)));
            }
            Self::Random(stream) => return stream.make(folder, Content::Packed, &Sequence::new(stream.seed)),
            Self::Mixed(mixed) => {
                let content = Content::Mixed { runs_percent: mixed.runs_percent };
                return mixed.stream.make(folder, content, &Sequence::new(mixed.stream.seed));
            }
            Self::Pairs(pairs) => return pairs.make(folder),
            Self::Postgres(postgres) => return postgres.make(folder, missing),
            Self::Redis(redis) => redis.make(folder, missing)?,
            Self::Sqlite(sqlite) => sqlite.make(folder, missing)?,
            Self::System(system) => system::make(folder, index(system.versions), missing).map(drop)?,
            Self::Image(image) => image::make(folder, index(image.versions), missing)?,
            Self::Releases(releases) => releases.make(folder, missing)?,
        }
        Version::all_in(folder)
    }

    pub(super) fn versions(&self) -> u64 {
        match self {
            Self::Syn(syn) => syn.versions,
            Self::Disk(disk) => disk.versions,
            Self::LowEntropy(stream) | Self::Random(stream) | Self::Mixed(Mixed { stream, .. }) => stream.versions,
            Self::Pairs(_) => 2,
            Self::Redis(redis) => redis.versions,
            Self::Sqlite(sqlite) => sqlite.versions,
            Self::Postgres(postgres) => postgres.versions,
            Self::System(system) => system.versions,
            Self::Image(image) => image.versions,
            Self::Releases(releases) => releases.versions,
        }
    }

    fn check(&self) -> Result<()> {
        let most = match self {
            Self::System(_) => system::VERSIONS_MAX as u64,
            Self::Image(_) => image::VERSIONS_MAX as u64,
            _ => VERSIONS_MAX,
        };
        ensure!((1..=most).contains(&self.versions()), "--versions is from 1 to {most} for {}", self.kind());
        match self {
            Self::Syn(syn) => syn.check(),
            Self::Disk(disk) => disk.check(),
            Self::LowEntropy(stream) | Self::Random(stream) | Self::Mixed(Mixed { stream, .. }) => stream.check(),
            Self::Pairs(pairs) => pairs.check(),
            Self::Postgres(postgres) => postgres.check(),
            Self::Releases(releases) => releases.package.parse::<Package>().map(drop),
            Self::Redis(_) | Self::Sqlite(_) | Self::System(_) | Self::Image(_) => Ok(()),
        }
    }

    /// About what all versions take; 0 where only the registry knows.
    pub(super) fn bytes(&self) -> u64 {
        // A version over the one before, percent.
        let (first, growth) = match self {
            Self::Syn(syn) => (syn.size, syn.created_percent),
            Self::Disk(disk) => (disk.size, 0.0),
            Self::LowEntropy(stream) | Self::Random(stream) | Self::Mixed(Mixed { stream, .. }) => (stream.size, 0.0),
            Self::Pairs(pairs) => (pairs.pairs.saturating_mul(pairs.chunk_bytes as u64), 0.0),
            Self::Redis(redis) => (redis.size, 1.0),
            Self::Sqlite(sqlite) => (sqlite.size, 3.0),
            Self::Postgres(postgres) => (postgres.size, 0.0),
            Self::System(_) => (600_000_000, 0.0),
            Self::Image(_) => (320 << 20, 0.0),
            Self::Releases(_) => (0, 0.0),
        };
        (0..self.versions())
            .fold((0_u64, first), |(total, next), _| (total.saturating_add(next), grown(next, growth)))
            .0
    }

    fn expect_space(&self, folder: &Path) -> Result<()> {
        let status = rustix::fs::statvfs(folder).with_context(|| format!("{} cannot be asked", folder.display()))?;
        let (free, needed) = (status.f_bavail.saturating_mul(status.f_frsize), self.bytes());
        ensure!(
            needed <= free,
            "about {} are needed and {} are free where the versions are to lie; \
             choose another disk, or less with --size and --versions",
            table::bytes(needed),
            table::bytes(free)
        );
        Ok(())
    }

    fn record(&self, versions: Vec<Version>) -> Result<Record> {
        Ok(Record {
            kind: self.kind().into(),
            description: self.description(versions.len()),
            repeatable: self.is_repeatable(),
            made_by: env!("CARGO_PKG_VERSION").into(),
            parameters: toml::Table::try_from(self).context("numbers are below 2^63")?,
            programs: self.programs()?,
            versions,
        })
    }

    /// Tells whether the same parameters give the same bytes on every machine.
    pub(super) fn is_repeatable(&self) -> bool {
        matches!(
            self,
            Self::Syn(_) | Self::Disk(_) | Self::LowEntropy(_) | Self::Random(_) | Self::Mixed(_) | Self::Pairs(_)
        )
    }

    fn description(&self, versions: usize) -> String {
        let what = match self {
            Self::Syn(_) => "a tree of files that are created, deleted and modified".into(),
            Self::Disk(_) => "a virtual machine's disk, rewritten in place".into(),
            Self::LowEntropy(_) => "runs, repeated patterns, few values and sparse pages".into(),
            Self::Random(_) => "bytes without any pattern".into(),
            Self::Mixed(mixed) => format!("records, {} % of them runs of one byte", mixed.runs_percent),
            Self::Pairs(pairs) => {
                let Pairs { pairs, rate, length, .. } = pairs;
                format!("{pairs} pairs of chunks, modified with MoR {rate} and MoL {length}")
            }
            Self::Redis(_) => "dumps of a Redis server, 3 % of the values rewritten between them".into(),
            Self::Sqlite(_) => "a growing SQLite database".into(),
            Self::Postgres(_) => "the data folder of PostgreSQL between runs of pgbench".into(),
            Self::System(_) => "the root file system of Debian 12 with ever more packages".into(),
            Self::Image(_) => "an image of a disk with Debian 12 while packages come and go".into(),
            Self::Releases(releases) => format!("releases of the package {}", releases.package),
        };
        format!("{what}; {versions} version{}", if versions == 1 { "" } else { "s" })
    }

    /// Returns what the programs that took part say of themselves.
    fn programs(&self) -> Result<BTreeMap<String, String>> {
        let on_path = |name: &str| vec![PathBuf::from(name)];
        let programs = match self {
            Self::Redis(_) => on_path("redis-server"),
            Self::Sqlite(_) => on_path("sqlite3"),
            Self::Postgres(_) => postgres::find_programs().map(|folder| folder.join("postgres")).into_iter().collect(),
            Self::System(_) | Self::Image(_) => on_path("/usr/sbin/debootstrap"),
            Self::Releases(releases) => on_path(releases.package.parse::<Package>()?.client()),
            _ => Vec::new(),
        };
        let version = |program: PathBuf| {
            let said = program::quietly(Command::new(&program).arg("--version"))?;
            let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok((name, said.lines().next().unwrap_or_default().trim().to_owned()))
        };
        programs.into_iter().map(version).collect()
    }
}

impl Releases {
    fn make(&self, folder: &Path, missing: Missing) -> Result<()> {
        let package: Package = self.package.parse()?;
        package.ensure_client(missing)?;
        let releases = package.newest(index(self.versions))?;
        for (number, release) in (0..).zip(&releases) {
            go_on()?;
            eprintln!("fetching {package} {release}");
            let fetching = tempfile::Builder::new().prefix(".fetching").tempdir_in(folder)?;
            let fetched = package.fetch(release, fetching.path())?;
            let ending = fetched.extension().filter(|_| fetched.is_file()).map(|ending| ending.to_string_lossy());
            let ending = ending.map(|ending| format!(".{ending}")).unwrap_or_default();
            let name = super::record::version_name(number, releases.len() as u64);
            fs::rename(&fetched, folder.join(format!("{name}-{release}{ending}")))?;
        }
        Ok(())
    }
}

fn index(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // An estimate.
fn grown(bytes: u64, percent: f64) -> u64 {
    (bytes as f64 * (1.0 + percent / 100.0)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Vec<Recipe> {
        let stream = Stream { seed: 1, versions: 2, size: 10_000, changed_percent: 1.0 };
        vec![
            Recipe::Syn(Syn::new(1, 2, 50_000)),
            Recipe::Disk(Disk::new(1, 2, 50_000)),
            Recipe::LowEntropy(stream.clone()),
            Recipe::Random(stream.clone()),
            Recipe::Mixed(Mixed { stream, runs_percent: 10 }),
            Recipe::Pairs(Pairs { seed: 1, pairs: 3, chunk_bytes: 4096, rate: 0.001, length: 10 }),
        ]
    }

    #[test]
    fn what_is_made_is_recorded_as_it_lies_there_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        for recipe in small() {
            let kept = folder.path().join(recipe.kind());
            let corpus = recipe.make(&kept, Missing::Refuse).unwrap();
            assert_eq!(corpus.versions.len(), 2);
            let record = Record::read(&kept).unwrap().unwrap();
            for (path, version) in corpus.versions.iter().zip(&record.versions) {
                let found = Version::found(path, version.name.clone()).unwrap();
                assert_eq!((found.bytes, found.files), (version.bytes, version.files));
            }
            assert_eq!(super::super::given(&kept).unwrap().versions, corpus.versions);
        }
        assert!(
            !folder.path().read_dir().unwrap().any(|entry| entry.unwrap().file_name().as_encoded_bytes()[0] == b'.')
        );
    }

    #[test]
    fn the_command_of_a_record_is_understood() {
        #[derive(clap::Parser)]
        struct Line {
            #[arg(long, global = true)]
            out: Option<String>,
            #[command(subcommand)]
            recipe: Recipe,
        }
        for recipe in small() {
            let command = recipe.record(Vec::new()).unwrap().command();
            let line = <Line as clap::Parser>::parse_from(command.split_whitespace().skip(1));
            assert_eq!((line.recipe, line.out.as_deref()), (recipe, Some("DIR")));
        }
    }

    #[test]
    fn what_cannot_be_is_refused_before_anything_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("kept");
        let refused = |recipe: Recipe| recipe.make(&kept, Missing::Refuse).unwrap_err().to_string();
        assert!(refused(Recipe::Syn(Syn::new(1, 50_000, 1 << 50))).contains("--size"));
        assert!(refused(Recipe::Syn(Syn::new(1, 0, 1000))).contains("--versions"));
        assert!(refused(Recipe::Syn(Syn { created_percent: f64::NAN, ..Syn::new(1, 2, 1000) })).contains("percent"));
        assert!(refused(Recipe::System(System { versions: 6 })).contains('5'));
        assert!(refused(Recipe::Releases(Releases { package: "gem:x".into(), versions: 1 })).contains("gem"));
        assert!(folder.path().read_dir().unwrap().next().is_none());
    }

    fn made_by(recipe: &Recipe, program: &str) {
        if crate::install::find(program).is_none() {
            eprintln!("SKIPPED: {program} is not installed");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("kept");
        recipe.make(&kept, Missing::Refuse).unwrap();
        let record = Record::read(&kept).unwrap().unwrap();
        assert_eq!((record.versions.len(), record.programs.len()), (2, 1));
        assert!(record.versions.iter().all(|version| version.bytes > 10_000), "{record:?}");
    }

    #[test]
    fn redis_writes_dumps() {
        made_by(&Recipe::Redis(Redis { seed: 1, versions: 2, size: 100_000 }), "redis-server");
    }

    #[test]
    fn sqlite_writes_databases() {
        made_by(&Recipe::Sqlite(Sqlite { seed: 1, versions: 2, size: 100_000 }), "sqlite3");
    }
}
