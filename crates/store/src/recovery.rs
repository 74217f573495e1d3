//! The master key as text that people can print, keep and type: groups of five signs, each with a check sign of its
//! own.
//!
//! ```text
//! master key 32 | repository id 16 | epoch 4 | checksum 3  ->  22 groups of 4 signs of 5 bits, and 1 check sign
//! ```
//! The signs are those of Crockford's base 32: no I, L, O, U, so that they are not taken for others; case means
//! nothing. A group's check sign is its number plus seven times its place, modulo 37: it finds every wrong sign, every
//! two that changed places, and nearly every two groups that did. The checksum is of BLAKE3 over all before it.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::header::Fields;
use crate::ids::RepositoryId;
use crate::secrets::{Epoch, MasterKey};
use std::str::FromStr;
use zeroize::Zeroizing;

const SIGNS: &[u8; 37] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U";
const GROUPS: usize = 22;
const GROUP_SIGNS: usize = 4;
const BYTES: usize = GROUPS * GROUP_SIGNS * 5 / 8;
const CHECKSUM_BYTES: usize = 3;

/// A key that opens a repository without a password.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoveryKey {
    /// The repository it is of.
    pub repository: RepositoryId,
    /// Number of the master key that it is.
    pub epoch: Epoch,
    /// The master key.
    pub master: MasterKey,
}

/// The reason why a text is no recovery key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoveryKeyError {
    /// The text has too few or too many groups.
    #[error("the recovery key has {found} groups instead of {GROUPS}")]
    Count {
        /// Number of groups that it has.
        found: usize,
    },
    /// A group is mistyped, or not where it belongs.
    #[error("group {place} of the recovery key ('{group}') is mistyped: compare it with the sheet")]
    Group {
        /// Place of the group, from 1.
        place: usize,
        /// Text of the group.
        group: String,
    },
    /// All groups are sound by themselves, but not together.
    #[error("the recovery key does not add up: compare the order of its groups with the sheet")]
    Checksum,
}

impl RecoveryKey {
    /// The key's groups, in order.
    pub fn groups(&self) -> Vec<String> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(BYTES));
        bytes.extend_from_slice(self.master.bytes());
        bytes.extend_from_slice(&self.repository.0);
        bytes.extend_from_slice(&self.epoch.0.to_le_bytes());
        let sum = checksum(&bytes);
        bytes.extend_from_slice(&sum);
        let bits = |at: usize| (0..5).fold(0, |value, bit| value << 1 | bit_of(&bytes, at + bit));
        (0..GROUPS)
            .map(|place| {
                let values: Vec<u32> = (0..GROUP_SIGNS).map(|sign| bits((place * GROUP_SIGNS + sign) * 5)).collect();
                values.iter().copied().chain([check_of(place, &values)]).map(sign_of).collect()
            })
            .collect()
    }
}

impl FromStr for RecoveryKey {
    type Err = RecoveryKeyError;

    /// Reads the groups, with anything that is no sign between them.
    fn from_str(text: &str) -> Result<Self, RecoveryKeyError> {
        let groups: Vec<&str> = text.split(|c: char| c.is_whitespace() || c == '-').filter(|g| !g.is_empty()).collect();
        let mut bits = Zeroizing::new(Vec::with_capacity(BYTES * 8));
        for (place, group) in groups.iter().enumerate().take(GROUPS) {
            let mistyped = || RecoveryKeyError::Group { place: place + 1, group: (*group).to_owned() };
            let values = values_of(group).filter(|values| values.len() == GROUP_SIGNS + 1).ok_or_else(mistyped)?;
            let (check, values) = values.split_last().ok_or_else(mistyped)?;
            if *check != check_of(place, values) || values.iter().any(|value| *value > 31) {
                return Err(mistyped());
            }
            bits.extend(values.iter().flat_map(|value| (0..5).rev().map(move |bit| value >> bit & 1 == 1)));
        }
        if groups.len() != GROUPS {
            return Err(RecoveryKeyError::Count { found: groups.len() });
        }
        let byte = |bits: &[bool]| bits.iter().fold(0u8, |value, bit| value << 1 | u8::from(*bit));
        let bytes: Zeroizing<Vec<u8>> = Zeroizing::new(bits.chunks(8).map(byte).collect());
        let (front, sum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(RecoveryKeyError::Checksum)?;
        if checksum(front) != *sum {
            return Err(RecoveryKeyError::Checksum);
        }
        let mut fields = Fields(front);
        let (master, repository) = fields.take().zip(fields.take()).ok_or(RecoveryKeyError::Checksum)?;
        let epoch = Epoch(fields.take_u32().ok_or(RecoveryKeyError::Checksum)?);
        Ok(Self { repository: RepositoryId(repository), epoch, master: MasterKey::from_bytes(master) })
    }
}

fn bit_of(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at / 8).map_or(0, |byte| u32::from(byte >> (7 - at % 8) & 1))
}

fn check_of(place: usize, values: &[u32]) -> u32 {
    let number = values.iter().fold(0, |number, value| number << 5 | value);
    (number + 7 * u32::try_from(place).unwrap_or_default()) % 37
}

fn sign_of(value: u32) -> char {
    usize::try_from(value).ok().and_then(|value| SIGNS.get(value)).map_or('?', |sign| char::from(*sign))
}

/// The numbers of signs as people type them: small letters, and those that look like digits.
fn values_of(group: &str) -> Option<Vec<u32>> {
    let value = |c: char| {
        let sign = match c.to_ascii_uppercase() {
            'O' => b'0',
            'I' | 'L' => b'1',
            other => u8::try_from(other).ok()?,
        };
        u32::try_from(SIGNS.iter().position(|known| *known == sign)?).ok()
    };
    group.chars().map(value).collect()
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let hash = blake3::hash(bytes);
    let mut sum = [0; CHECKSUM_BYTES];
    sum.iter_mut().zip(hash.as_bytes()).for_each(|(to, from)| *to = *from);
    sum
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn key() -> RecoveryKey {
        let bytes = std::array::from_fn(|at| u8::try_from(at * 7).unwrap());
        RecoveryKey { repository: RepositoryId([0xAB; 16]), epoch: Epoch(3), master: MasterKey::from_bytes(bytes) }
    }

    #[test]
    fn a_key_comes_back_however_it_is_typed() {
        let groups = key().groups();
        assert_eq!((groups.len(), groups[0].as_str()), (22, "003G1"));
        for text in [groups.join(" "), groups.join("-"), groups.join("\n").to_lowercase().replace('0', "o")] {
            assert_eq!(text.parse::<RecoveryKey>().unwrap(), key());
        }
    }

    #[test]
    fn every_wrong_sign_and_every_swap_is_told_with_its_group() {
        let groups = key().groups();
        for place in 0..groups.len() {
            for at in 0..5 {
                for other in SIGNS {
                    let mut wrong = groups.clone();
                    wrong[place].replace_range(at..=at, &char::from(*other).to_string());
                    match wrong.join(" ").parse::<RecoveryKey>() {
                        Ok(read) => assert!(wrong == groups && read == key()),
                        Err(error) => assert!(error.to_string().contains(&format!("group {} ", place + 1)), "{error}"),
                    }
                }
            }
            let mut swapped = groups.clone();
            swapped[place] = groups[place].chars().rev().collect();
            assert!(swapped == groups || swapped.join(" ").parse::<RecoveryKey>().is_err());
        }
    }

    #[test]
    fn missing_and_exchanged_groups_are_told() {
        let mut groups = key().groups();
        assert!(groups[1..].join(" ").parse::<RecoveryKey>().is_err());
        assert_eq!(groups[..21].join(" ").parse::<RecoveryKey>(), Err(RecoveryKeyError::Count { found: 21 }));
        assert_eq!("".parse::<RecoveryKey>(), Err(RecoveryKeyError::Count { found: 0 }));
        groups.swap(2, 9);
        assert!(groups.join(" ").parse::<RecoveryKey>().is_err());
    }
}
