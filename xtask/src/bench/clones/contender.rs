//! The backup programs as many hosts use them: one repository, and for each host a machine of its own, with its cache
//! and what else the program keeps there. The host is the one that the program records; borg takes no name for it, so
//! its archives begin with the host's name.

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use serde_json::Value;
use siltstone_testbed::kopia;
use siltstone_testbed::program::{self, Cost};
use siltstone_testbed::tool::{self, Name, Repository, Tool};
use siltstone_testbed::tree::{self, Listing};
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
    pub(super) tool: Tool,
    /// More words of each backup.
    words: Vec<String>,
}

impl Contender {
    /// Finds the program; builds `silt`. `None` if it is not installed.
    pub(super) fn found(kind: Kind, words: &[String]) -> Result<Option<Self>> {
        let tool = match kind {
            Kind::Silt | Kind::SiltAlone => Some(Tool::prepare(Name::Silt)?),
            Kind::Restic => Tool::found(Name::Restic)?,
            Kind::Borg => Tool::found(Name::Borg)?,
            Kind::Kopia => Tool::found(Name::Kopia)?,
        };
        Ok(tool.map(|tool| Self { kind, tool, words: words.to_vec() }))
    }

    /// Makes a new repository below `folder`.
    pub(super) fn init(&self, folder: &Path) -> Result<Shared> {
        let repository = self.tool.init(folder)?;
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

/// The machine that forgets; it backs nothing up. kopia makes its repository on one of this name.
const KEEPER: &str = "keeper";

impl Shared {
    /// Bytes of the repository.
    pub(super) fn bytes(&self) -> Result<u64> {
        tree::bytes(&self.repository.path())
    }

    /// Lets a new machine know the repository. It belongs to setting up, so nothing of it is measured.
    pub(super) fn join(&self, host: &str) -> Result<()> {
        let machine = self.machine(host);
        fs::create_dir_all(&machine)?;
        if self.repository.name() == Name::Kopia { self.repository.kopia().join(host, &machine) } else { Ok(()) }
    }

    /// Backs up `sources` on this host; `label` is another one for each backup of a host.
    pub(super) fn backup(&self, host: &str, label: &str, sources: &[&Path]) -> Result<Cost> {
        let mut command = self.command(host);
        match self.repository.name() {
            Name::Borg => {
                command.args(["create", "--compression", "zstd,3"]);
                command.arg(format!("{}::{host}-{label}", self.repository.path().display()))
            }
            Name::Kopia => command.args(["snapshot", "create", "--no-progress"]),
            _ => command.args(["backup", "--host", host]),
        };
        program::measured(command.args(&self.words).args(sources))
    }

    /// Restores the newest snapshot of this host into the empty folder `target`, on the host's own machine.
    pub(super) fn restore(&self, host: &str, target: &Path) -> Result<Cost> {
        fs::create_dir_all(target)?;
        let newest = self.newest(host)?;
        let mut command = self.command(host);
        match self.repository.name() {
            Name::Borg => command
                .arg("extract")
                .arg(format!("{}::{newest}", self.repository.path().display()))
                .current_dir(target),
            Name::Kopia => command.arg("restore").arg(newest).arg(target),
            _ => command.arg("restore").arg(newest).arg("--target").arg(target),
        };
        program::measured(&mut command)
    }

    /// Fails if what was restored into `target` is not `source`, whose listing is `expected`.
    pub(super) fn compare(&self, source: &Path, target: &Path, expected: &Listing) -> Result<()> {
        let compared = if self.repository.name() == Name::Kopia {
            let found = Listing::of(target)?.without_times_of_folders();
            expected.clone().without_times_of_folders().expect_same(&found)
        } else {
            expected.expect_same(&Listing::of(&tool::restored_place(source, target)?)?)
        };
        compared.with_context(|| format!("{} restored something else", self.kind.text()))
    }

    /// Forgets a host with all its data and gives the space back, on a machine that looks after the repository.
    pub(super) fn forget(&self, host: &str) -> Result<Cost> {
        let mut command = self.command(KEEPER);
        match self.repository.name() {
            Name::Borg => command.args(["delete", "--glob-archives", &format!("{host}-*")]).arg(self.repository.path()),
            Name::Kopia => {
                let snapshots = self.snapshots(host)?;
                command.args(kopia::DELETE).args(snapshots.iter().filter_map(|snapshot| snapshot["id"].as_str()))
            }
            Name::Silt => command.args(["forget", "--host", host, "--unsafe-allow-remove-all"]),
            _ => command.args(["forget", "--host", host, "--unsafe-allow-remove-all", "--prune"]),
        };
        let cost = program::measured(&mut command)?;
        let mut command = self.command(KEEPER);
        match self.repository.name() {
            Name::Borg => command.arg("compact").arg(self.repository.path()),
            Name::Kopia => command.args(kopia::GIVE_BACK),
            _ => return Ok(cost),
        };
        Ok(cost.then(program::measured(&mut command)?))
    }

    /// Tells whether the program has a command that encodes once more what all hosts have stored.
    pub(super) fn can_recompress(&self) -> bool {
        self.repository.name() == Name::Silt
    }

    /// Encodes once more what is stored, with more effort.
    pub(super) fn recompress(&self) -> Result<Cost> {
        program::measured(self.command(KEEPER).args(["maintain", "--recompress"]))
    }

    fn machine(&self, host: &str) -> PathBuf {
        self.folder.join("machines").join(host)
    }

    /// The program on the machine of this host, waiting for its verb.
    fn command(&self, host: &str) -> Command {
        let (mut command, machine) = (self.repository.command(), self.machine(host));
        match self.repository.name() {
            Name::Silt => {
                command.env("SILT_CACHE_DIR", machine.join("cache")).env("SILT_STATE_DIR", machine.join("state"))
            }
            Name::Borg => command.env("BORG_BASE_DIR", machine),
            Name::Kopia => {
                command.env("KOPIA_CONFIG_PATH", machine.join("repository.config"));
                command.env("KOPIA_LOG_DIR", machine.join("logs"))
            }
            _ => command.env("RESTIC_CACHE_DIR", machine),
        };
        command
    }

    /// The id of the newest snapshot of a host; the name of it for borg.
    fn newest(&self, host: &str) -> Result<String> {
        if self.repository.name() == Name::Borg {
            let mut command = self.command(host);
            command
                .args(["list", "--short", "--last", "1", "--glob-archives", &format!("{host}-*")])
                .arg(self.repository.path());
            return Ok(program::quietly(&mut command)?.trim().to_owned());
        }
        let snapshots = self.snapshots(host)?;
        let newest = &snapshots[snapshots.len() - 1];
        Ok(newest["id"].as_str().context("a snapshot without an id")?.to_owned())
    }

    /// The snapshots of a host, oldest first, at least one; borg is not asked for them.
    fn snapshots(&self, host: &str) -> Result<Vec<Value>> {
        let snapshots: Vec<Value> = if self.repository.name() == Name::Kopia {
            let all = self.repository.kopia().all_snapshots()?.into_iter();
            all.filter(|snapshot| snapshot["source"]["host"] == host).collect()
        } else {
            // Both list them by time.
            let said = program::quietly(self.command(host).args(["snapshots", "--json", "--host", host]))?;
            serde_json::from_str(&said).context("the list of snapshots is not JSON")?
        };
        ensure!(!snapshots.is_empty(), "{} lists no snapshot of {host}", self.kind.text());
        Ok(snapshots)
    }
}
