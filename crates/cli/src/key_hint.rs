//! Which key slots this machine opened last: a hint that saves trying a password on the slots of others, and nothing
//! more.
//!
//! One small file of the user's state folder holds the ids, newest first. They are random, so one list serves all
//! repositories.

use crate::environment;
use siltstone_store::KeyId;
use std::fs::DirBuilder;
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// How many ids are kept.
const KEPT: usize = 64;
/// Bytes of an id and the end of its line.
const LINE_BYTES: usize = 33;

fn file() -> Option<PathBuf> {
    Some(environment::state_folder()?.join("last-keys"))
}

/// The ids kept, newest first.
pub(crate) fn kept() -> Vec<String> {
    let mut text = String::new();
    if let Some(file) = file().and_then(|file| std::fs::File::open(file).ok()) {
        // What cannot be read is no hint.
        let _ = file.take((KEPT * LINE_BYTES) as u64).read_to_string(&mut text);
    }
    text.lines().filter(|line| KeyId::from_hex(line).is_some()).map(str::to_owned).collect()
}

/// Puts an id in front. That it cannot be kept costs time only.
pub(crate) fn keep(id: KeyId) {
    let (before, id) = (kept(), id.to_string());
    if before.first() != Some(&id) {
        let others = before.into_iter().filter(|other| *other != id);
        let lines: Vec<String> = std::iter::once(id.clone()).chain(others).take(KEPT).collect();
        let _ = write(&(lines.join("\n") + "\n"));
    }
}

fn write(text: &str) -> Option<()> {
    let file = file()?;
    let folder = file.parent()?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
    let temporary = folder.join(format!("last-keys.{}", std::process::id()));
    std::fs::write(&temporary, text).ok()?;
    std::fs::rename(&temporary, &file).ok()
}
