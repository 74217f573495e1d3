//! Power loss below the file system: the real program works on a real ext4 whose disk logs every write and flush; then
//! the disk is put back as a power loss would have left it, at one moment after another, with any part of what was not
//! flushed. The journal is replayed by the kernel as after any crash. Whatever command had ended by then must have its
//! effect, and everything must be sound.

use super::Options;
use super::device::{Log, Mounted};
use crate::damage::edit;
use crate::kill_loop::generate;
use anyhow::{Context, Result, ensure};
use siltstone_testbed::deterministic::Sequence;
use siltstone_testbed::install::{self, Needed};
use siltstone_testbed::machine;
use siltstone_testbed::program;
use siltstone_testbed::record;
use siltstone_testbed::tool::{Reading, Repository, Tool};
use siltstone_testbed::tree::Listing;
use siltstone_testbed::workspace::Build;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

const NEEDED: [Needed; 2] =
    [Needed { program: "mkfs.ext4", package: "e2fsprogs" }, Needed { program: "losetup", package: "mount" }];
/// The size of the disk.
const DISK_BYTES: u64 = 64 << 20;

/// Runs them; the first state that is not sound ends it.
pub(super) fn run(options: &Options) -> Result<()> {
    if !install::is_root()? || !Path::new("/dev/fuse").exists() || !Path::new("/dev/loop-control").exists() {
        println!("power: NOT RUN: it needs root, /dev/fuse and loop devices");
        return Ok(());
    }
    install::ensure(&NEEDED)?;
    let folder = tempfile::tempdir()?;
    let recording = Recording::make(folder.path(), options.campaign.release)?;
    let (begin, end) = (recording.marks[0].position, recording.log.position());
    for loss in 0..options.losses {
        let mut sequence = Sequence::of(&[options.seed, loss]);
        let position = begin + sequence.index(end - begin + 1);
        recording.verify(position, &mut sequence).with_context(|| {
            format!("seed {}, loss {loss}, after {position} of {end} writes and flushes", options.seed)
        })?;
    }
    let flushes = recording.log.flushes(end);
    let (losses, writes) = (options.losses, end - flushes);
    let report =
        format!("{losses} losses among {writes} writes and {flushes} flushes: nothing that had ended was undone");
    println!("power: {report}");
    if options.campaign.record { keep(&report, options.seed, folder.path()) } else { Ok(()) }
}

fn keep(report: &str, seed: u64, work: &Path) -> Result<()> {
    let notes = [format!("ext4 on a disk of {} MiB, seed {seed}", DISK_BYTES >> 20)];
    record::keep("power", &format!("power-{}", machine::today()), &format!("{report}.\n"), &notes, work)
}

/// Expectations that hold from some place of the log on.
struct Mark {
    position: usize,
    /// The snapshots that had been made, and not been told to be forgotten.
    committed: BTreeMap<String, Listing>,
    /// The snapshots that had been forgotten.
    forgotten: Vec<String>,
}

/// A disk's log, and what the commands had done by when.
struct Recording {
    log: Log,
    marks: Vec<Mark>,
    tool: Tool,
    folder: PathBuf,
    source: PathBuf,
}

impl Recording {
    fn make(folder: &Path, release: bool) -> Result<Self> {
        let tool = Tool::silt_for_trials(Build::of(release), &[])?;
        let image = folder.join("image");
        File::create(&image)?.set_len(DISK_BYTES)?;
        let eager = "lazy_itable_init=0,lazy_journal_init=0";
        program::quietly(Command::new("mkfs.ext4").args(["-q", "-E", eager]).arg(&image))?;
        let log = Log::new(fs::read(&image)?);
        let source = folder.join("source");
        let mut sequence = Sequence::new(3);
        generate(&source, 2, &mut sequence)?;
        let mut recording = Self { log, marks: Vec::new(), tool, folder: folder.to_path_buf(), source };
        let mounted = Mounted::logged(&recording.log, folder)?;
        recording.work(mounted.folder(), &mut sequence)?;
        Ok(recording)
    }

    /// The commands whose effects are looked for.
    fn work(&mut self, disk: &Path, sequence: &mut Sequence) -> Result<()> {
        let repository = self.tool.init(&disk.join("silt"))?;
        let (mut committed, mut forgotten) = (BTreeMap::new(), Vec::new());
        self.mark(&committed, &forgotten);
        for version in 0..5 {
            edit(&self.source, sequence)?;
            let label = format!("v{version}");
            repository.backup(&self.source, &label, Reading::Changed)?;
            committed.insert(label, Listing::of(&self.source)?);
            self.mark(&committed, &forgotten);
            if version == 2 || version == 3 {
                let old = format!("v{}", version - 1);
                // From here on it may be gone.
                committed.remove(&old);
                self.mark(&committed, &forgotten);
                repository.forget(std::slice::from_ref(&old))?;
                forgotten.push(old);
                self.mark(&committed, &forgotten);
            }
        }
        Ok(())
    }

    fn mark(&mut self, committed: &BTreeMap<String, Listing>, forgotten: &[String]) {
        let position = self.log.position();
        self.marks.push(Mark { position, committed: committed.clone(), forgotten: forgotten.to_vec() });
    }

    /// Looks at what a loss at this position leaves.
    fn verify(&self, position: usize, sequence: &mut Sequence) -> Result<()> {
        let folder = tempfile::tempdir_in(&self.folder)?;
        let image = folder.path().join("image");
        fs::write(&image, self.log.after_power_loss(position, sequence))?;
        let mounted = Mounted::image(&image, folder.path())?;
        let repository = self.tool.repository_at(&mounted.folder().join("silt"));
        let mark = self.marks.iter().rev().find(|mark| mark.position <= position).context("a mark")?;
        self.verify_repository(&repository, mark, folder.path())
    }

    fn verify_repository(&self, repository: &Repository, mark: &Mark, folder: &Path) -> Result<()> {
        let labels = repository.labels()?;
        for forgotten in &mark.forgotten {
            ensure!(!labels.contains(forgotten), "{forgotten} was forgotten and is listed");
        }
        program::quietly(repository.command().args(["check", "--read-data"]))?;
        repository.expect_restored(&mark.committed, &self.source, &folder.join("restored"))?;
        repository.backup(&self.source, "after", Reading::Changed)?;
        program::quietly(repository.command().args(["check", "--read-data"])).map(drop)
    }
}
