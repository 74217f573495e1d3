//! Finding profiles and reading them, with those that they inherit from.

use super::error::ProfileError;
use super::rank;
use crate::environment;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Folder of the profiles of all users.
const SYSTEM: &str = "/etc/siltstone/profiles";
/// Key that names the profiles whose values hold where this one has none.
const INHERIT: &str = "inherit";
/// Bits of a file's mode that let its group and others write.
const OTHERS_WRITE: u32 = 0o022;
/// Bit of a folder's mode that lets owners alone rename and remove what is in it.
const STICKY: u32 = 0o1000;

/// A profile's values, over those that it inherits.
#[derive(Debug)]
pub(super) struct Loaded {
    /// Its file, then those that it inherits from.
    pub(super) files: Vec<PathBuf>,
    pub(super) table: Table,
}

/// Tells whether there is a profile of this name.
pub(super) fn exists(name: &str) -> bool {
    places(name).iter().any(|path| path.exists())
}

/// Reads the profile of a name, or at a path with a slash.
pub(super) fn load(name: &str) -> Result<Loaded, ProfileError> {
    load_below(name, None, &[])
}

/// Reads a profile that is named in a profile of this folder. `open` are those that are being read.
fn load_below(name: &str, folder: Option<&Path>, open: &[PathBuf]) -> Result<Loaded, ProfileError> {
    let path = find(name, folder)?;
    if open.contains(&path) {
        return Err(ProfileError::Circle { path });
    }
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|source| ProfileError::Unreadable { path: path.clone(), source })?;
    let not_toml = |source| ProfileError::NotToml { path: path.clone(), source: Box::new(source) };
    let mut own: Table = toml::from_str(&text).map_err(not_toml)?;
    let bases = match own.remove(INHERIT) {
        None => Vec::new(),
        Some(Value::String(name)) => vec![name],
        Some(names) => names.try_into().map_err(not_toml)?,
    };
    let open = [open, std::slice::from_ref(&path)].concat();
    let mut loaded = Loaded { files: vec![path.clone()], table: Table::new() };
    for base in bases {
        let base = load_below(&base, path.parent(), &open)?;
        loaded.files.extend(base.files);
        merge(&mut loaded.table, base.table);
    }
    merge(&mut loaded.table, own);
    Ok(loaded)
}

/// Lays values over others. What stands in for another one, as a password file for a password command, takes its place.
fn merge(below: &mut Table, over: Table) {
    let rivals = over.keys().flat_map(|key| rank::rivals(key)).filter(|rival| !over.contains_key(**rival));
    rivals.for_each(|rival| drop(below.remove(*rival)));
    for (key, value) in over {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(over)) => merge(below, over),
            (_, value) => drop(below.insert(key, value)),
        }
    }
}

fn find(name: &str, folder: Option<&Path>) -> Result<PathBuf, ProfileError> {
    if name.contains('/') {
        return Ok(folder.map_or_else(|| PathBuf::from(name), |folder| folder.join(name)));
    }
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if !name.chars().all(is_plain) || name.is_empty() || name.starts_with(['.', '-']) {
        return Err(ProfileError::BadName { name: name.to_owned() });
    }
    let looked_at = places(name);
    let found = looked_at.iter().find(|path| path.exists()).cloned();
    found.ok_or_else(|| ProfileError::Missing { name: name.to_owned(), looked_at })
}

/// Where a profile may lie: the user's goes before that of the system.
pub(super) fn places(name: &str) -> Vec<PathBuf> {
    let own = environment::config_folder().map(|folder| folder.join("profiles"));
    let folders = own.into_iter().chain([PathBuf::from(SYSTEM)]);
    folders.map(|folder| folder.join(format!("{name}.toml"))).collect()
}

/// Refuses a file whose programs someone else could choose, by writing to it or by putting another one in its place.
pub(super) fn refuse_if_writable_by_others(path: &Path) -> Result<(), ProfileError> {
    let unreadable = |source: io::Error| ProfileError::Unreadable { path: path.to_owned(), source };
    let real = path.canonicalize().map_err(unreadable)?;
    for place in real.ancestors() {
        let status = std::fs::metadata(place).map_err(unreadable)?;
        let is_shared = status.is_dir() && status.mode() & STICKY != 0;
        let is_trusted = status.uid() == 0 || status.uid() == rustix::process::geteuid().as_raw();
        if !is_trusted || (status.mode() & OTHERS_WRITE != 0 && !is_shared) {
            return Err(ProfileError::WritableByOthers { path: path.to_owned(), writable: place.to_owned() });
        }
    }
    Ok(())
}
