//! One command on the repository, in a process of its own, so that its memory is its own.

use super::source::{FILES_IN_FOLDER, ROOT, Tree};
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use siltstone_engine::backup::{BackupOptions, Source, default_chunker};
use siltstone_engine::check::CheckOptions;
use siltstone_engine::forget::{ForgetOptions, SnapshotSelection};
use siltstone_engine::maintain::MaintainOptions;
use siltstone_engine::restore::RestoreOptions;
use siltstone_engine::snapshots::{SnapshotFilter, SnapshotView};
use siltstone_engine::{Resources, Session};
use siltstone_store::Time;
use siltstone_store::catalog::EntryPath;
use siltstone_store::container::ContainerKind;
use siltstone_store::keys::{Argon2Cost, KeyLabel};
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Disk, Listing, ObjectName, Storage};
use siltstone_testbed::deterministic::Sequence;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

const PASSWORD: &[u8] = b"cargo xtask bench scale";
const SERIES: &str = "scale";
/// Files that are read and compared.
const SAMPLE_FILES: u64 = 100;

/// Command that is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Step {
    /// A new repository.
    Init,
    /// The first version of the tree.
    First,
    /// Nothing changed since the first.
    Unchanged,
    /// The second version, in which one of a hundred files differs.
    Changed,
    /// The third version, by a machine that has never seen the repository.
    Cold,
    /// The list of snapshots.
    Snapshots,
    /// Files of the newest snapshot, here and there.
    Newest,
    /// Files of the oldest snapshot, here and there.
    Oldest,
    /// One folder of the newest snapshot.
    Restore,
    /// A check of the structure.
    Check,
    /// All snapshots go but the newest, and with them what it lacks.
    Forget,
    /// Maintenance, with nothing to do.
    Maintain,
}

/// Options of the process that runs one command.
#[derive(Args, Debug)]
pub(crate) struct StepOptions {
    #[arg(long)]
    pub(super) step: Step,
    /// Folder of the repository, the cache and what is restored.
    #[arg(long)]
    pub(super) folder: PathBuf,
    #[arg(long)]
    pub(super) files: u64,
    #[arg(long)]
    pub(super) file_bytes: u64,
    #[arg(long)]
    pub(super) shrink: u64,
    /// Memory that the command may take, bytes.
    #[arg(long)]
    pub(super) memory_bytes: u64,
}

/// Runs the command and prints what came of it, as JSON.
pub(crate) fn run(options: &StepOptions) -> Result<()> {
    let (folder, cache) = (options.folder.join("repository"), options.folder.join("cache"));
    if options.step == Step::Init {
        let label = KeyLabel { created: Time::default(), host: "host".into(), user: "user".into() };
        Repository::init(Arc::new(Disk::create(folder)?), PASSWORD, &label, Argon2Cost::TEST, default_chunker())?;
        return Ok(());
    }
    if options.step == Step::Cold {
        fs::remove_dir_all(&cache)?;
    }
    let begin = Instant::now();
    let storage = Arc::new(Disk::open(folder)?);
    let resources = Resources::default().with_memory_bytes(options.memory_bytes).with_cache(Some(cache.clone()));
    let session = Session::open(storage.clone(), PASSWORD, resources)?;
    let tree = Tree { files: options.files, file_bytes: options.file_bytes, shrink: options.shrink };
    let mut facts = act(&Acting { session: &session, tree, folder: &options.folder }, options.step)?;
    facts["seconds"] = json!(begin.elapsed().as_secs_f64());
    add_sizes(&mut facts, &session, storage.as_ref(), &cache)?;
    println!("{facts}");
    Ok(())
}

/// Means of a command.
struct Acting<'a> {
    session: &'a Session,
    tree: Tree,
    folder: &'a Path,
}

fn act(acting: &Acting<'_>, step: Step) -> Result<Value> {
    let session = acting.session;
    match step {
        Step::Init => Ok(json!({})),
        Step::First | Step::Unchanged => acting.back_up(0),
        Step::Changed => acting.back_up(1),
        Step::Cold => acting.back_up(2),
        Step::Snapshots => Ok(json!({ "snapshots": acting.snapshots()?.len() })),
        Step::Newest => acting.read_sample(&acting.newest()?),
        Step::Oldest => acting.read_sample(&acting.snapshots()?[0]),
        Step::Restore => acting.restore_folder(),
        Step::Check => {
            let report = session.check(&CheckOptions::default())?;
            ensure!(report.findings.is_empty(), "{:?}", report.findings);
            Ok(json!({ "containers": report.containers }))
        }
        Step::Forget => {
            let mut keys: Vec<_> = acting.snapshots()?.iter().map(SnapshotView::key).collect();
            keys.pop();
            let plan = session.plan_forget(SnapshotSelection::Given(keys), &ForgetOptions::default())?;
            let summary = session.execute(&plan)?;
            ensure!(summary.bytes_returned() > 0, "{summary:?}");
            Ok(json!({ "returned_bytes": summary.bytes_returned() }))
        }
        Step::Maintain => {
            let summary = session.maintain(&MaintainOptions::default())?;
            Ok(json!({ "written_bytes": summary.bytes_written }))
        }
    }
}

impl Acting<'_> {
    fn snapshots(&self) -> Result<Vec<SnapshotView>> {
        Ok(self.session.snapshots(&SnapshotFilter::default())?)
    }

    fn newest(&self) -> Result<SnapshotView> {
        self.snapshots()?.pop().context("there is a snapshot")
    }

    fn back_up(&self, version: u64) -> Result<Value> {
        let base = self.snapshots()?.pop().map(|view| Ok::<_, anyhow::Error>((view.snapshot.id, version_of(&view)?)));
        let base = base.transpose()?;
        let source =
            Source::Entries { paths: vec![format!("/{ROOT}").into_bytes()], entries: self.tree.entries(version, base) };
        let options = BackupOptions::default().with_series(Some(SERIES.to_owned()));
        let summary = self.session.backup(source, &options.with_tags(vec![version.to_string()]))?;
        let statistics = &summary.statistics;
        ensure!(statistics.files == self.tree.files && statistics.problems == 0, "{statistics:?}");
        let is_unchanged = |number: &u64| base.is_some_and(|(_, before)| self.tree.is_same(*number, version, before));
        let unchanged = (0..self.tree.files).filter(is_unchanged).count() as u64;
        ensure!(statistics.files_unchanged == unchanged, "{unchanged} unchanged, but {statistics:?}");
        Ok(json!({
            "logical_bytes": statistics.logical_bytes,
            "read_bytes": statistics.read_bytes,
            "chunks_new": statistics.chunks_new,
            "deltas": summary.migration.deltas_kept,
        }))
    }

    /// Reads files here and there and compares them with the source.
    fn read_sample(&self, view: &SnapshotView) -> Result<Value> {
        let (files, version) = (self.session.files(view)?, version_of(view)?);
        let mut sequence = Sequence::new(9);
        let mut bytes = 0;
        for _ in 0..SAMPLE_FILES {
            let file = self.tree.file(sequence.below(self.tree.files), version);
            let mut found = Vec::new();
            files.file(&EntryPath::new(file.path())?)?.read_to_end(&mut found)?;
            ensure!(file.is(&found)?, "{} differs", file.path());
            bytes += found.len() as u64;
        }
        Ok(json!({ "read_bytes": bytes }))
    }

    /// Restores the folder in the middle of the tree, and compares.
    fn restore_folder(&self) -> Result<Value> {
        let view = self.newest()?;
        let version = version_of(&view)?;
        let first = self.tree.files / 2 / FILES_IN_FOLDER * FILES_IN_FOLDER;
        let path = self.tree.file(first, version).path();
        let (folder, _) = path.rsplit_once('/').context("it has a folder")?;
        let target = self.folder.join("restored");
        let options = RestoreOptions::new(&target).with_below(Some(EntryPath::new(folder)?));
        let summary = self.session.restore(&view, &options)?;
        for number in first..(first + FILES_IN_FOLDER).min(self.tree.files) {
            let file = self.tree.file(number, version);
            let path = file.path();
            let (_, name) = path.rsplit_once('/').context("it has a name")?;
            ensure!(file.is(&fs::read(target.join(name))?)?, "{path} differs");
        }
        fs::remove_dir_all(&target)?;
        Ok(json!({ "read_bytes": summary.bytes_restored }))
    }
}

/// Version of the tree that a snapshot is of: its tag.
fn version_of(view: &SnapshotView) -> Result<u64> {
    Ok(view.snapshot.tags.first().context("a snapshot names its version")?.parse()?)
}

/// Adds the repository's bytes by kind, and those of the cache.
fn add_sizes(facts: &mut Value, session: &Session, storage: &Disk, cache: &Path) -> Result<()> {
    let (mut data, mut metadata, mut manifests, mut objects) = (0, 0, 0, 0);
    for meta in storage.list(Listing::All)? {
        objects += 1;
        match meta.name {
            ObjectName::Container(ContainerKind::Data, ..) => data += meta.bytes,
            ObjectName::Container(..) => metadata += meta.bytes,
            ObjectName::Manifest(..) | ObjectName::ManifestPart(..) | ObjectName::Copy(_) => manifests += meta.bytes,
            _ => {}
        }
    }
    let series = session.repository().keys().series_id(SERIES);
    let chunks = session.repository().manifest(series)?.map_or(0, |manifest| manifest.next_data.0);
    facts["data_bytes"] = json!(data);
    facts["metadata_bytes"] = json!(metadata);
    facts["manifest_bytes"] = json!(manifests);
    facts["objects"] = json!(objects);
    facts["chunks"] = json!(chunks);
    facts["cache_bytes"] = json!(siltstone_testbed::tree::bytes(cache)?);
    Ok(())
}
