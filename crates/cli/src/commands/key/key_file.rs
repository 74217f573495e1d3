//! Key files: made where none is, and read.

use crate::error::CliError;
use crate::password::{Password, PasswordSource, Whose};
use siltstone_store::KeyFile;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use zeroize::Zeroizing;

/// Returns the line of the key file at this path, which is made if nothing is there: durable before any repository
/// needs it.
///
/// # Errors
/// Fails if the file is there and is no key file, or cannot be read or made.
pub(super) fn read_or_make(path: &Path) -> Result<Password, CliError> {
    let key = KeyFile::random()?;
    match make(path, &key) {
        Ok(()) => Ok(Zeroizing::new(key.line().as_bytes().to_vec())),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => read(path),
        Err(source) => Err(CliError::OutputFile { path: path.to_owned(), source }),
    }
}

/// Makes the file whole, or leaves none.
fn make(path: &Path, key: &KeyFile) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    fill(file, path, key).inspect_err(|_| {
        // Whatever keeps it there, the error names the file.
        let _ = fs::remove_file(path);
    })
}

fn fill(mut file: File, path: &Path, key: &KeyFile) -> io::Result<()> {
    file.write_all(key.line().as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn read(path: &Path) -> Result<Password, CliError> {
    let no_key_file = || CliError::NoKeyFile { path: path.to_owned() };
    let given = PasswordSource::File(path.to_owned()).read(Whose::NewKey).map_err(|error| match error {
        CliError::EmptyPassword { .. } => no_key_file(),
        error => error,
    })?;
    match KeyFile::parse(&given)? {
        Some(_) => Ok(given),
        None => Err(no_key_file()),
    }
}
