//! A list of tags, `a,b`: as a filter all of them are asked for; given several times, one list is enough.

use std::convert::Infallible;
use std::str::FromStr;

/// The value of one `--tag`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TagList(pub(crate) Vec<String>);

impl FromStr for TagList {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.split(',').map(|tag| tag.trim().to_owned()).collect()))
    }
}

impl TagList {
    /// The tags of all lists, each once, in the order given; for a new snapshot.
    pub(crate) fn flatten(lists: &[Self]) -> Vec<String> {
        let mut tags: Vec<String> = Vec::new();
        for tag in lists.iter().flat_map(|list| &list.0) {
            if !tag.is_empty() && !tags.contains(tag) {
                tags.push(tag.clone());
            }
        }
        tags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_split_at_commas_and_flatten_without_repeats() {
        let list = |text: &str| text.parse::<TagList>().expect("cannot fail");
        assert_eq!(list("a, b").0, ["a", "b"]);
        assert_eq!(list("").0, [""]);
        assert_eq!(TagList::flatten(&[list("a,b"), list("b,,c")]), ["a", "b", "c"]);
    }
}
