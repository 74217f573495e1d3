//! The corpus that is kept in the repository: inputs that reach what no seed reaches, found by earlier campaigns, as
//! one archive for each target, `fuzz/corpus/<target>.tar.zst`.

use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Level of zstd: an archive is packed seldom, and every clone fetches it.
const LEVEL: i32 = 19;
/// Bytes of the inputs of one target, the smallest first; what is beyond is left out, so that all archives together
/// stay below 3 MB.
const BYTES_MAX: u64 = 150 << 10;

fn archive(archives: &Path, target: &str) -> PathBuf {
    archives.join(target).with_extension("tar.zst")
}

/// Returns the kept inputs of a target from the folder of archives; none if it has no archive.
///
/// # Errors
/// The archive cannot be read.
pub fn inputs(archives: &Path, target: &str) -> Result<Vec<Vec<u8>>> {
    let path = archive(archives, target);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file,
    };
    let read = || -> io::Result<Vec<Vec<u8>>> {
        let mut archive = tar::Archive::new(zstd::Decoder::new(file?)?);
        let input = |entry: io::Result<tar::Entry<'_, _>>| {
            let mut bytes = Vec::new();
            entry?.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        archive.entries()?.map(input).collect()
    };
    read().with_context(|| format!("{} cannot be read", path.display()))
}

/// Writes the inputs in `folder` as the archive of a target, in an order and with times that depend on their bytes
/// alone. An archive of nothing is removed.
///
/// # Errors
/// An input cannot be read, or the archive not written.
pub fn pack(folder: &Path, archives: &Path, target: &str) -> Result<()> {
    let path = archive(archives, target);
    let mut inputs = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))? {
        inputs.push(fs::read(entry?.path())?);
    }
    inputs.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
    let mut bytes = 0;
    let fits = |input: &&Vec<u8>| {
        bytes += input.len() as u64;
        bytes <= BYTES_MAX
    };
    let kept: Vec<&Vec<u8>> = inputs.iter().take_while(fits).collect();
    if kept.is_empty() {
        return if path.exists() { Ok(fs::remove_file(&path)?) } else { Ok(()) };
    }
    fs::create_dir_all(archives)?;
    let file = File::create(&path).with_context(|| format!("{} cannot be made", path.display()))?;
    let mut archive = tar::Builder::new(zstd::Encoder::new(file, LEVEL)?);
    for input in kept {
        let mut header = tar::Header::new_ustar();
        header.set_size(input.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, crate::seeds::name(input), &input[..])?;
    }
    archive.into_inner()?.finish()?.sync_all()?;
    Ok(())
}
