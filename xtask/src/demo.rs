//! The first thing a newcomer runs: the whole job on this very checkout (a copy of it, build results left out), in a
//! temporary folder that is removed at the end.

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use siltstone_testbed::edit;
use siltstone_testbed::minio::Minio;
use siltstone_testbed::program::{self, Cost};
use siltstone_testbed::table::{self, Table};
use siltstone_testbed::tool::{Reading, Repository, Tool};
use siltstone_testbed::tree::{self, Listing};
use siltstone_testbed::workspace::{self, Build};
use std::fs;
use std::path::{Path, PathBuf};

/// Options: where the repository lies.
#[derive(Args)]
pub(crate) struct Options {
    /// The place of the repository.
    #[arg(long, value_enum, default_value_t = Where::Folder)]
    place: Where,
    /// Take the release build of `silt`, as users get it, which takes twice as long to compile and is faster.
    #[arg(long)]
    release: bool,
}

/// Kinds of places.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Where {
    /// A folder.
    Folder,
    /// A bucket of an object store: MinIO on this machine, if it is installed (`cargo xtask minio`).
    S3,
}

/// Prefix of the repository in its bucket.
const PREFIX: &str = "demo";

/// Runs the demonstration; fails if anything is not as it should be.
pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let server = (options.place == Where::S3).then(|| Minio::start(folder.path())).transpose()?;
    let build = Build::of(options.release);
    let silt = Tool::silt(build)?;
    let source = folder.path().join("checkout");
    copy_checkout(&source)?;
    let machine = folder.path().join("silt");
    let (repository, stored) = match &server {
        Some(server) => {
            let place = server.place(server.address(), PREFIX);
            eprintln!("{}\n$ silt init {}", server.version, place.address);
            (silt.init_at(place, &machine)?, server.folder(PREFIX))
        }
        None => {
            let repository = silt.init(&machine)?;
            let stored = repository.path();
            (repository, stored)
        }
    };
    let table = Table::new(["step", "source", "seconds", "MB/s", "repository afterwards"]);
    let mut demo = Demo { folder: folder.path(), source: &source, repository: &repository, stored: &stored, table };

    let first = demo.back_up("first")?;
    change(&source)?;
    let second = demo.back_up("second")?;
    program::run(repository.command().arg("snapshots"))?;
    demo.restore("first", &first)?;
    demo.restore("second", &second)?;
    demo.forget_first()?;
    demo.restore("second", &second)?;
    demo.check()?;
    println!("\n{}", demo.table);
    if build == Build::Development {
        println!("Timed was the development build; with --release it is faster, and takes longer to compile.");
    }
    println!("Both snapshots came back byte for byte: contents, modes, owners, times and links.");
    Ok(())
}

/// Copies everything of the checkout but what can be built again and what fuzzing found.
fn copy_checkout(to: &Path) -> Result<()> {
    let fuzz = workspace::root().join("fuzz");
    copy_without(&workspace::root(), &["target", "fuzz"], to)?;
    copy_without(&fuzz, &["target", "artifacts"], &to.join("fuzz"))
}

fn copy_without(folder: &Path, left_out: &[&str], to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    let is_kept = |entry: &&PathBuf| entry.file_name().is_none_or(|name| left_out.iter().all(|other| name != *other));
    tree::entries(folder)?.iter().filter(is_kept).try_for_each(|entry| tree::copy(entry, to))
}

/// Changes the source as a day's work does: some files edited, one new, one renamed, one gone.
fn change(source: &Path) -> Result<()> {
    edit::one_percent(source, 1)?;
    fs::write(source.join("NOTES.txt"), "written between the two backups\n")?;
    fs::rename(source.join("README.md"), source.join("README.renamed.md"))?;
    fs::remove_file(source.join("CHANGELOG.md")).context("the checkout has a CHANGELOG.md")
}

struct Demo<'a> {
    folder: &'a Path,
    source: &'a Path,
    repository: &'a Repository,
    /// Where its bytes lie; a server adds a few of its own.
    stored: &'a Path,
    table: Table,
}

impl Demo<'_> {
    fn back_up(&mut self, label: &str) -> Result<Listing> {
        let listing = Listing::of(self.source)?;
        eprintln!(
            "$ silt backup --tag {label} checkout    ({} files, {})",
            listing.files(),
            table::bytes(listing.bytes())
        );
        let cost = self.repository.backup(self.source, label, Reading::Changed)?;
        self.row(&format!("{label} backup"), Some(listing.bytes()), cost)?;
        Ok(listing)
    }

    fn restore(&mut self, label: &str, expected: &Listing) -> Result<()> {
        let target = self.folder.join("restored");
        let (cost, place) = self.repository.restore(label, self.source, &target)?;
        let compared = expected.expect_same(&Listing::of(&place)?);
        compared.with_context(|| format!("the {label} snapshot came back differently"))?;
        fs::remove_dir_all(target)?;
        self.row(&format!("restore the {label}, compared"), Some(expected.bytes()), cost)
    }

    fn forget_first(&mut self) -> Result<()> {
        eprintln!("$ silt forget <the first>");
        let cost = self.repository.forget(&["first".to_owned()])?;
        self.row("forget the first", None, cost)
    }

    fn check(&mut self) -> Result<()> {
        eprintln!("$ silt check --read-data");
        let cost = program::measured(self.repository.command().args(["check", "--read-data"]))?;
        self.row("check, all data read", None, cost)
    }

    fn row(&mut self, step: &str, source_bytes: Option<u64>, cost: Cost) -> Result<()> {
        let seconds = cost.wall.as_secs_f64();
        self.table.row(vec![
            step.to_owned(),
            source_bytes.map(table::bytes).unwrap_or_default(),
            format!("{seconds:.2}"),
            source_bytes.map(|bytes| format!("{:.0}", table::mb_per_s(bytes, seconds))).unwrap_or_default(),
            table::bytes(tree::bytes(self.stored)?),
        ]);
        Ok(())
    }
}
