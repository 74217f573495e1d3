//! Where a repository lies, by its name.

use siltstone_engine::cost::LocationProfile;
use std::str::FromStr;

/// A location profile by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Preset(pub(crate) LocationProfile);

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = LocationProfile::NAMES.into_iter().find(|(name, _)| *name == text);
        let names = || LocationProfile::NAMES.map(|(name, _)| name).join(", ");
        found.map(|(_, profile)| Self(profile)).ok_or_else(|| format!("expected one of {}", names()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_places() {
        assert_eq!("local".parse(), Ok(Preset::default()));
        assert_eq!("s3-internet".parse(), Ok(Preset(LocationProfile::S3Internet)));
        assert!("s3".parse::<Preset>().is_err_and(|error| error.contains("s3-region")));
    }
}
