//! The peer kopia. Each machine connects to the repository under the name of its host; one that backs nothing up
//! maintains it. Files are compressed by zstd, as its default is not to. It takes the newest time of all that is in a
//! folder for the time of the folder, so these times are not compared.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use siltstone_testbed::program::{self, Cost};
use siltstone_testbed::tool::PASSWORD;
use siltstone_testbed::tree;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The user of all hosts.
const USER: &str = "root";
const KEEPER: &str = "keeper";

/// A repository of kopia below a folder.
pub(super) struct Kopia {
    program: PathBuf,
    folder: PathBuf,
}

impl Kopia {
    /// Version that the program says it is.
    pub(super) fn version(program: &Path) -> Result<String> {
        Ok(program::quietly(Command::new(program).arg("--version"))?.trim().to_owned())
    }

    /// Makes a new repository below `folder`, by the machine that will maintain it.
    pub(super) fn init(program: &Path, folder: &Path) -> Result<Self> {
        let kopia = Self { program: program.to_path_buf(), folder: folder.to_path_buf() };
        fs::create_dir_all(kopia.path())?;
        kopia.connect("create", KEEPER, &kopia.keeper())?;
        program::quietly(kopia.command(&kopia.keeper()).args(["policy", "set", "--global", "--compression", "zstd"]))?;
        Ok(kopia)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.join("repository")
    }

    /// Lets the machine of a host know the repository.
    pub(super) fn join(&self, host: &str, machine: &Path) -> Result<()> {
        self.connect("connect", host, machine)
    }

    /// The command that backs up the folders whose paths are still to be added.
    pub(super) fn backup_command(&self, machine: &Path) -> Command {
        let mut command = self.command(machine);
        command.args(["snapshot", "create", "--no-progress"]);
        command
    }

    /// The command that restores the newest snapshot of a host into the empty folder `target`.
    pub(super) fn restore_command(&self, host: &str, machine: &Path, target: &Path) -> Result<Command> {
        let snapshots = self.snapshots(host)?;
        let newest = snapshots.last().with_context(|| format!("kopia lists no snapshot of {host}"))?;
        let mut command = self.command(machine);
        command.arg("restore").arg(newest["id"].as_str().context("a snapshot without an id")?).arg(target);
        Ok(command)
    }

    /// Forgets a host and gives the space back at once, which is safe as nobody else is writing.
    pub(super) fn forget(&self, host: &str) -> Result<Cost> {
        let snapshots = self.snapshots(host)?;
        ensure!(!snapshots.is_empty(), "kopia lists no snapshot of {host}");
        let ids = snapshots.iter().filter_map(|snapshot| snapshot["id"].as_str());
        let deleted =
            program::measured(self.command(&self.keeper()).args(["snapshot", "delete", "--delete"]).args(ids))?;
        let maintain = ["maintenance", "run", "--full", "--safety=none"];
        Ok(deleted.then(program::measured(self.command(&self.keeper()).args(maintain))?))
    }

    fn keeper(&self) -> PathBuf {
        self.folder.join("machines").join(KEEPER)
    }

    fn connect(&self, verb: &str, host: &str, machine: &Path) -> Result<()> {
        fs::create_dir_all(machine)?;
        let mut command = self.command(machine);
        command.args(["repository", verb, "filesystem", "--override-username", USER, "--override-hostname", host]);
        command.arg("--path").arg(self.path()).arg("--cache-directory").arg(machine.join("cache"));
        program::quietly(&mut command).map(drop)
    }

    /// The program on a machine, waiting for its verb.
    fn command(&self, machine: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.env("KOPIA_PASSWORD", PASSWORD).env("KOPIA_CONFIG_PATH", machine.join("repository.config"));
        command.env("KOPIA_LOG_DIR", machine.join("logs")).env("KOPIA_CHECK_FOR_UPDATES", "false");
        command
    }

    /// The snapshots of a host, oldest first.
    fn snapshots(&self, host: &str) -> Result<Vec<Value>> {
        let said = program::quietly(self.command(&self.keeper()).args(["snapshot", "list", "--all", "--json"]))?;
        let mut snapshots: Vec<Value> = serde_json::from_str(&said).context("the list of snapshots is not JSON")?;
        snapshots.retain(|snapshot| snapshot["source"]["host"] == host);
        snapshots.sort_by(|one, other| one["startTime"].as_str().cmp(&other["startTime"].as_str()));
        Ok(snapshots)
    }
}

/// Gives the folders below `restored` the times that those of `source` have, where both have a folder.
pub(super) fn forgive_times_of_folders(source: &Path, restored: &Path) -> Result<()> {
    for folder in tree::entries(source)?.into_iter().filter(|entry| entry.is_dir() && !entry.is_symlink()) {
        let other = restored.join(folder.file_name().context("an entry has a name")?);
        if other.is_dir() {
            forgive_times_of_folders(&folder, &other)?;
        }
    }
    Ok(File::open(restored)?.set_modified(fs::metadata(source)?.modified()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_testbed::tree::Listing;
    use std::time::SystemTime;

    #[test]
    fn only_times_of_folders_are_forgiven() {
        let work = tempfile::tempdir().unwrap();
        let [source, restored] = ["source", "restored"].map(|name| work.path().join(name));
        fs::create_dir_all(source.join("a/b")).unwrap();
        fs::write(source.join("a/b/file"), "text").unwrap();
        tree::copy(&source, &restored).unwrap();
        let expected = Listing::of(&source).unwrap();
        let expect_same = || expected.expect_same(&Listing::of(&restored).unwrap());
        for folder in ["", "a", "a/b"] {
            File::open(restored.join(folder)).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
        assert!(expect_same().is_err());
        forgive_times_of_folders(&source, &restored).unwrap();
        expect_same().unwrap();
        File::open(restored.join("a/b/file")).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        forgive_times_of_folders(&source, &restored).unwrap();
        assert!(expect_same().is_err());
    }
}
