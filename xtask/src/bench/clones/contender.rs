//! The backup programs as many hosts use them: one repository, and for each host a machine of its own, with its cache
//! and what else the program keeps there. The host is the one that the program records; borg takes no name for it, so
//! its archives begin with the host's name.

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::Value;
use siltstone_testbed::install;
use siltstone_testbed::kopia::Kopia;
use siltstone_testbed::program::{self, Cost};
use siltstone_testbed::tool::{self, Name, Tool};
use siltstone_testbed::tree::Listing;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which program, and with which words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
#[allow(missing_docs, reason = "sentences here would be printed as help of each value")]
pub(super) enum Kind {
    Silt,
    SiltAlone,
    Restic,
    Borg,
    Kopia,
}

impl Kind {
    /// As printed.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Silt => "silt",
            Self::SiltAlone => "silt-alone",
            Self::Restic => "restic",
            Self::Borg => "borg",
            Self::Kopia => "kopia",
        }
    }
}

/// A program that is there.
pub(super) struct Contender {
    pub(super) kind: Kind,
    pub(super) version: String,
    program: Program,
    /// More words of each backup.
    words: Vec<String>,
}

enum Program {
    Known(Tool),
    Kopia(PathBuf),
}

impl Contender {
    /// Finds the program; builds `silt`. `None` if it is not installed.
    pub(super) fn found(kind: Kind, words: &[String]) -> Result<Option<Self>> {
        let known = match kind {
            Kind::Silt | Kind::SiltAlone => Some(Tool::prepare(Name::Silt)?),
            Kind::Restic => Tool::found(Name::Restic)?,
            Kind::Borg => Tool::found(Name::Borg)?,
            Kind::Kopia => return Self::kopia(),
        };
        Ok(known.map(|tool| Self {
            kind,
            version: tool.version.clone(),
            program: Program::Known(tool),
            words: words.to_vec(),
        }))
    }

    fn kopia() -> Result<Option<Self>> {
        let Some(program) = install::candidates("kopia").into_iter().next() else { return Ok(None) };
        let version = Kopia::version(&program)?;
        Ok(Some(Self { kind: Kind::Kopia, version, program: Program::Kopia(program), words: Vec::new() }))
    }

    /// Makes a new repository below `folder`.
    pub(super) fn init(&self, folder: &Path) -> Result<Shared> {
        let repository = match &self.program {
            Program::Known(tool) => Repository::Known(tool.init(folder)?),
            Program::Kopia(program) => Repository::Kopia(Kopia::init(program, folder)?),
        };
        Ok(Shared { kind: self.kind, repository, folder: folder.to_path_buf(), words: self.words.clone() })
    }
}

/// A repository that many hosts share.
pub(super) struct Shared {
    pub(super) kind: Kind,
    repository: Repository,
    folder: PathBuf,
    words: Vec<String>,
}

enum Repository {
    Known(tool::Repository),
    Kopia(Kopia),
}

/// The machine that forgets; it backs nothing up.
const KEEPER: &str = "keeper";

impl Shared {
    /// The repository's folder.
    pub(super) fn path(&self) -> PathBuf {
        match &self.repository {
            Repository::Known(repository) => repository.path(),
            Repository::Kopia(kopia) => kopia.path(),
        }
    }

    /// Lets a new machine know the repository. It belongs to setting up, so nothing of it is measured.
    pub(super) fn join(&self, host: &str) -> Result<()> {
        fs::create_dir_all(self.machine(host))?;
        match &self.repository {
            Repository::Known(_) => Ok(()),
            Repository::Kopia(kopia) => kopia.join(host, &self.machine(host)),
        }
    }

    /// Backs up `sources` on this host; `label` is another one for each backup of a host.
    pub(super) fn backup(&self, host: &str, label: &str, sources: &[&Path]) -> Result<Cost> {
        let mut command = match &self.repository {
            Repository::Kopia(kopia) => kopia.backup_command(&self.machine(host)),
            Repository::Known(repository) => {
                let mut command = self.command(repository, host);
                match repository.name() {
                    Name::Borg => {
                        command.args(["create", "--compression", "zstd,3"]);
                        command.arg(format!("{}::{host}-{label}", self.path().display()))
                    }
                    _ => command.args(["backup", "--host", host]),
                };
                command
            }
        };
        program::measured(command.args(&self.words).args(sources))
    }

    /// Restores the newest snapshot of this host into the empty folder `target`, on the host's own machine.
    pub(super) fn restore(&self, host: &str, target: &Path) -> Result<Cost> {
        fs::create_dir_all(target)?;
        let mut command = match &self.repository {
            Repository::Kopia(kopia) => kopia.restore_command(host, &self.machine(host), target)?,
            Repository::Known(repository) => {
                let newest = self.newest(repository, host)?;
                let mut command = self.command(repository, host);
                match repository.name() {
                    Name::Borg => {
                        command.arg("extract").arg(format!("{}::{newest}", self.path().display())).current_dir(target)
                    }
                    _ => command.arg("restore").arg(newest).arg("--target").arg(target),
                };
                command
            }
        };
        program::measured(&mut command)
    }

    /// Fails if what was restored into `target` is not `source`, whose listing is `expected`.
    pub(super) fn compare(&self, source: &Path, target: &Path, expected: &Listing) -> Result<()> {
        let compared = match self.repository {
            Repository::Known(_) => expected.expect_same(&Listing::of(&tool::restored_place(source, target)?)?),
            Repository::Kopia(_) => {
                let found = Listing::of(target)?.without_times_of_folders();
                expected.clone().without_times_of_folders().expect_same(&found)
            }
        };
        compared.with_context(|| format!("{} restored something else", self.kind.text()))
    }

    /// Forgets a host with all its data and gives the space back, on a machine that looks after the repository.
    pub(super) fn forget(&self, host: &str) -> Result<Cost> {
        let repository = match &self.repository {
            Repository::Kopia(kopia) => return kopia.forget(host),
            Repository::Known(repository) => repository,
        };
        let mut command = self.command(repository, KEEPER);
        match repository.name() {
            Name::Borg => command.args(["delete", "--glob-archives", &format!("{host}-*")]).arg(self.path()),
            Name::Silt => command.args(["forget", "--host", host, "--unsafe-allow-remove-all"]),
            _ => command.args(["forget", "--host", host, "--unsafe-allow-remove-all", "--prune"]),
        };
        let cost = program::measured(&mut command)?;
        if repository.name() != Name::Borg {
            return Ok(cost);
        }
        Ok(cost.then(program::measured(self.command(repository, KEEPER).arg("compact").arg(self.path()))?))
    }

    /// Tells whether the program has a command that encodes once more what all hosts have stored.
    pub(super) fn can_recompress(&self) -> bool {
        matches!(&self.repository, Repository::Known(repository) if repository.name() == Name::Silt)
    }

    /// Encodes once more what is stored, with more effort.
    pub(super) fn recompress(&self) -> Result<Cost> {
        let Repository::Known(repository) = &self.repository else { bail!("kopia cannot") };
        program::measured(self.command(repository, KEEPER).args(["maintain", "--recompress"]))
    }

    fn machine(&self, host: &str) -> PathBuf {
        self.folder.join("machines").join(host)
    }

    /// The program on the machine of this host, waiting for its verb.
    fn command(&self, repository: &tool::Repository, host: &str) -> Command {
        let (mut command, machine) = (repository.command(), self.machine(host));
        match repository.name() {
            Name::Silt => {
                command.env("SILT_CACHE_DIR", machine.join("cache")).env("SILT_STATE_DIR", machine.join("state"))
            }
            Name::Borg => command.env("BORG_BASE_DIR", machine),
            _ => command.env("RESTIC_CACHE_DIR", machine),
        };
        command
    }

    /// The id of the newest snapshot of a host; the name of it for borg.
    fn newest(&self, repository: &tool::Repository, host: &str) -> Result<String> {
        let mut command = self.command(repository, host);
        if repository.name() == Name::Borg {
            command.args(["list", "--short", "--last", "1", "--glob-archives", &format!("{host}-*")]).arg(self.path());
            return Ok(program::quietly(&mut command)?.trim().to_owned());
        }
        let said = program::quietly(command.args(["snapshots", "--json", "--host", host]))?;
        let snapshots: Vec<Value> = serde_json::from_str(&said).context("the list of snapshots is not JSON")?;
        // Both list them by time.
        let newest = snapshots.last().with_context(|| format!("{} lists no snapshot of {host}", self.kind.text()))?;
        Ok(newest["id"].as_str().context("a snapshot without an id")?.to_owned())
    }
}
