//! The independent reader of `docs/FORMAT.md` (`crates/store/tests/reader/`), run on the golden repositories and on a
//! fresh one: it shares no code with the program, so what it reads the page describes.

use crate::damage::edit;
use crate::kill_loop::generate;
use anyhow::{Context, Result, ensure};
use siltstone_testbed::deterministic::Sequence;
use siltstone_testbed::install::{self, Needed};
use siltstone_testbed::program;
use siltstone_testbed::tool::{Reading, Tool};
use siltstone_testbed::tree::Listing;
use siltstone_testbed::workspace::{self, Build};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PYTHON: Needed = Needed { program: "python3", package: "python3" };
/// Makes virtual environments.
const VENV: &str = "python3-venv";
/// The password of the golden repositories.
const GOLDEN_PASSWORD: &str = "a password";

/// Runs it.
pub(crate) fn run() -> Result<()> {
    let reader = Reader::install()?;
    for version in fs::read_dir(workspace::root().join("crates/engine/tests/golden"))? {
        let version = version?.path();
        if version.is_dir() {
            reader.golden(&version).with_context(|| format!("{}", version.display()))?;
        }
    }
    reader.fresh()
}

struct Reader {
    python: PathBuf,
    script: PathBuf,
}

impl Reader {
    /// Makes a virtual environment with the packages it needs, once.
    fn install() -> Result<Self> {
        install::ensure(&[PYTHON])?;
        let folder = workspace::root().join("crates/store/tests/reader");
        let place = workspace::target()?.join("reader");
        let python = place.join("bin/python");
        let is_ready = place.join("ready");
        if !is_ready.is_file() {
            if program::quietly(Command::new("python3").args(["-m", "venv"]).arg(&place)).is_err() {
                install::packages(&[VENV])?;
                program::run(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
            }
            let mut pip = Command::new(&python);
            program::run(pip.args(["-m", "pip", "install", "--quiet", "-r"]).arg(folder.join("requirements.txt")))?;
            fs::write(is_ready, "")?;
        }
        Ok(Self { python, script: folder.join("silt_reader.py") })
    }

    fn command(&self, verb: &str, repository: &Path, password: &Path) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(&self.script).arg(verb).arg(repository).arg(password);
        command
    }

    /// Everything of a golden repository is as the page says, and its listing is the one that was made from the
    /// sources.
    fn golden(&self, version: &Path) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let password = folder.path().join("password");
        fs::write(&password, GOLDEN_PASSWORD)?;
        let repository = version.join("repository");
        program::run(&mut self.command("verify", &repository, &password))?;
        let listing = program::quietly(&mut self.command("list", &repository, &password))?;
        let wanted = fs::read_to_string(version.join("listing.txt"))?;
        ensure!(listing == wanted, "the listing is another than that of the sources");
        Ok(())
    }

    /// A repository just made, with versions as deltas, one forgotten, and objects of two master keys, restores to what
    /// was backed up.
    fn fresh(&self) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let (source, place) = (folder.path().join("source"), folder.path().join("silt"));
        let mut sequence = Sequence::new(11);
        generate(&source, 4, &mut sequence)?;
        let repository = Tool::silt(Build::Development)?.init(&place)?;
        let mut listings = Vec::new();
        for version in 0..4 {
            edit(&source, &mut sequence)?;
            repository.backup(&source, &format!("v{version}"), Reading::Changed)?;
            listings.push(Listing::of(&source)?);
            if version == 1 {
                program::quietly(repository.command().args(["key", "rotate"]))?;
            }
        }
        repository.forget(&["v1".to_owned()])?;
        listings.remove(1);
        let password = folder.path().join("password");
        fs::write(&password, siltstone_testbed::tool::PASSWORD)?;
        program::run(&mut self.command("verify", &repository.path(), &password))?;
        let target = folder.path().join("restored");
        program::run(self.command("restore", &repository.path(), &password).arg(&target))?;
        let series = fs::read_dir(&target)?.next().context("a series")??.path();
        for (at, listing) in listings.iter().enumerate() {
            let place = siltstone_testbed::tool::restored_place(&source, &series.join(at.to_string()))?;
            listing.expect_same(&Listing::of(&place)?).with_context(|| format!("snapshot {at}"))?;
        }
        println!("reader: golden and fresh repositories are as docs/FORMAT.md says");
        Ok(())
    }
}
