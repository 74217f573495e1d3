//! Policies that the record of the repository holds: one for each series that has its own, and one for all others. So
//! a machine that maintains a repository of many knows what each of them wants.
//!
//! They are settings of the config, a policy's text each (`policy/text.rs`): `policy` for all others,
//! `policy/<name of the series>` for one.

use super::policy::KeepPolicy;
use crate::EngineError;
use siltstone_store::config::Config;
use siltstone_store::repository::Repository;
use std::collections::BTreeMap;

/// Name of the setting for all series that have no policy of their own.
const SETTING: &str = "policy";
/// Begin of the names of the others.
const SETTING_OF_SERIES: &str = "policy/";

/// Series that a recorded policy is for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PolicyScope {
    /// All that have none of their own.
    Others,
    /// One series, by its name.
    Series(String),
}

impl PolicyScope {
    fn setting(&self) -> String {
        match self {
            Self::Others => SETTING.to_owned(),
            Self::Series(name) => format!("{SETTING_OF_SERIES}{name}"),
        }
    }

    fn of_setting(name: &str) -> Option<Self> {
        let series = || name.strip_prefix(SETTING_OF_SERIES).map(|name| Self::Series(name.to_owned()));
        if name == SETTING { Some(Self::Others) } else { series() }
    }
}

/// The policies of a repository.
#[derive(Clone, Default, Debug)]
pub struct RecordedPolicies(BTreeMap<PolicyScope, KeepPolicy>);

impl RecordedPolicies {
    /// Reads them from the record.
    ///
    /// # Errors
    /// [`EngineError::RecordedPolicy`] for one that this program does not understand whole.
    pub fn read(config: &Config) -> Result<Self, EngineError> {
        let policies = config.settings.iter().filter_map(|(name, value)| Some((PolicyScope::of_setting(name)?, value)));
        let read = policies.map(|(scope, value)| {
            let text = str::from_utf8(value).map_err(|_| refused(&scope, "it is not text"))?;
            let policy = parsed(&scope, text)?;
            Ok((scope, policy))
        });
        read.collect::<Result<_, EngineError>>().map(Self)
    }

    /// Returns the policy that holds for a series, its own before that of all others.
    pub fn of_series(&self, name: &str) -> Option<&KeepPolicy> {
        self.0.get(&PolicyScope::Series(name.to_owned())).or_else(|| self.0.get(&PolicyScope::Others))
    }

    /// Returns all of them: that of all others first, then by the names of the series.
    pub fn iter(&self) -> impl Iterator<Item = (&PolicyScope, &KeepPolicy)> {
        self.0.iter()
    }

    /// Tells whether there is none at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Records a policy in place of the one before it; `None` removes that. Returns true if there was one.
///
/// # Errors
/// [`EngineError::EmptyPolicy`] for one without rules, which would keep nothing; [`EngineError::RecordedPolicy`] for
/// one whose text would not be read as it was written; those of the repository.
pub fn record_policy(
    repository: &Repository,
    scope: &PolicyScope,
    policy: Option<&KeepPolicy>,
) -> Result<bool, EngineError> {
    let text = policy.map(|policy| checked_text(scope, policy)).transpose()?;
    let mut existed = false;
    repository.amend(|config| {
        let before = match &text {
            Some(text) => config.settings.insert(scope.setting(), text.clone().into_bytes()),
            None => config.settings.remove(&scope.setting()),
        };
        existed = before.is_some();
        Ok(())
    })?;
    Ok(existed)
}

/// Returns the text of a policy that will be read as it was written: a tag may have an end of line in it.
fn checked_text(scope: &PolicyScope, policy: &KeepPolicy) -> Result<String, EngineError> {
    if policy.is_empty() {
        return Err(EngineError::EmptyPolicy);
    }
    let text = policy.to_string();
    if parsed(scope, &text).is_ok_and(|read| read.to_string() == text && read.tags == policy.tags) {
        return Ok(text);
    }
    Err(refused(scope, "a tag has an end of line in it"))
}

fn parsed(scope: &PolicyScope, text: &str) -> Result<KeepPolicy, EngineError> {
    text.parse().map_err(|error: super::policy::PolicyTextError| refused(scope, &error.to_string()))
}

fn refused(scope: &PolicyScope, reason: &str) -> EngineError {
    EngineError::RecordedPolicy { setting: scope.setting(), reason: reason.to_owned() }
}
