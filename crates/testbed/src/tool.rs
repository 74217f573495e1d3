//! The backup programs, each behind the same few verbs, with settings chosen to be fair: encrypted repositories, a
//! cache of their own, the compression each recommends (zstd level 3 for borg, whose default is lz4), passwords from
//! the environment, and nothing that asks. A snapshot is named by a label: a tag for `silt` and restic, the archive's
//! name for borg.

use crate::install;
use crate::json::number_of;
use crate::program::{self, Cost};
use crate::tree;
use crate::workspace::{self, Build};
use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The password of all repositories made here.
pub const PASSWORD: &str = "correct horse battery staple";

/// A place other than a folder, where a repository lies.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its address, in words that `silt` and restic share.
    pub address: String,
    /// Variables that give the keys of it.
    pub variables: Vec<(&'static str, String)>,
}

/// Which program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Name {
    /// This project's.
    Silt,
    /// The peer written in Go.
    Restic,
    /// The peer written in Python and C.
    Borg,
}

/// Trust of a backup in what the file system says of unchanged files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// Files whose size, times and inode are as before are not opened.
    Changed,
    /// Every file is read and cut again.
    Everything,
}

/// A program that was found (or built), and what version it says it is.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Which.
    pub name: Name,
    /// Where.
    program: PathBuf,
    /// Its own words.
    pub version: String,
    /// Words beside its usual ones.
    settings: Settings,
}

/// Additions to the command lines of a tool.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Words where a repository is made.
    pub init: &'static [&'static str],
    /// `silt` hashes the password at next to no cost: for tasks that open a repository thousands of times and attack
    /// something else than the password.
    pub hashes_quickly: bool,
    /// Words where a snapshot is made.
    pub backup: &'static [&'static str],
    /// `silt` sums up in JSON what it backed up or restored.
    pub says_json: bool,
}

impl Name {
    /// As printed.
    pub fn text(self) -> &'static str {
        match self {
            Self::Silt => "silt",
            Self::Restic => "restic",
            Self::Borg => "borg",
        }
    }
}

impl Tool {
    /// Builds or installs it as need be.
    pub fn prepare(name: Name) -> Result<Self> {
        match name {
            Name::Silt => Self::silt(Build::Release),
            Name::Restic => Self::installed(name, install::RESTIC, "version"),
            Name::Borg => Self::installed(name, install::BORG, "--version"),
        }
    }

    /// `silt` for campaigns: built as asked, and quick to open.
    pub fn silt_for_trials(build: Build, init: &'static [&'static str]) -> Result<Self> {
        let settings = Settings { init, hashes_quickly: true, ..Settings::default() };
        Ok(Self::silt(build)?.with(settings))
    }

    /// `silt`, built as asked.
    pub fn silt(build: Build) -> Result<Self> {
        let program = workspace::build_silt(build)?;
        let version = first_line(&program::quietly(Command::new(&program).arg("version"))?);
        Ok(Self { name: Name::Silt, program, version, settings: Settings::default() })
    }

    fn installed(name: Name, needed: install::Needed, version_word: &str) -> Result<Self> {
        if install::candidates(needed.program).is_empty() {
            install::ensure(&[needed])?;
        }
        let program = install::candidates(needed.program)
            .into_iter()
            .next()
            .with_context(|| format!("{} was installed, but is not on the search path", needed.program))?;
        let version = first_line(&program::quietly(Command::new(&program).arg(version_word))?);
        Ok(Self { name, program, version, settings: Settings::default() })
    }

    /// Returns this program with other settings.
    #[must_use]
    pub fn with(&self, settings: Settings) -> Self {
        Self { settings, ..self.clone() }
    }

    /// The repository that was made below `folder`.
    pub fn repository_at(&self, folder: &Path) -> Repository {
        Repository { tool: self.clone(), folder: folder.to_path_buf(), place: None }
    }

    /// Makes a new repository below `folder`.
    pub fn init(&self, folder: &Path) -> Result<Repository> {
        self.made(folder, None)
    }

    /// Makes a new repository at another place; what this machine keeps of it lies below `folder`.
    pub fn init_at(&self, place: Place, folder: &Path) -> Result<Repository> {
        ensure!(self.name != Name::Borg, "borg knows no such places");
        self.made(folder, Some(place))
    }

    fn made(&self, folder: &Path, place: Option<Place>) -> Result<Repository> {
        fs::create_dir_all(folder)?;
        let repository = Repository { tool: self.clone(), folder: folder.to_path_buf(), place };
        let mut command = repository.command();
        match self.name {
            Name::Silt | Name::Restic => command.arg("init"),
            Name::Borg => command.args(["init", "--encryption", "repokey-blake2"]).arg(repository.path()),
        };
        if self.settings.hashes_quickly {
            command.args(["--kdf-memory", "64K", "--kdf-passes", "1", "--kdf-lanes", "1"]);
        }
        program::quietly(command.args(self.settings.init))?;
        Ok(repository)
    }
}

/// A repository of one tool, with that tool's cache beside it.
#[derive(Clone, Debug)]
pub struct Repository {
    tool: Tool,
    folder: PathBuf,
    /// `None` for a folder.
    place: Option<Place>,
}

impl Repository {
    /// The tool it belongs to.
    pub fn name(&self) -> Name {
        self.tool.name
    }

    /// The repository itself, where it lies in a folder.
    pub fn path(&self) -> PathBuf {
        self.folder.join("repository")
    }

    fn address(&self) -> OsString {
        self.place.as_ref().map_or_else(|| self.path().into_os_string(), |place| place.address.clone().into())
    }

    /// A copy of it, cache and all, as it is now; below `folder`, where nothing is yet.
    pub fn copied_to(&self, folder: &Path) -> Result<Self> {
        tree::copy(&self.folder, folder)?;
        Ok(self.at(folder))
    }

    /// The copy of it that was made below `folder`; or a repository at another place, for a machine that keeps what it
    /// knows below `folder`.
    #[must_use]
    pub fn at(&self, folder: &Path) -> Self {
        Self { folder: folder.to_path_buf(), ..self.clone() }
    }

    /// The tool with its environment set, waiting for its verb.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.tool.program);
        let cache = self.folder.join("cache");
        command.envs(self.place.iter().flat_map(|place| place.variables.iter().map(|(name, value)| (name, value))));
        match self.tool.name {
            Name::Silt => {
                // Versions differ in size as they like.
                command.env("SILT_SHRINK_GUARD", "off").env("SILT_CACHE_DIR", cache);
                command.env("SILT_STATE_DIR", self.folder.join("state"));
                command.env("SILT_REPOSITORY", self.address()).env("SILT_PASSWORD", PASSWORD)
            }
            Name::Restic => command
                .env("RESTIC_REPOSITORY", self.address())
                .env("RESTIC_PASSWORD", PASSWORD)
                .env("RESTIC_CACHE_DIR", cache),
            Name::Borg => command
                .env("BORG_PASSPHRASE", PASSWORD)
                .env("BORG_BASE_DIR", cache)
                .env("BORG_RELOCATED_REPO_ACCESS_IS_OK", "yes"),
        };
        command
    }

    /// The command that backs up `source` under `label`.
    pub fn backup_command(&self, source: &Path, label: &str, reading: Reading) -> Command {
        let mut command = self.command();
        let everything = reading == Reading::Everything;
        match self.tool.name {
            Name::Silt | Name::Restic => {
                command.args(["backup", "--tag", label]);
                if everything {
                    command.arg("--force");
                }
            }
            Name::Borg => {
                // `rechunk` reads every file and, unlike `disabled`, keeps the files cache for the next backup.
                let cache = if everything { "rechunk,ctime" } else { "ctime,size,inode" };
                command.args(["create", "--compression", "zstd,3", "--files-cache", cache]);
                command.arg(self.archive(label));
            }
        }
        if self.tool.settings.says_json {
            // JSON alone would make it scan ahead, to estimate the time.
            command.args(["--json", "--no-scan"]);
        }
        command.args(self.tool.settings.backup).arg(source);
        command
    }

    /// Backs up `source` under `label`.
    pub fn backup(&self, source: &Path, label: &str, reading: Reading) -> Result<Cost> {
        program::measured(&mut self.backup_command(source, label, reading))
    }

    /// The command that restores the snapshot `label` into the empty folder `target`.
    pub fn restore_command(&self, label: &str, target: &Path) -> Result<Command> {
        fs::create_dir_all(target)?;
        let mut command = self.command();
        match self.tool.name {
            Name::Silt | Name::Restic => {
                command.arg("restore").arg(self.snapshot_id(label)?).arg("--target").arg(target);
            }
            Name::Borg => {
                command.arg("extract").arg(self.archive(label)).current_dir(target);
            }
        }
        if self.tool.settings.says_json {
            command.arg("--json");
        }
        Ok(command)
    }

    /// Restores the snapshot `label` into the empty folder `target`; returns the cost, and where `source` then stands
    /// in it.
    pub fn restore(&self, label: &str, source: &Path, target: &Path) -> Result<(Cost, PathBuf)> {
        let cost = program::measured(&mut self.restore_command(label, target)?)?;
        Ok((cost, restored_place(source, target)?))
    }

    /// The command that forgets these snapshots; for `silt` it is all there is to do.
    pub fn forget_command(&self, labels: &[String]) -> Result<Command> {
        let mut command = self.command();
        match self.tool.name {
            Name::Silt => command.arg("forget").args(self.snapshot_ids(labels)?),
            Name::Restic => command.args(["forget", "--prune"]).args(self.snapshot_ids(labels)?),
            Name::Borg => command.arg("delete").arg(self.path()).args(labels),
        };
        Ok(command)
    }

    /// Forgets these snapshots and gives their space back, by as many commands as that takes.
    pub fn forget(&self, labels: &[String]) -> Result<Cost> {
        let cost = program::measured(&mut self.forget_command(labels)?)?;
        match self.tool.name {
            Name::Silt | Name::Restic => Ok(cost),
            Name::Borg => Ok(cost.then(program::measured(self.command().arg("compact").arg(self.path()))?)),
        }
    }

    /// Forgets these snapshots by `silt`; fails unless exactly as many bytes come back as its dry run says.
    pub fn forget_as_promised(&self, labels: &[String]) -> Result<(i64, Cost)> {
        let mut dry_run = self.forget_command(labels)?;
        let said = program::quietly(dry_run.args(["--dry-run", "--json"]))?;
        let promised =
            number_of(&said, "bytes_returned").context("`forget --dry-run --json` names no bytes_returned")?;
        let before = tree::bytes(&self.path())?;
        let cost = self.forget(labels)?;
        let after = tree::bytes(&self.path())?;
        let returned = i64::try_from(before)? - i64::try_from(after)?;
        ensure!(returned == promised, "the dry run promised {promised} bytes, {returned} came back");
        Ok((returned, cost))
    }

    /// Labels of all snapshots there are, oldest first.
    pub fn labels(&self) -> Result<Vec<String>> {
        let snapshots = self.snapshots()?;
        let label = |snapshot: &Value| match self.tool.name {
            Name::Silt | Name::Restic => snapshot["tags"][0].as_str().map(str::to_owned),
            Name::Borg => snapshot["name"].as_str().map(str::to_owned),
        };
        snapshots.iter().map(|snapshot| label(snapshot).context("a snapshot without a label")).collect()
    }

    /// The id of the snapshot of this label.
    pub fn snapshot_id(&self, label: &str) -> Result<String> {
        self.id_in(&self.snapshots()?, label)
    }

    fn snapshot_ids(&self, labels: &[String]) -> Result<Vec<String>> {
        let snapshots = self.snapshots()?;
        labels.iter().map(|label| self.id_in(&snapshots, label)).collect()
    }

    fn id_in(&self, snapshots: &[Value], label: &str) -> Result<String> {
        let is_tagged = |snapshot: &&Value| {
            let tags = snapshot["tags"].as_array().map_or(&[][..], Vec::as_slice);
            tags.iter().any(|tag| tag == label)
        };
        let Some(snapshot) = snapshots.iter().find(is_tagged) else {
            bail!("{} lists no snapshot with the tag {label}", self.tool.name.text())
        };
        Ok(snapshot["id"].as_str().context("a snapshot without an id")?.to_owned())
    }

    fn snapshots(&self) -> Result<Vec<Value>> {
        let mut command = self.command();
        match self.tool.name {
            Name::Silt | Name::Restic => command.args(["snapshots", "--json"]),
            Name::Borg => command.args(["list", "--json"]).arg(self.path()),
        };
        let text = program::quietly(&mut command)?;
        let value: Value = serde_json::from_str(&text).context("the list of snapshots is not JSON")?;
        let list = if self.tool.name == Name::Borg { &value["archives"] } else { &value };
        Ok(list.as_array().context("the list of snapshots is not an array")?.clone())
    }

    fn archive(&self, label: &str) -> String {
        format!("{}::{label}", self.path().display())
    }
}

/// Where `source` stands in what was restored into `target`.
pub fn restored_place(source: &Path, target: &Path) -> Result<PathBuf> {
    let place = source.strip_prefix("/").context("sources are absolute paths")?;
    Ok(target.join(place))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}
