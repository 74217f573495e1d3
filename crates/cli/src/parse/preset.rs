//! Where a repository lies, by its name.

use siltstone_engine::cost::Preset as Place;
use std::str::FromStr;

/// A preset of costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Preset(pub(crate) Place);

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Place::NAMES.into_iter().find(|(name, _)| *name == text);
        let names = || Place::NAMES.map(|(name, _)| name).join(", ");
        found.map(|(_, place)| Self(place)).ok_or_else(|| format!("expected one of {}", names()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_places() {
        assert_eq!("local".parse(), Ok(Preset::default()));
        assert_eq!("s3-internet".parse(), Ok(Preset(Place::S3Internet)));
        assert!("s3".parse::<Preset>().is_err_and(|error| error.contains("s3-region")));
    }
}
