//! From options to an open repository.

use crate::context::Context;
use crate::context::GlobalArgs;
use crate::environment;
use crate::error::CliError;
use crate::from::FromArgs;
use crate::key_hint;
use crate::memory;
use crate::output::Output;
use crate::parse::Preset;
use crate::password::{Password, PasswordSource, Whose};
use crate::place;
use crate::retry::lease_terms;
use siltstone_engine::cost::LocationProfile;
use siltstone_remote::Place;
use siltstone_store::StoreError;
use siltstone_store::config::older::OlderRecord;
use siltstone_store::keys::KeyLabel;
use siltstone_store::repository::{OpenOptions, Repository, find};
use siltstone_store::storage::{CACHE_BYTES_DEFAULT, Cached, Latency, Prefetch, Storage};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::ops::{Deref, DerefMut};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How often a person may mistype the password.
const TRIES_MAX: u32 = 3;

/// The place of the repository, by option or variable.
pub(crate) fn place(options: &GlobalArgs) -> Result<Place, CliError> {
    let given = (options.repo.clone(), options.repository_file.clone());
    let variables = ["SILT_REPOSITORY", "SILT_REPOSITORY_FILE"];
    place_by(given, ["--repo", "--repository-file"], variables)?.ok_or(CliError::NoRepositoryGiven)
}

/// The place of a repository by an option or a variable of these names: the place itself, or a file that holds it.
fn place_by(
    given: (Option<PathBuf>, Option<PathBuf>),
    options: [&'static str; 2],
    variables: [&'static str; 2],
) -> Result<Option<Place>, CliError> {
    let address = address_by(given, options, variables)?;
    address.map(|address| Place::parse(address.as_os_str()).map_err(CliError::from)).transpose()
}

/// As [`place_by`], but what the place is was not looked at.
pub(crate) fn address_by(
    (repo, file): (Option<PathBuf>, Option<PathBuf>),
    options: [&'static str; 2],
    variables: [&'static str; 2],
) -> Result<Option<PathBuf>, CliError> {
    let given = choose(repo, file, options)?;
    let [repo, file] = variables.map(|name| environment::variable(name).map(PathBuf::from));
    if given.is_some() { Ok(given) } else { choose(repo, file, variables) }
}

/// Returns the costs of reading and moving where the repository lies.
pub(crate) fn preset(context: &Context) -> Result<LocationProfile, CliError> {
    let set = || environment::parsed::<Preset>("SILT_PRESET");
    let preset = context.options.preset.map_or_else(set, |preset| Ok(Some(preset)))?;
    Ok(match (preset, place(&context.options)?) {
        (Some(preset), _) => preset.0,
        (None, Place::Folder(_)) => LocationProfile::Local,
        (None, _) => LocationProfile::S3Internet,
    })
}

fn choose(
    place: Option<PathBuf>,
    file: Option<PathBuf>,
    [first, second]: [&'static str; 2],
) -> Result<Option<PathBuf>, CliError> {
    match (place, file) {
        (Some(_), Some(_)) => Err(CliError::Conflict { first, second }),
        (Some(place), None) => Ok(Some(place)),
        (None, Some(file)) => first_line(&file).map(Some),
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

/// An open repository that says, when all is done, which containers were read with their parity.
pub(crate) struct Opened {
    repository: Repository,
    output: Output,
    tells_healed: bool,
    /// Objects of which it was told that they are damaged.
    told: BTreeSet<String>,
}

impl Opened {
    /// A repository that is repaired: which containers its parity heals is what the repair tells.
    pub(crate) fn to_repair(repository: Repository, context: &Context) -> Self {
        Self { repository, output: context.output, tells_healed: false, told: BTreeSet::new() }
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

impl Opened {
    /// Notes objects of which the user knows by now that they are damaged.
    pub(crate) fn was_told(&mut self, objects: impl Iterator<Item = String>) {
        self.told.extend(objects);
    }

    /// Says which containers were read with their parity.
    pub(crate) fn tell_healed(&self) {
        let names = self.repository.healed().into_iter().filter(|_| self.tells_healed).map(|name| name.to_string());
        for name in names.filter(|name| !self.told.contains(name)) {
            let text = format_args!("{name} is damaged and was read with its parity: run 'silt repair --read-data'");
            self.output.warn(text);
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.tell_healed();
    }
}

/// Opens the repository; the password is asked for only once it is known that there is one.
pub(crate) fn open(context: &Context) -> Result<Opened, CliError> {
    Ok(open_and_tell(context)?.0)
}

/// As [`open`], but all is read from where it lies, nothing from this machine's cache of objects.
pub(crate) fn open_uncached(context: &Context) -> Result<Opened, CliError> {
    let (opened, _) = unlock(context, &PasswordSource::choose(&context.options)?)?;
    memory::test(&opened, None, context)?;
    Ok(opened)
}

/// As [`open`], but what this machine saw before is not held against it: a repair mends just that.
pub(crate) fn open_to_repair(context: &Context) -> Result<Opened, CliError> {
    let mut opened = unlock(context, &PasswordSource::choose(&context.options)?)?.0;
    opened.tells_healed = false;
    Ok(opened)
}

/// A repository by an older config, where the newest cannot be read; `None` where it can.
pub(crate) fn open_by_older_config(context: &Context) -> Result<Option<OlderRecord>, CliError> {
    let storage = place::open(&place(&context.options)?, context)?;
    let password = PasswordSource::choose(&context.options)?.read(Whose::Repository)?;
    let open = open_options(context, &storage, hinted_key(context))?;
    Ok(OlderRecord::open(&storage, &password, &open)?)
}

/// The key of the repository that is tried first, if the user names one.
fn hinted_key(context: &Context) -> Option<String> {
    hinted(context.options.key_hint.as_ref(), "SILT_KEY_HINT")
}

/// The key that is tried first, by option or by this variable.
fn hinted(option: Option<&String>, variable: &'static str) -> Option<String> {
    option.cloned().or_else(|| environment::parsed(variable).ok().flatten())
}

/// Bounds of opening the repository, and the keys that are tried first.
fn open_options(context: &Context, storage: &dyn Storage, named: Option<String>) -> Result<OpenOptions, CliError> {
    let hints = named.into_iter().chain(key_hint::kept(&storage.location())).collect();
    Ok(OpenOptions::default()
        .with_memory(context.options.memory.0)
        .with_key_hints(hints)
        .with_lease_terms(lease_terms(&context.options)?))
}

/// As [`open`], for a command that concerns one series alone, if it is known which. Standard input may be kept for the
/// data.
pub(crate) fn open_for_series(context: &Context, series: Option<&str>, keeps_stdin: bool) -> Result<Opened, CliError> {
    let source = PasswordSource::choose(&context.options)?;
    if keeps_stdin && source.needs_stdin() {
        return Err(CliError::PasswordAndData);
    }
    Ok(cached_and_tested(context, unlock(context, &source)?, series)?.0)
}

/// As [`open`], with the password that opened it.
pub(crate) fn open_and_tell(context: &Context) -> Result<(Opened, Password), CliError> {
    cached_and_tested(context, unlock(context, &PasswordSource::choose(&context.options)?)?, None)
}

/// The storage of a repository that is there.
///
/// # Errors
/// No password opens what is not there: that is told before one is asked for.
pub(crate) fn storage(context: &Context) -> Result<Arc<dyn Storage>, CliError> {
    let storage = place::open(&place(&context.options)?, context)?;
    find(Arc::clone(&storage))?;
    Ok(storage)
}

/// Opens the repository that is copied from. It may lie anywhere, with a password of its own.
pub(crate) fn open_from(context: &Context, from: &FromArgs) -> Result<Opened, CliError> {
    let given = (from.from_repo.clone(), from.from_repository_file.clone());
    let (options, variables) =
        (["--from-repo", "--from-repository-file"], ["SILT_FROM_REPOSITORY", "SILT_FROM_REPOSITORY_FILE"]);
    let place = place_by(given, options, variables)?.ok_or(CliError::NoSourceRepositoryGiven)?;
    let hint = hinted(from.from_key_hint.as_ref(), "SILT_FROM_KEY_HINT");
    let source = PasswordSource::choose_from(from)?;
    let unlocked = unlock_at(context, &place, (&source, Whose::Source), hint)?;
    Ok(cached_and_tested(context, unlocked, None)?.0)
}

fn cached_and_tested(
    context: &Context,
    (mut opened, password): (Opened, Password),
    series: Option<&str>,
) -> Result<(Opened, Password), CliError> {
    if let Some(repository) = with_cache(&opened, context) {
        opened.repository = repository;
    }
    memory::test(&opened, series, context)?;
    Ok((opened, password))
}

/// Puts the cache of objects in front of a repository over a network. It lies with the index of the same repository, so
/// that objects of another one at the same place are never taken for its own. Without it all works, only slower.
fn with_cache(repository: &Repository, context: &Context) -> Option<Repository> {
    let is_distant = repository.storage().capabilities().latency == Latency::Network;
    let cache = context.cache_folder().filter(|_| is_distant)?;
    let folder = cache.join(repository.id().to_string()).join("objects");
    let bytes_max = context.options.cache_size.map_or(CACHE_BYTES_DEFAULT, |size| size.0);
    Some(repository.over(|inner| match Cached::open(Arc::clone(&inner), &folder, bytes_max) {
        Ok(cached) => Arc::new(cached),
        Err(error) => {
            context.output.warn(format_args!("objects are not cached in {}: {error}", folder.display()));
            inner
        }
    }))
}

/// Has a place over a network asked at once for what the same command line asked for first when it was run before.
pub(crate) fn with_prefetch(storage: Arc<dyn Storage>, context: &Context) -> Arc<dyn Storage> {
    let is_distant = storage.capabilities().latency == Latency::Network;
    match context.cache_folder().filter(|_| is_distant) {
        Some(cache) => {
            let words: Vec<OsString> = std::env::args_os().skip(1).collect();
            let purpose = words.join(OsStr::from_bytes(b"\0"));
            Arc::new(Prefetch::start(storage, &cache.join("first-requests"), purpose.as_bytes()))
        }
        None => storage,
    }
}

fn unlock(context: &Context, source: &PasswordSource) -> Result<(Opened, Password), CliError> {
    let place = place(&context.options)?;
    let answered = context.answer.get().map(|password| PasswordSource::Answered(password.clone()));
    let source = answered.as_ref().filter(|_| *source == PasswordSource::Ask).unwrap_or(source);
    let unlocked = unlock_at(context, &place, (source, Whose::Repository), hinted_key(context))?;
    if *source == PasswordSource::Ask {
        let _ = context.answer.set(unlocked.1.clone());
    }
    Ok(unlocked)
}

fn unlock_at(
    context: &Context,
    place: &Place,
    (source, whose): (&PasswordSource, Whose),
    hint: Option<String>,
) -> Result<(Opened, Password), CliError> {
    let storage = with_prefetch(place::open(place, context)?, context);
    let open = open_options(context, &storage, hint)?;
    let mut found = find(storage)?;
    let mut tries = if source.is_person() { TRIES_MAX } else { 1 };
    loop {
        let password = source.read(whose)?;
        tries -= 1;
        match found.open(&password, &open) {
            Err(StoreError::WrongPassword { .. }) if tries > 0 => context.output.warn("wrong password, try again"),
            opened => {
                let repository = opened?;
                key_hint::keep(repository.key_in_use(), &repository.storage().location());
                return Ok((
                    Opened { repository, output: context.output, tells_healed: true, told: BTreeSet::new() },
                    password,
                ));
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
    fn a_repository_file_names_the_place_on_its_first_line() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), b" /backups/repo \nmore\n").expect("written");
        let options = GlobalArgs { repository_file: Some(file.path().into()), ..Default::default() };
        assert_eq!(place(&options).expect("fine"), Place::Folder("/backups/repo".into()));
        let both = GlobalArgs { repo: Some("x".into()), ..options };
        assert!(matches!(place(&both), Err(CliError::Conflict { .. })));
        std::fs::write(file.path(), b"\n").expect("written");
        assert!(matches!(first_line(file.path()), Err(CliError::RepositoryFileEmpty { .. })));
    }
}
