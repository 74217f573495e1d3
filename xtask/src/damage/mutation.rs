//! One thing done to one object, drawn at random: first the kind of object, so that the few small ones are hit as often
//! as containers.

use anyhow::Result;
use siltstone_testbed::deterministic::Sequence;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

/// A kind of mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One bit is turned.
    Flip { at: u64, bit: u8 },
    /// A stretch reads as zeros, as a lost sector does.
    Zero { at: u64, bytes: u64 },
    /// The end is gone.
    Truncate { to: u64 },
    /// Bytes stand behind the end.
    Append { bytes: u64 },
    /// The object is gone.
    Delete,
    /// Another object's bytes stand in its place.
    Swap { with: String },
    /// Nothing is left of its bytes.
    Empty,
}

/// A mutation and the object it is done to, named by its path below the repository.
#[derive(Clone, Debug)]
pub(super) struct Mutation {
    pub(super) object: String,
    pub(super) kind: Kind,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flip { .. } => "flip",
            Self::Zero { .. } => "zero",
            Self::Truncate { .. } => "truncate",
            Self::Append { .. } => "append",
            Self::Delete => "delete",
            Self::Swap { .. } => "swap",
            Self::Empty => "empty",
        })
    }
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.object, self.kind)
    }
}

impl Mutation {
    /// Draws one. `objects` are all there are, with their sizes; there is at least one.
    pub(super) fn draw(objects: &[(String, u64)], sequence: &mut Sequence) -> Self {
        let mut by_kind: BTreeMap<&str, Vec<&(String, u64)>> = BTreeMap::new();
        for object in objects {
            by_kind.entry(kind_of(&object.0)).or_default().push(object);
        }
        let kinds: Vec<_> = by_kind.values().collect();
        let group = kinds[sequence.index(kinds.len())];
        let (object, bytes) = group[sequence.index(group.len())];
        let other = &group[sequence.index(group.len())].0;
        let at = sequence.below((*bytes).max(1));
        let kind = match sequence.below(12) {
            0..=4 => Kind::Flip { at, bit: bit(sequence) },
            5 => Kind::Zero { at, bytes: 1 + sequence.below(8192) },
            6 => Kind::Truncate { to: at },
            7 => Kind::Append { bytes: 1 + sequence.below(4096) },
            8 | 9 => Kind::Delete,
            10 if other != object => Kind::Swap { with: other.clone() },
            _ => Kind::Empty,
        };
        Self { object: object.clone(), kind }
    }

    /// A flipped bit in a container, each bit as likely as any other; `None` if there is no container.
    pub(super) fn flip_in_a_container(objects: &[(String, u64)], sequence: &mut Sequence) -> Option<Self> {
        let is_container = |name: &str| name.starts_with("data/") || name.starts_with("metadata/");
        let containers: Vec<_> = objects.iter().filter(|(name, _)| is_container(name)).collect();
        let mut at = sequence.below(containers.iter().map(|(_, bytes)| bytes).sum::<u64>().max(1));
        for (object, bytes) in containers {
            if at < *bytes {
                return Some(Self { object: object.clone(), kind: Kind::Flip { at, bit: bit(sequence) } });
            }
            at -= bytes;
        }
        None
    }

    /// The kind of object it is done to: the first part of its name.
    pub(super) fn kind_of_object(&self) -> String {
        kind_of(&self.object).to_owned()
    }

    /// Does it to a repository.
    pub(super) fn apply(&self, repository: &Path, sequence: &mut Sequence) -> Result<()> {
        let path = repository.join(&self.object);
        let mut bytes = fs::read(&path)?;
        match &self.kind {
            Kind::Flip { at, bit } => {
                if let Some(byte) = bytes.get_mut(usize::try_from(*at)?) {
                    *byte ^= 1 << bit;
                }
            }
            Kind::Zero { at, bytes: count } => {
                bytes.iter_mut().skip(usize::try_from(*at)?).take(usize::try_from(*count)?).for_each(|byte| *byte = 0);
            }
            Kind::Truncate { to } => bytes.truncate(usize::try_from(*to)?),
            Kind::Append { bytes: count } => bytes.extend(sequence.bytes(usize::try_from(*count)?)),
            Kind::Delete => return Ok(fs::remove_file(&path)?),
            Kind::Swap { with } => bytes = fs::read(repository.join(with))?,
            Kind::Empty => bytes.clear(),
        }
        Ok(fs::write(&path, bytes)?)
    }
}

fn bit(sequence: &mut Sequence) -> u8 {
    u8::try_from(sequence.below(8)).unwrap_or_default()
}

fn kind_of(object: &str) -> &str {
    object.split('/').next().unwrap_or(object)
}
