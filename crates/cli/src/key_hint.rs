//! The key slot by which this machine opened each repository last: a hint that saves listing slots and trying a
//! password on those of others, and nothing more.
//!
//! One small file of the user's state folder holds a line for each place, the newest first: the slot's id, a blank, and
//! the address.

use crate::environment;
use siltstone_store::KeyId;
use std::fs::DirBuilder;
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Places that are remembered.
const KEPT: usize = 64;
/// Bytes of a line; a place with a longer address is not remembered.
const LINE_BYTES_MAX: usize = 1024;

fn file() -> Option<PathBuf> {
    Some(environment::state_folder()?.join("last-keys"))
}

/// Returns the id of the slot that opened the repository at this address last.
pub(crate) fn kept(location: &str) -> Option<String> {
    let text = read();
    let (id, _) = text.lines().filter_map(|line| line.split_once(' ')).find(|(_, place)| *place == location)?;
    KeyId::from_hex(id).map(|id| id.to_string())
}

/// Remembers the slot that opened the repository at this address. That it cannot be kept costs time only.
pub(crate) fn keep(id: KeyId, location: &str) {
    let (before, line) = (read(), format!("{id} {location}"));
    if line.len() >= LINE_BYTES_MAX || line.contains('\n') || before.lines().next() == Some(&line) {
        return;
    }
    let is_other = |other: &&str| other.split_once(' ').is_some_and(|(_, place)| place != location);
    let lines: Vec<&str> = std::iter::once(line.as_str()).chain(before.lines().filter(is_other)).take(KEPT).collect();
    let _ = write(&(lines.join("\n") + "\n"));
}

/// The file, as far as it can be read: what cannot be is no hint.
fn read() -> String {
    let mut text = String::new();
    if let Some(file) = file().and_then(|file| std::fs::File::open(file).ok()) {
        let _ = file.take((KEPT * LINE_BYTES_MAX) as u64).read_to_string(&mut text);
    }
    text
}

fn write(text: &str) -> Option<()> {
    let file = file()?;
    let folder = file.parent()?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
    let temporary = folder.join(format!("last-keys.{}", std::process::id()));
    std::fs::write(&temporary, text).ok()?;
    std::fs::rename(&temporary, &file).ok()
}
