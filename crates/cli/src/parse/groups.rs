//! Properties that snapshots are grouped by: `host,paths` and so on; an empty text means one group of all.

use siltstone_engine::snapshots::GroupKey;
use std::str::FromStr;

/// Keys of a grouping.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Groups(pub(crate) Vec<GroupKey>);

impl FromStr for Groups {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        let keys = words.map(|word| match word {
            "host" | "hosts" => Ok(GroupKey::Host),
            "path" | "paths" => Ok(GroupKey::Paths),
            "tag" | "tags" => Ok(GroupKey::Tags),
            "series" => Ok(GroupKey::Series),
            other => Err(format!("'{other}' is no grouping: use host, paths, tags, series, separated by commas")),
        });
        keys.collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_any_number() {
        assert_eq!("host,paths".parse(), Ok(Groups(vec![GroupKey::Host, GroupKey::Paths])));
        assert_eq!("".parse(), Ok(Groups::default()));
        assert!("hots".parse::<Groups>().is_err());
    }
}
