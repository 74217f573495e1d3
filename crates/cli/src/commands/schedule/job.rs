//! Jobs: a command that a scheduler is to run, and when.

use super::ScheduleError;
use crate::environment;
use crate::profile::Profile;

/// Variables that lead to the folders of profiles, records and caches; nothing secret.
const FOLDERS: [&str; 5] = ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "SILT_STATE_DIR", "SILT_CACHE_DIR"];

/// A command that runs by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Job {
    pub(super) profile: String,
    pub(super) command: String,
    pub(super) when: String,
    /// The program and its arguments.
    pub(super) words: Vec<String>,
    /// Variables that are set for it.
    pub(super) variables: Vec<(&'static str, String)>,
}

impl Job {
    /// The jobs of a profile.
    pub(super) fn of(profile: &Profile) -> Result<Vec<Self>, ScheduleError> {
        let program = std::env::current_exe().map_err(ScheduleError::NoProgram)?;
        let text =
            |path: &std::path::Path| path.to_str().filter(|text| !text.contains(['\n', '\r'])).map(str::to_owned);
        let bad = || ScheduleError::BadPath { path: program.display().to_string() };
        let program = text(&program).ok_or_else(bad)?;
        let set = FOLDERS.into_iter().filter_map(|name| Some((name, environment::variable(name)?)));
        let variables = set.map(|(name, value)| {
            let absolute = std::path::absolute(&value).unwrap_or_else(|_| value.into());
            let path =
                text(&absolute).ok_or_else(|| ScheduleError::BadPath { path: absolute.display().to_string() })?;
            Ok((name, path))
        });
        let variables = variables.collect::<Result<Vec<_>, ScheduleError>>()?;
        let job = |(command, when): (&str, &str)| Self {
            profile: profile.name.clone(),
            command: command.to_owned(),
            when: when.trim().to_owned(),
            words: vec![program.clone(), "--profile".to_owned(), profile.reference.clone(), command.to_owned()],
            variables: variables.clone(),
        };
        Ok(profile.schedules().map(job).collect())
    }
}
