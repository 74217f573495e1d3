//! Reads the surroundings: variables, the machine's name, the user, the cache folder, the time zone.

use crate::error::CliError;
use siltstone_engine::Isa;
use siltstone_remote::Variables;
use siltstone_store::Time;
use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::OnceLock;

/// Variables of the profile, where the process has none of the name.
static ADDED: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// Adds the variables of the profile, once. Those of the process go before them.
pub(crate) fn add(variables: BTreeMap<String, String>) {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let _ = ADDED.set(variables.into_iter().filter(|(name, _)| !is_set(name)).collect());
}

/// The variables that were added, for programs that this one starts.
pub(crate) fn added() -> impl Iterator<Item = (&'static String, &'static String)> {
    ADDED.get().into_iter().flatten()
}

/// All variables that are texts, for places at a distance.
pub(crate) fn variables() -> Variables {
    Variables::of_process().with(added().map(|(name, value)| (name.clone(), value.clone())))
}

/// A variable that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    let added = || ADDED.get()?.get(name).map(OsString::from);
    env::var_os(name).filter(|value| !value.is_empty()).or_else(added).filter(|value| !value.is_empty())
}

/// A variable's value, parsed.
///
/// # Errors
/// [`CliError::BadVariable`] if it is set to something that is no such value.
pub(crate) fn parsed<T>(name: &'static str) -> Result<Option<T>, CliError>
where
    T: FromStr,
    T::Err: ToString,
{
    let Some(value) = variable(name) else { return Ok(None) };
    let text = value.to_string_lossy().into_owned();
    match text.parse() {
        Ok(value) => Ok(Some(value)),
        Err(error) => Err(CliError::BadVariable { name, value: text, reason: T::Err::to_string(&error) }),
    }
}

/// Looks at what no command asks for by itself: the instruction set.
///
/// # Errors
/// [`CliError::BadVariable`] if `$SILT_ISA` names none of this CPU.
pub(crate) fn check() -> Result<(), CliError> {
    let known = || Isa::available().map(Isa::name).collect::<Vec<_>>().join(", ");
    let bad =
        |value| CliError::BadVariable { name: Isa::VARIABLE, value, reason: format!("expected one of {}", known()) };
    Isa::chosen().map(|_| ()).map_err(|unknown| bad(unknown.name))
}

/// Name of this machine: `$SILT_HOST`, or what the system says.
pub(crate) fn host() -> String {
    variable("SILT_HOST").map_or_else(machine_name, |host| host.to_string_lossy().into_owned())
}

/// Name of this machine, from the system.
pub(crate) fn machine_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Name of the user by variable or by the system's list of users; the number where neither knows one.
pub(crate) fn user() -> String {
    let uid = rustix::process::getuid().as_raw();
    let set = || ["USER", "LOGNAME"].into_iter().find_map(variable).map(|name| name.to_string_lossy().into_owned());
    let listed = || name_in(&std::fs::read("/etc/passwd").ok()?, uid);
    set().or_else(listed).unwrap_or_else(|| uid.to_string())
}

/// The name of a user number in a list of lines `name:password:number:...`.
fn name_in(list: &[u8], uid: u32) -> Option<String> {
    let text = String::from_utf8_lossy(list);
    let number = uid.to_string();
    let line = text.lines().find(|line| line.split(':').nth(2) == Some(&number))?;
    line.split(':').next().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Tells whether the user may do anything to files.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Where the local index goes unless told: `$SILT_CACHE_DIR`, else `siltstone` in the user's cache folder; `None`
/// without a home.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    variable("SILT_CACHE_DIR").map(PathBuf::from).or_else(|| user_folder("XDG_CACHE_HOME", ".cache"))
}

/// Where this machine keeps what must outlive the cache: `$SILT_STATE_DIR`, else `siltstone` in the user's state
/// folder; `None` without a home.
pub(crate) fn state_folder() -> Option<PathBuf> {
    variable("SILT_STATE_DIR").map(PathBuf::from).or_else(|| user_folder("XDG_STATE_HOME", ".local/state"))
}

/// Where the user's own settings lie: `siltstone` in the configuration folder; `None` without a home.
pub(crate) fn config_folder() -> Option<PathBuf> {
    user_folder("XDG_CONFIG_HOME", ".config")
}

/// The folder `siltstone` in the user's folder that the variable `xdg` names, or else in this one below the home.
fn user_folder(xdg: &str, below_home: &str) -> Option<PathBuf> {
    let named = variable(xdg).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = named.or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(below_home)));
    Some(folder?.join("siltstone"))
}

/// Now, as the store writes it.
pub(crate) fn now() -> Time {
    store_time(jiff::Timestamp::now())
}

/// A moment as the store writes it: nanoseconds count upwards, before 1970 too.
pub(crate) fn store_time(moment: jiff::Timestamp) -> Time {
    let nanoseconds = moment.as_nanosecond();
    let seconds = nanoseconds.div_euclid(1_000_000_000);
    Time {
        seconds: i64::try_from(seconds).unwrap_or(if seconds < 0 { i64::MIN } else { i64::MAX }),
        nanoseconds: u32::try_from(nanoseconds.rem_euclid(1_000_000_000)).unwrap_or(0),
    }
}

/// Name and version of this program, as snapshots record it.
pub(crate) fn program() -> String {
    format!("silt {}", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_number() {
        let list = b"root:x:0:0:root:/root:/bin/sh\nme:x:1000:1000::/home/me:/bin/sh\nbroken\n";
        assert_eq!(name_in(list, 1000).as_deref(), Some("me"));
        assert_eq!(name_in(list, 7), None);
    }

    #[test]
    fn moments_before_1970_keep_their_nanoseconds() {
        let moment = jiff::Timestamp::from_nanosecond(-1).expect("a moment");
        assert_eq!(store_time(moment), Time { seconds: -1, nanoseconds: 999_999_999 });
    }
}
