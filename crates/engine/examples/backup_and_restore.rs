//! Backs up a folder, changes it, backs it up again, restores the first snapshot, and forgets it. All in a new folder:
//! `cargo run -p siltstone-engine --example backup_and_restore FOLDER`

use siltstone_engine::backup::{BackupOptions, Source, default_chunker};
use siltstone_engine::check::{CheckOptions, ReadData};
use siltstone_engine::forget::{ForgetOptions, SnapshotSelection};
use siltstone_engine::restore::RestoreOptions;
use siltstone_engine::snapshots::SnapshotFilter;
use siltstone_engine::{Resources, Session};
use siltstone_store::Time;
use siltstone_store::catalog::EntryPath;
use siltstone_store::keys::{Argon2Cost, KeyLabel};
use siltstone_store::repository::Repository;
use siltstone_store::storage::Disk;
use std::error::Error;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

const PASSWORD: &[u8] = b"an example's password";

#[allow(dead_code, reason = "a test runs the rest")]
fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("name an empty folder")?;
    run(&std::path::absolute(folder)?)
}

/// Does it all in this folder.
pub(crate) fn run(folder: &Path) -> Result<(), Box<dyn Error>> {
    let (source, target) = (folder.join("source"), folder.join("restored"));
    fs::create_dir_all(&source)?;
    make_repository(&folder.join("repository"))?;
    let resources = Resources::default().with_memory_bytes(256 << 20).with_cache(Some(folder.join("cache")));
    let session = Session::open(Arc::new(Disk::open(folder.join("repository"))?), PASSWORD, resources)?;

    let options = BackupOptions::default().with_series(Some("example".into()));
    for text in ["the first version", "the second one"] {
        fs::write(source.join("notes.txt"), text)?;
        let summary = session.backup(Source::Paths(vec![source.clone()]), &options.clone().with_force(true))?;
        println!("backed up {} files", summary.statistics.files);
    }

    let snapshots = session.snapshots(&SnapshotFilter::default())?;
    let oldest = snapshots.first().ok_or("there are two")?;
    let below = EntryPath::new(source.as_os_str().as_bytes().strip_prefix(b"/").ok_or("an absolute path")?)?;
    let summary = session.restore(oldest, &RestoreOptions::new(&target).with_below(Some(below)))?;
    println!("restored {} files: {:?}", summary.files_restored, fs::read_to_string(target.join("notes.txt"))?);

    let plan = session.plan_forget(SnapshotSelection::Given(vec![oldest.key()]), &ForgetOptions::default())?;
    println!("forgetting it gives back {} bytes", session.forecast(&plan)?.bytes_returned());
    session.execute(&plan)?;
    let report = session.check(&CheckOptions::reading(ReadData::All))?;
    println!("{} snapshot is left, with {} faults", report.snapshots, report.findings.len());
    Ok(())
}

/// Makes a repository that the password opens.
fn make_repository(folder: &Path) -> Result<(), Box<dyn Error>> {
    let label = KeyLabel { created: Time::default(), host: "example".into(), user: "example".into() };
    let storage = Arc::new(Disk::create(folder)?);
    Repository::init(storage, PASSWORD, &label, Argon2Cost::DEFAULT, default_chunker())?;
    Ok(())
}
