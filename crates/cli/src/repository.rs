//! From options to an open repository.

use crate::context::Context;
use crate::context::GlobalArgs;
use crate::environment;
use crate::error::CliError;
use crate::key_hint;
use crate::memory;
use crate::output::Output;
use crate::password::{Password, PasswordSource};
use crate::retry::lease_terms;
use siltstone_store::StoreError;
use siltstone_store::config::older::OlderRecord;
use siltstone_store::keys::KeyLabel;
use siltstone_store::repository::{OpenOptions, Repository, find};
use siltstone_store::storage::{Disk, Storage, Traced};
use std::ffi::OsString;
use std::ops::{Deref, DerefMut};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How often a person may mistype the password.
const TRIES_MAX: u32 = 3;
/// Places other tools know; a path that begins so is hardly meant as a folder.
const FOREIGN_SCHEMES: [&str; 9] = ["s3", "sftp", "rest", "rclone", "b2", "azure", "gs", "swift", "ssh"];

/// The folder of the repository, by option or variable.
pub(crate) fn place(options: &GlobalArgs) -> Result<PathBuf, CliError> {
    let variable = |name| environment::variable(name).map(PathBuf::from);
    let given = choose(options.repo.clone(), options.repository_file.clone(), ["--repo", "--repository-file"])?;
    let set = || {
        let (repo, file) = (variable("SILT_REPOSITORY"), variable("SILT_REPOSITORY_FILE"));
        choose(repo, file, ["SILT_REPOSITORY", "SILT_REPOSITORY_FILE"])
    };
    match given {
        Some(place) => Ok(place),
        None => set()?.ok_or(CliError::NoRepositoryGiven),
    }
}

fn choose(
    place: Option<PathBuf>,
    file: Option<PathBuf>,
    [first, second]: [&'static str; 2],
) -> Result<Option<PathBuf>, CliError> {
    match (place, file) {
        (Some(_), Some(_)) => Err(CliError::Conflict { first, second }),
        (Some(place), None) => folder(&place).map(Some),
        (None, Some(file)) => folder(&first_line(&file)?).map(Some),
        (None, None) => Ok(None),
    }
}

fn first_line(path: &Path) -> Result<PathBuf, CliError> {
    let read = std::fs::read(path).map_err(|source| CliError::RepositoryFile { path: path.into(), source })?;
    let line = read.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
    if line.is_empty() {
        return Err(CliError::RepositoryFileEmpty { path: path.into() });
    }
    Ok(PathBuf::from(OsString::from_vec(line.to_vec())))
}

/// The folder a place means: `local:` may stand before it.
pub(crate) fn folder(place: &Path) -> Result<PathBuf, CliError> {
    let bytes = place.as_os_str().as_bytes();
    if let Some(path) = bytes.strip_prefix(b"local:") {
        return Ok(PathBuf::from(OsString::from_vec(path.to_vec())));
    }
    let scheme = FOREIGN_SCHEMES
        .iter()
        .find(|scheme| bytes.strip_prefix(scheme.as_bytes()).is_some_and(|rest| rest.starts_with(b":")));
    match scheme {
        Some(&scheme) => {
            Err(CliError::UnsupportedPlace { location: place.display().to_string(), scheme: scheme.to_owned() })
        }
        None => Ok(place.to_owned()),
    }
}

/// An open repository that says, when all is done, which containers were read with their parity.
pub(crate) struct Opened {
    repository: Repository,
    output: Output,
    tells_healed: bool,
}

impl Opened {
    /// A repository that is repaired: which containers its parity heals is what the repair tells.
    pub(crate) fn to_repair(repository: Repository, context: &Context) -> Self {
        Self { repository, output: context.output, tells_healed: false }
    }
}

impl Deref for Opened {
    type Target = Repository;

    fn deref(&self) -> &Repository {
        &self.repository
    }
}

impl DerefMut for Opened {
    fn deref_mut(&mut self) -> &mut Repository {
        &mut self.repository
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        for name in self.repository.healed().into_iter().filter(|_| self.tells_healed) {
            let name = name.to_string();
            let text = format_args!("{name} is damaged and was read with its parity: run 'silt repair --read-data'");
            self.output.warn(text);
        }
    }
}

/// Opens the repository; the password is asked for only once it is known that there is one.
pub(crate) fn open(context: &Context) -> Result<Opened, CliError> {
    Ok(open_and_tell(context)?.0)
}

/// As [`open`], but what this machine saw before is not held against it: a repair mends just that.
pub(crate) fn open_to_repair(context: &Context) -> Result<Opened, CliError> {
    let mut opened = unlock(context, &PasswordSource::choose(&context.options)?)?.0;
    opened.tells_healed = false;
    Ok(opened)
}

/// A repository by an older config, where the newest cannot be read; `None` where it can.
pub(crate) fn open_by_older_config(context: &Context) -> Result<Option<OlderRecord>, CliError> {
    let disk: Arc<dyn Storage> = Arc::new(Traced::new(Disk::open(&place(&context.options)?)?));
    let password = PasswordSource::choose(&context.options)?.read("enter password for repository: ")?;
    Ok(OlderRecord::open(&disk, &password, &open_options(context)?)?)
}

/// Bounds of opening a repository, and the keys that are tried first.
fn open_options(context: &Context) -> Result<OpenOptions, CliError> {
    let named = context.options.key_hint.clone().or_else(|| environment::parsed("SILT_KEY_HINT").ok().flatten());
    let hints = named.into_iter().chain(key_hint::kept()).collect();
    Ok(OpenOptions::default()
        .with_memory(context.options.memory.0)
        .with_key_hints(hints)
        .with_lease_terms(lease_terms(&context.options)?))
}

/// As [`open`], with standard input kept for the data.
pub(crate) fn open_keeping_stdin(context: &Context) -> Result<Opened, CliError> {
    let source = PasswordSource::choose(&context.options)?;
    if source.needs_stdin() { Err(CliError::PasswordAndData) } else { Ok(open_with(context, &source)?.0) }
}

/// As [`open`], with the password that opened it.
pub(crate) fn open_and_tell(context: &Context) -> Result<(Opened, Password), CliError> {
    open_with(context, &PasswordSource::choose(&context.options)?)
}

/// The place of a repository that is there.
///
/// # Errors
/// No password opens what is not there: that is told before one is asked for.
pub(crate) fn disk(context: &Context) -> Result<Arc<dyn Storage>, CliError> {
    let disk: Arc<dyn Storage> = Arc::new(Traced::new(Disk::open(&place(&context.options)?)?));
    find(disk.as_ref())?;
    Ok(disk)
}

fn open_with(context: &Context, source: &PasswordSource) -> Result<(Opened, Password), CliError> {
    let (opened, password) = unlock(context, source)?;
    memory::test(&opened, context)?;
    Ok((opened, password))
}

fn unlock(context: &Context, source: &PasswordSource) -> Result<(Opened, Password), CliError> {
    let disk = disk(context)?;
    let open = open_options(context)?;
    let mut tries = if source.is_person() { TRIES_MAX } else { 1 };
    loop {
        let password = source.read("enter password for repository: ")?;
        tries -= 1;
        match Repository::open_with(Arc::clone(&disk), &password, &open) {
            Err(StoreError::WrongPassword { .. }) if tries > 0 => context.output.warn("wrong password, try again"),
            opened => {
                let repository = opened?;
                key_hint::keep(repository.key_in_use());
                return Ok((Opened { repository, output: context.output, tells_healed: true }, password));
            }
        }
    }
}

/// Who makes a key slot, and when.
pub(crate) fn label(host: Option<&str>, user: Option<&str>) -> KeyLabel {
    KeyLabel {
        created: environment::now(),
        host: host.map_or_else(environment::machine_name, str::to_owned),
        user: user.map_or_else(environment::user, str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_folders_for_now() {
        let path = |text: &str| folder(Path::new(text)).map(|path| path.display().to_string());
        assert_eq!(path("/backups/repo").expect("fine"), "/backups/repo");
        assert_eq!(path("local:/backups/repo").expect("fine"), "/backups/repo");
        assert_eq!(path("s3-copy/repo").expect("fine"), "s3-copy/repo");
        assert!(matches!(path("s3:host/bucket"), Err(CliError::UnsupportedPlace { .. })));
    }

    #[test]
    fn a_repository_file_names_the_place_on_its_first_line() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), b" /backups/repo \nmore\n").expect("written");
        let options = GlobalArgs { repository_file: Some(file.path().into()), ..Default::default() };
        assert_eq!(place(&options).expect("fine"), Path::new("/backups/repo"));
        let both = GlobalArgs { repo: Some("x".into()), ..options };
        assert!(matches!(place(&both), Err(CliError::Conflict { .. })));
        std::fs::write(file.path(), b"\n").expect("written");
        assert!(matches!(first_line(file.path()), Err(CliError::RepositoryFileEmpty { .. })));
    }
}
