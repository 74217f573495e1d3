//! The backup programs, each behind the same few verbs, with settings chosen to be fair: encrypted repositories, a
//! cache of their own, the compression each recommends (zstd level 3 for borg, whose default is lz4), passwords from
//! the environment, and nothing that asks. A snapshot is named by a label: a tag for `silt` and restic, the archive's
//! name for borg, a tag of the name `label` for kopia.

use crate::install;
use crate::json::number_of;
use crate::kopia::{self, Kopia};
use crate::program::{self, Cost};
use crate::tree::{self, Listing};
use crate::workspace::{self, Build};
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The password of all repositories made here.
pub const PASSWORD: &str = "correct horse battery staple";

/// Name of the tag of kopia that a label is the value of.
const LABEL: &str = "label";

/// A place other than a folder, where a repository lies.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its address, in words that `silt` and restic share.
    pub address: String,
    /// Variables that give the keys of it.
    pub variables: Vec<(&'static str, String)>,
}

impl Place {
    /// Returns the variables that tell rustic of this bucket: `s3:http://HOST/BUCKET/PREFIX`.
    fn for_rustic(&self) -> Vec<(&'static str, String)> {
        let mut parts = self.address.trim_start_matches("s3:").splitn(5, '/');
        let mut next = || parts.next().unwrap_or_default();
        let (scheme, _, host, bucket, prefix) = (next(), next(), next(), next(), next());
        let keys = self.variables.iter().filter_map(|(name, value)| match *name {
            "AWS_ACCESS_KEY_ID" => Some(("OPENDAL_ACCESS_KEY_ID", value.clone())),
            "AWS_SECRET_ACCESS_KEY" => Some(("OPENDAL_SECRET_ACCESS_KEY", value.clone())),
            _ => None,
        });
        let bucket = [
            ("OPENDAL_ENDPOINT", format!("{scheme}//{host}")),
            ("OPENDAL_BUCKET", bucket.to_owned()),
            ("OPENDAL_ROOT", format!("/{prefix}")),
            ("OPENDAL_REGION", "us-east-1".to_owned()),
        ];
        bucket.into_iter().chain(keys).collect()
    }
}

/// Which program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Name {
    /// This project's.
    Silt,
    /// A peer written in Go.
    Restic,
    /// The peer written in Rust, whose repositories are those of restic.
    Rustic,
    /// The peer written in Python and C.
    Borg,
    /// Another peer written in Go.
    Kopia,
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
            Self::Rustic => "rustic",
            Self::Borg => "borg",
            Self::Kopia => "kopia",
        }
    }
}

impl Tool {
    /// Builds or installs it as need be; rustic and kopia, which take many minutes to compile, have to be there.
    pub fn prepare(name: Name) -> Result<Self> {
        match name {
            Name::Silt => return Self::silt(Build::Release),
            Name::Restic => install::ensure_program(install::RESTIC)?,
            Name::Borg => install::ensure_program(install::BORG)?,
            Name::Rustic | Name::Kopia => {}
        }
        let how = if name == Name::Rustic { ": `cargo install --locked rustic-rs` does that" } else { "" };
        Self::found(name)?.with_context(|| format!("{} is not installed{how}", name.text()))
    }

    /// Finds a peer that is installed.
    pub fn found(name: Name) -> Result<Option<Self>> {
        let Some(program) = install::candidates(name.text()).into_iter().next() else { return Ok(None) };
        let word = if name == Name::Restic { "version" } else { "--version" };
        let version = first_line(&program::quietly(Command::new(&program).arg(word))?);
        Ok(Some(Self { name, program, version, settings: Settings::default() }))
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
        ensure!(!matches!(self.name, Name::Borg | Name::Kopia), "{} is told of no such places", self.name.text());
        self.made(folder, Some(place))
    }

    fn made(&self, folder: &Path, place: Option<Place>) -> Result<Repository> {
        fs::create_dir_all(folder)?;
        let repository = Repository { tool: self.clone(), folder: folder.to_path_buf(), place };
        let mut command = repository.command();
        match self.name {
            Name::Silt | Name::Restic | Name::Rustic => command.arg("init"),
            Name::Borg => command.args(["init", "--encryption", "repokey-blake2"]).arg(repository.path()),
            Name::Kopia => {
                Kopia::init(&self.program, folder)?;
                return Ok(repository);
            }
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
        ensure!(self.name() != Name::Kopia, "the settings of kopia name the folder of its repository");
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
            Name::Rustic => {
                let variables = self.place.as_ref().map_or_else(Vec::new, Place::for_rustic);
                let address = if self.place.is_some() { "opendal:s3".into() } else { self.address() };
                command.envs(variables).env("RUSTIC_REPOSITORY", address).env("RUSTIC_PASSWORD", PASSWORD);
                command.env("RUSTIC_CACHE_DIR", cache).env("RUSTIC_NO_PROGRESS", "true")
            }
            Name::Borg => command
                .env("BORG_PASSPHRASE", PASSWORD)
                .env("BORG_BASE_DIR", cache)
                .env("BORG_RELOCATED_REPO_ACCESS_IS_OK", "yes"),
            Name::Kopia => return self.kopia().keeper_command(),
        };
        command
    }

    /// The command that backs up `source` under `label`.
    pub fn backup_command(&self, source: &Path, label: &str, reading: Reading) -> Command {
        let mut command = self.command();
        let everything = reading == Reading::Everything;
        match self.tool.name {
            Name::Silt | Name::Restic | Name::Rustic => {
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
            Name::Kopia => {
                command.args(["snapshot", "create", "--no-progress", "--tags", &format!("{LABEL}:{label}")]);
                if everything {
                    command.arg("--force-hash=100");
                }
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
                command.arg("restore").arg(self.snapshot_id(label)?).arg("--target").arg(target)
            }
            Name::Rustic => command.arg("restore").arg(self.snapshot_id(label)?).arg(target),
            Name::Borg => command.arg("extract").arg(self.archive(label)).current_dir(target),
            Name::Kopia => {
                let snapshot = self.snapshot_of(label)?;
                let source = snapshot["source"]["path"].as_str().context("a snapshot without a source")?;
                let place = restored_place(Path::new(source), target)?;
                fs::create_dir_all(place.parent().context("it lies below the target")?)?;
                command.arg("restore").arg(id_of(&snapshot)?).arg(place)
            }
        };
        if self.tool.settings.says_json {
            command.arg("--json");
        }
        Ok(command)
    }

    /// The command that restores the newest snapshot into the empty folder `target`; borg has no word for it.
    pub fn restore_latest_command(&self, target: &Path) -> Command {
        let mut command = self.command();
        command.args(["restore", "latest"]);
        if self.tool.name != Name::Rustic {
            command.arg("--target");
        }
        command.arg(target);
        command
    }

    /// The command that restores one file of the newest snapshot, to its place in the empty folder `target`; borg has
    /// no word for it.
    pub fn restore_file_command(&self, file: &Path, target: &Path) -> Result<Command> {
        if self.tool.name != Name::Rustic {
            let mut command = self.restore_latest_command(target);
            command.arg("--include").arg(file);
            return Ok(command);
        }
        // Its patterns leave all folders there; a path in the snapshot is the file itself.
        let place = restored_place(file, target)?;
        fs::create_dir_all(place.parent().context("a file has a folder")?)?;
        let mut command = self.command();
        command.arg("restore").arg(format!("latest:{}", file.display())).arg(place);
        Ok(command)
    }

    /// Restores the snapshot `label` into the empty folder `target`; returns the cost, and where `source` then stands
    /// in it.
    pub fn restore(&self, label: &str, source: &Path, target: &Path) -> Result<(Cost, PathBuf)> {
        let cost = program::measured(&mut self.restore_command(label, target)?)?;
        Ok((cost, restored_place(source, target)?))
    }

    /// Restores each of these snapshots of `source` into the folder `target`, which is removed after each, and compares
    /// it; returns the cost of all.
    pub fn expect_restored(&self, expected: &BTreeMap<String, Listing>, source: &Path, target: &Path) -> Result<Cost> {
        let mut total = Cost::default();
        for (label, listing) in expected {
            let (cost, place) = self.restore(label, source, target)?;
            let compared = listing.expect_same(&Listing::of(&place)?);
            compared.with_context(|| format!("snapshot {label} came back differently"))?;
            fs::remove_dir_all(target)?;
            total = total.then(cost);
        }
        Ok(total)
    }

    /// The command that forgets these snapshots; for `silt` it is all there is to do.
    pub fn forget_command(&self, labels: &[String]) -> Result<Command> {
        let mut command = self.command();
        match self.tool.name {
            Name::Silt => command.arg("forget").args(self.snapshot_ids(labels)?),
            Name::Restic => command.args(["forget", "--prune"]).args(self.snapshot_ids(labels)?),
            // Otherwise it deletes a day later.
            Name::Rustic => command.args(["forget", "--prune", "--instant-delete"]).args(self.snapshot_ids(labels)?),
            Name::Borg => command.arg("delete").arg(self.path()).args(labels),
            Name::Kopia => command.args(kopia::DELETE).args(self.snapshot_ids(labels)?),
        };
        Ok(command)
    }

    /// Forgets these snapshots and gives their space back, by as many commands as that takes.
    pub fn forget(&self, labels: &[String]) -> Result<Cost> {
        let cost = program::measured(&mut self.forget_command(labels)?)?;
        match self.tool.name {
            Name::Silt | Name::Restic | Name::Rustic => Ok(cost),
            Name::Borg => Ok(cost.then(program::measured(self.command().arg("compact").arg(self.path()))?)),
            Name::Kopia => Ok(cost.then(program::measured(self.command().args(kopia::GIVE_BACK))?)),
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
            Name::Silt | Name::Restic | Name::Rustic => snapshot["tags"][0].as_str().map(str::to_owned),
            Name::Borg => snapshot["name"].as_str().map(str::to_owned),
            Name::Kopia => label_of_kopia(snapshot).map(str::to_owned),
        };
        snapshots.iter().map(|snapshot| label(snapshot).context("a snapshot without a label")).collect()
    }

    /// The id of the snapshot of this label.
    pub fn snapshot_id(&self, label: &str) -> Result<String> {
        id_of(&self.snapshot_of(label)?)
    }

    fn snapshot_of(&self, label: &str) -> Result<Value> {
        self.find_in(&self.snapshots()?, label).cloned()
    }

    fn snapshot_ids(&self, labels: &[String]) -> Result<Vec<String>> {
        let snapshots = self.snapshots()?;
        labels.iter().map(|label| id_of(self.find_in(&snapshots, label)?)).collect()
    }

    fn find_in<'s>(&self, snapshots: &'s [Value], label: &str) -> Result<&'s Value> {
        let is_tagged = |snapshot: &&Value| {
            let tags = snapshot["tags"].as_array().map_or(&[][..], Vec::as_slice);
            tags.iter().any(|tag| tag == label) || label_of_kopia(snapshot) == Some(label)
        };
        let snapshot = snapshots.iter().find(is_tagged);
        snapshot.with_context(|| format!("{} lists no snapshot with the tag {label}", self.tool.name.text()))
    }

    fn snapshots(&self) -> Result<Vec<Value>> {
        let mut command = self.command();
        match self.tool.name {
            Name::Silt | Name::Restic | Name::Rustic => command.args(["snapshots", "--json"]),
            Name::Borg => command.args(["list", "--json"]).arg(self.path()),
            Name::Kopia => return self.kopia().all_snapshots(),
        };
        let text = program::quietly(&mut command)?;
        let value: Value = serde_json::from_str(&text).context("the list of snapshots is not JSON")?;
        if self.tool.name == Name::Rustic {
            return Ok(ungrouped(&value));
        }
        let list = if self.tool.name == Name::Borg { &value["archives"] } else { &value };
        Ok(list.as_array().context("the list of snapshots is not an array")?.clone())
    }

    fn archive(&self, label: &str) -> String {
        format!("{}::{label}", self.path().display())
    }

    /// This repository, for what only kopia is asked.
    pub fn kopia(&self) -> Kopia {
        Kopia::at(&self.tool.program, &self.folder)
    }
}

fn id_of(snapshot: &Value) -> Result<String> {
    Ok(snapshot["id"].as_str().context("a snapshot without an id")?.to_owned())
}

fn label_of_kopia(snapshot: &Value) -> Option<&str> {
    snapshot["tags"][format!("tag:{LABEL}")].as_str()
}

/// The snapshots in the list of rustic, which has them in groups, oldest first.
fn ungrouped(value: &Value) -> Vec<Value> {
    if value["id"].is_string() && value["tree"].is_string() {
        return vec![value.clone()];
    }
    let within: Vec<&Value> = match value {
        Value::Array(values) => values.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    };
    let mut snapshots: Vec<Value> = within.into_iter().flat_map(ungrouped).collect();
    snapshots.sort_by(|one, other| one["time"].as_str().cmp(&other["time"].as_str()));
    snapshots
}

/// Where `source` stands in what was restored into `target`.
pub fn restored_place(source: &Path, target: &Path) -> Result<PathBuf> {
    let place = source.strip_prefix("/").context("sources are absolute paths")?;
    Ok(target.join(place))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_place_in_a_bucket_is_told_to_rustic_in_its_words() {
        let variables = vec![("AWS_ACCESS_KEY_ID", "user".to_owned()), ("AWS_SECRET_ACCESS_KEY", "secret".to_owned())];
        let place = Place { address: "s3:http://127.0.0.1:9000/bucket/deep/prefix".into(), variables };
        let told = place.for_rustic();
        let value = |name: &str| told.iter().find(|(told, _)| *told == name).map(|(_, value)| value.as_str());
        assert_eq!(value("OPENDAL_ENDPOINT"), Some("http://127.0.0.1:9000"));
        assert_eq!((value("OPENDAL_BUCKET"), value("OPENDAL_ROOT")), (Some("bucket"), Some("/deep/prefix")));
        assert_eq!(
            (value("OPENDAL_ACCESS_KEY_ID"), value("OPENDAL_SECRET_ACCESS_KEY")),
            (Some("user"), Some("secret"))
        );
    }

    #[test]
    fn snapshots_of_rustic_are_found_in_groups_of_either_form() {
        let snapshot = |id: &str, time: &str| json!({"id": id, "tree": "t", "time": time, "tags": [id]});
        let pairs = json!([[{"hostname": "h"}, [snapshot("b", "2"), snapshot("a", "1")]]]);
        let objects =
            json!([{"group_key": {}, "snapshots": [snapshot("a", "1")]}, {"snapshots": [snapshot("b", "2")]}]);
        for list in [pairs, objects] {
            let ids: Vec<String> = ungrouped(&list).iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
            assert_eq!(ids, ["a", "b"]);
        }
    }
}
