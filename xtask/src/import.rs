//! Histories brought along: what restic and borg have kept of successive releases of a real source tree, and of files
//! with everything that is odd about files, becomes series. Every version is restored by the program that kept it and
//! by `silt`, and both are compared by rsync: content, owners, permissions, times, links, devices; of restic also
//! attributes and access control lists, which borg's tar does not hold.

use anyhow::{Context, Result, ensure};
use clap::Args;
use siltstone_testbed::corpus::{self, Amount, Corpus};
use siltstone_testbed::install;
use siltstone_testbed::machine;
use siltstone_testbed::program::{self, Cost};
use siltstone_testbed::table::{self, Table};
use siltstone_testbed::tool::{Name, Reading, Repository, Tool};
use siltstone_testbed::tree::{self, Listing};
use siltstone_testbed::workspace::{self, Build};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Versions taken of the corpus, the newest.
const VERSIONS_MAX: usize = 20;
/// Bytes at both ends of the file with a hole in it.
const SPARSE_BYTES: u64 = 20 << 20;
/// What differs between the archive of borg and what `borg extract` brings back: its tar has whole seconds and neither
/// attributes nor access control lists.
const BORG_COMPARES: &str = "-anicH";
const RESTIC_COMPARES: &str = "-anicHAX";

/// Options: how much is done.
#[derive(Args, Default)]
pub(crate) struct Options {
    /// A few small versions only.
    #[arg(long)]
    quick: bool,
    /// The programs as users get them, for the times.
    #[arg(long)]
    release: bool,
    /// Your own versions: a folder with one file or folder per version, in the order of their names.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Options {
    pub(crate) fn short() -> Self {
        Self { quick: true, ..Self::default() }
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    install::ensure(&[install::SETFACL, install::SETFATTR, install::RSYNC])?;
    let build = Build::of(options.release);
    let corpus = match &options.data {
        Some(folder) => corpus::given(folder)?,
        None if options.quick => workspace::corpora()?.releases(Amount::Little)?,
        None => workspace::corpora()?.releases(Amount::Full)?,
    };
    let work = machine::scratch()?;
    let source = work.path().join("source");
    let silt = Tool::silt(build)?;
    let mut table =
        Table::new(["from", "snapshots", "source", "its repository", "of silt", "import s", "again s", "verify s"]);
    let restic = Tool::prepare(Name::Restic)?;
    let history = History::kept(&restic, &corpus, &source, work.path())?;
    table.row(from_restic(&history, &silt, &workspace::build_silt_import(build)?, work.path())?);
    let borg = Tool::prepare(Name::Borg)?;
    let history = History::kept(&borg, &corpus, &source, work.path())?;
    table.row(from_borg(&history, &silt, work.path())?);
    println!("\n{table}");
    println!("{}: {}; {}, {}.", corpus.name, corpus.description, restic.version, borg.version);
    println!("Every snapshot was restored by both programs; rsync found no difference.");
    Ok(())
}

/// Makes the tree that is backed up a version of the corpus, beside files with all that is odd about files.
fn become_version(source: &Path, version: &Path, number: usize) -> Result<()> {
    let (tree, odd) = (source.join("tree"), source.join("odd"));
    fs::create_dir_all(&odd)?;
    tree::make_equal(&tree, version)?;
    if number == 0 {
        make_odd(&odd)?;
    }
    fs::write(odd.join("number"), number.to_string())?;
    let sparse = File::options().write(true).open(odd.join("sparse"))?;
    sparse.write_all_at(format!("version {number}").as_bytes(), SPARSE_BYTES / 2)?;
    Ok(())
}

/// Makes files of every kind, with all metadata that files have.
fn make_odd(odd: &Path) -> Result<()> {
    fs::write(odd.join("several names"), b"one content, three names")?;
    fs::create_dir(odd.join("folder"))?;
    fs::hard_link(odd.join("several names"), odd.join("folder/second"))?;
    fs::hard_link(odd.join("several names"), odd.join("a third"))?;
    fs::write(odd.join(OsStr::from_bytes(b"no \xff\xfe text \\ \" \n")), b"named by bytes")?;
    fs::write(odd.join("\u{fc}ml\u{e4}ut \u{2764}"), b"")?;
    std::os::unix::fs::symlink("nowhere/at/all", odd.join("link"))?;
    fs::set_permissions(odd.join("folder"), fs::Permissions::from_mode(0o3711))?;
    fs::write(odd.join("set-user"), b"#!/bin/sh\n")?;
    fs::set_permissions(odd.join("set-user"), fs::Permissions::from_mode(0o4755))?;
    let sparse = File::create(odd.join("sparse"))?;
    sparse.set_len(SPARSE_BYTES)?;
    let named = |program: &str, words: &[&str], name: &str| {
        program::quietly(Command::new(program).args(words).arg(odd.join(name))).map(drop)
    };
    named("mkfifo", &["-m", "640"], "fifo")?;
    named("touch", &["-d", "1969-12-31 23:59:58.123456789 UTC"], "a third")?;
    named("touch", &["-h", "-d", "2001-02-03 04:05:06.987654321 UTC"], "link")?;
    if install::is_root()? {
        program::quietly(Command::new("mknod").arg(odd.join("character")).args(["c", "1", "3"]))?;
        program::quietly(Command::new("mknod").arg(odd.join("block")).args(["b", "259", "70000"]))?;
        named("chown", &["-h", "12345:54321"], "link")?;
        named("chown", &["4242:2424"], "folder/second")?;
    }
    // Not every file system has them.
    let set = [
        program::try_quietly(
            Command::new("setfattr").args(["-n", "user.note", "-v", "0x00ff0a"]).arg(odd.join("set-user")),
        )?,
        program::try_quietly(Command::new("setfacl").args(["-m", "u:1234:rw,g:77:r"]).arg(odd.join("a third")))?,
        program::try_quietly(Command::new("setfacl").args(["-d", "-m", "u:1234:rx"]).arg(odd.join("folder")))?,
    ];
    if set.iter().any(|output| !output.status.success()) {
        eprintln!("attributes or access control lists cannot be set in {}: they are not compared", odd.display());
    }
    Ok(())
}

/// History of the versions as a program has kept it.
struct History {
    repository: Repository,
    source: PathBuf,
    labels: Vec<String>,
    source_bytes: u64,
}

impl History {
    /// Lets a program back up each version.
    fn kept(tool: &Tool, corpus: &Corpus, source: &Path, work: &Path) -> Result<Self> {
        let repository = tool.init(&work.join(tool.name.text()))?;
        let (mut labels, mut source_bytes) = (Vec::new(), 0);
        let first = corpus.versions.len().saturating_sub(VERSIONS_MAX);
        for (number, version) in corpus.versions[first..].iter().enumerate() {
            eprintln!("{}: version {number}", tool.name.text());
            become_version(source, version, number)?;
            let label = format!("v{number:03}");
            repository.backup(source, &label, Reading::Changed)?;
            labels.push(label);
            source_bytes += Listing::of(source)?.bytes();
        }
        fs::remove_dir_all(source)?;
        Ok(Self { repository, source: source.to_owned(), labels, source_bytes })
    }

    /// Restores every version by the program that kept it and by `silt`, and has rsync compare them.
    fn compare(&self, silt: &Repository, compares: &str, work: &Path) -> Result<()> {
        let (theirs, ours) = (work.join("theirs"), work.join("ours"));
        for label in &self.labels {
            let (_, there) = self.repository.restore(label, &self.source, &theirs)?;
            let (_, here) = silt.restore(label, &self.source, &ours)?;
            let mut rsync = Command::new("rsync");
            rsync.args([compares, "--delete", "--numeric-ids"]);
            if compares == BORG_COMPARES {
                rsync.args(["--modify-window", "1"]);
            }
            // With a slash at its end, a folder stands for what is in it.
            let differences = program::quietly(rsync.arg(there.join("")).arg(here.join("")))?;
            ensure!(differences.is_empty(), "snapshot {label} differs:\n{differences}");
            fs::remove_dir_all(&theirs)?;
            fs::remove_dir_all(&ours)?;
        }
        program::quietly(silt.command().args(["check", "--read-data"])).map(drop)
    }

    fn row(&self, silt: &Repository, import: Cost, again: &str, verify: &str) -> Result<Vec<String>> {
        Ok(vec![
            self.repository.name().text().to_owned(),
            self.labels.len().to_string(),
            table::bytes(self.source_bytes),
            table::bytes(tree::bytes(&self.repository.path())?),
            table::bytes(tree::bytes(&silt.path())?),
            seconds(import),
            again.to_owned(),
            verify.to_owned(),
        ])
    }
}

fn from_restic(history: &History, silt: &Tool, silt_import: &Path, work: &Path) -> Result<Vec<String>> {
    let repository = silt.init(&work.join("silt-of-restic"))?;
    let import = |more: &[&str]| {
        let mut command = with_environment(silt_import, &[&repository, &history.repository]);
        command.arg("restic").args(more);
        command
    };
    // What one that was killed has done by then must be of use to the next.
    program::ended_within(&mut import(&[]), Duration::from_millis(1500))?;
    let cost = program::measured(&mut import(&[]))?;
    let (again, said) = program::measured_saying(&mut import(&[]))?;
    let expected = format!("{} here already", history.labels.len());
    ensure!(said.contains("imported 0 snapshots") && said.contains(&expected), "the import was made again:\n{said}");
    let (verify, said) = program::measured_saying(&mut import(&["--verify"]))?;
    let expected = format!("{} are the same as in restic", history.labels.len());
    ensure!(said.contains(&expected), "not all is the same:\n{said}");
    expect_same_list(&history.repository, &repository)?;
    history.compare(&repository, RESTIC_COMPARES, work)?;
    history.row(&repository, cost, &seconds(again), &seconds(verify))
}

/// Fails unless ids, times, hosts, users, tags and paths are those of restic.
fn expect_same_list(restic: &Repository, silt: &Repository) -> Result<()> {
    let listed = |repository: &Repository| -> Result<Vec<String>> {
        let text = program::quietly(repository.command().args(["snapshots", "--json"]))?;
        let value: serde_json::Value = serde_json::from_str(&text)?;
        let list = value.as_array().context("a list of snapshots")?;
        list.iter().map(facts).collect()
    };
    let (theirs, ours) = (listed(restic)?, listed(silt)?);
    ensure!(theirs == ours, "the lists differ:\n{}\n\n{}", theirs.join("\n"), ours.join("\n"));
    Ok(())
}

fn facts(snapshot: &serde_json::Value) -> Result<String> {
    let text = |name: &str| snapshot[name].as_str().with_context(|| format!("a snapshot without {name}"));
    // The second half of an id is our own; restic writes times with the offset of their place.
    let id = text("id")?.get(..32).context("a short id")?;
    let time = program::quietly(Command::new("date").args(["-u", "+%s", "-d", text("time")?]))?;
    let (host, user, time) = (text("hostname")?, text("username")?, time.trim());
    Ok(format!("{id} {time} {host} {user} {} {}", snapshot["tags"], snapshot["paths"]))
}

fn from_borg(history: &History, silt: &Tool, work: &Path) -> Result<Vec<String>> {
    let repository = silt.init(&work.join("silt-of-borg"))?;
    let archive = work.join("archive.tar");
    let mut cost = Cost::default();
    for label in &history.labels {
        let name = format!("{}::{label}", history.repository.path().display());
        program::quietly(history.repository.command().args(["export-tar", &name]).arg(&archive))?;
        let mut import = repository.command();
        import.args(["import", "tar", "--series", "borg", "--tag", label]).arg(&archive);
        cost = cost.then(program::measured(&mut import)?);
        fs::remove_file(&archive)?;
    }
    history.compare(&repository, BORG_COMPARES, work)?;
    history.row(&repository, cost, "", "")
}

/// A program that is given the environment of both repositories.
fn with_environment(program: &Path, repositories: &[&Repository]) -> Command {
    let mut command = Command::new(program);
    for repository in repositories {
        command.envs(repository.command().get_envs().filter_map(|(name, value)| Some((name, value?))));
    }
    command
}

fn seconds(cost: Cost) -> String {
    format!("{:.1}", cost.wall.as_secs_f64())
}
