//! Errors of profiles.

use std::io;
use std::path::PathBuf;

/// A profile cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProfileError {
    #[error("there is no profile '{name}': looked for {}", list(.looked_at))]
    Missing { name: String, looked_at: Vec<PathBuf> },
    #[error("'{name}' is no name of a profile: it takes letters, digits, '-', '_' and '.', or a path with a slash")]
    BadName { name: String },
    #[error("cannot read the profile {path}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the profile {path} is not TOML: {}", .source.to_string().trim_end())]
    NotToml { path: PathBuf, source: Box<toml::de::Error> },
    #[error("the profile {path} inherits from itself")]
    Circle { path: PathBuf },
    #[error(
        "the profile {path} names programs to run, and {writable} may be written by others: \
         'chmod go-w' it, and let root or the user who runs silt own it"
    )]
    WritableByOthers { path: PathBuf, writable: PathBuf },
    #[error("the profile {path}: {wrong}")]
    Wrong { path: PathBuf, wrong: WrongKey },
    #[error("no profile is chosen: name one by -P, or make {}", list(.looked_at))]
    NoneChosen { looked_at: Vec<PathBuf> },
}

/// A key of a profile that is not understood.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WrongKey {
    #[error("there is no {what} '{key}'{}", suggestion(.near.as_deref()))]
    Unknown { what: String, key: String, near: Option<String> },
    #[error("'{key}' takes {wanted}, not {found}")]
    Kind { key: String, wanted: &'static str, found: &'static str },
    #[error("[{section}]: {reason}")]
    Value { section: String, reason: String },
    #[error("'{first}' and '{second}' exclude each other, give one")]
    Both { first: String, second: String },
    #[error("environment.{name}: {reason}")]
    Variable { name: String, reason: String },
}

impl WrongKey {
    pub(super) fn in_file(self, path: Option<&PathBuf>) -> ProfileError {
        ProfileError::Wrong { path: path.cloned().unwrap_or_default(), wrong: self }
    }
}

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(" and ")
}

fn suggestion(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!("; did you mean '{near}'?"))
}
