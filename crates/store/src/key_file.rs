//! Key files: 256 random bits as a line of text, which stands where a password would.
//!
//! ```text
//! siltstone-key-1:<64 hexadecimal digits>:<8 hexadecimal digits of a checksum>
//! ```
//! Nobody guesses 256 bits, so a slot that such a line opens has no cost: it opens at once. Whatever gives passwords
//! can give the line: a file, a variable, a command that asks a keyring.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::error::StoreError;
use crate::secrets::{PurposeKey, random_bytes};
use std::fmt;
use zeroize::Zeroizing;

/// Beginning of the line.
const PREFIX: &str = "siltstone-key-1:";
/// Context that wrapping keys derive by.
const CONTEXT: &str = "siltstone v1 key file";
const KEY_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 4;
const LINE_BYTES: usize = PREFIX.len() + 2 * KEY_BYTES + 1 + 2 * CHECKSUM_BYTES;

/// The random bits of a key file; wiped from memory when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyFile(Zeroizing<[u8; KEY_BYTES]>);

impl KeyFile {
    /// A fresh one.
    pub fn random() -> Result<Self, StoreError> {
        Ok(Self(Zeroizing::new(random_bytes()?)))
    }

    /// The line that the file holds, without a line break.
    pub fn line(&self) -> Zeroizing<String> {
        // With all its room from the start: grown in place, digits could stay behind where they were.
        let mut line = Zeroizing::new(String::with_capacity(LINE_BYTES));
        line.push_str(PREFIX);
        push_hex(&mut line, self.0.as_slice());
        line.push(':');
        push_hex(&mut line, &self.checksum());
        line
    }

    /// Reads what was given as a password; `None` if it is one.
    ///
    /// # Errors
    /// [`StoreError::KeyFile`]: it begins as the line of a key file does, and is none.
    pub fn parse(given: &[u8]) -> Result<Option<Self>, StoreError> {
        let Some(rest) = given.strip_prefix(PREFIX.as_bytes()) else { return Ok(None) };
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        let mut sum = [0; CHECKSUM_BYTES];
        let parts = rest.split_at_checked(2 * KEY_BYTES).and_then(|(key, sum)| Some((key, sum.strip_prefix(b":")?)));
        let is_whole = parts.is_some_and(|(key, end)| read_hex(key, bytes.as_mut_slice()) && read_hex(end, &mut sum));
        let key = Self(bytes);
        if is_whole && key.checksum() == sum { Ok(Some(key)) } else { Err(StoreError::KeyFile) }
    }

    fn checksum(&self) -> [u8; CHECKSUM_BYTES] {
        crate::header::checksum(self.0.as_slice())
    }

    /// The key that wraps what a slot with this salt holds.
    pub(crate) fn wrapping(&self, salt: &[u8; 16]) -> PurposeKey {
        let material = Zeroizing::new([self.0.as_slice(), salt].concat());
        PurposeKey::from_bytes(Zeroizing::new(blake3::derive_key(CONTEXT, &material)))
    }
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyFile(secret)")
    }
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('?');
    text.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
}

/// Reads as many bytes as there is room for; says whether the text is just these.
fn read_hex(text: &[u8], to: &mut [u8]) -> bool {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let (pairs, rest) = text.as_chunks();
    let is_right = rest.is_empty() && pairs.len() == to.len();
    is_right
        && to.iter_mut().zip(pairs).all(|(to, [high, low])| {
            let byte = digit(*high).zip(digit(*low)).map(|(high, low)| high << 4 | low);
            *to = byte.unwrap_or_default();
            byte.is_some()
        })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn a_line_gives_its_key_and_no_two_are_alike() {
        let (one, two) = (KeyFile::random().unwrap(), KeyFile::random().unwrap());
        assert_ne!(one, two);
        assert_eq!(KeyFile::parse(one.line().as_bytes()).unwrap(), Some(one.clone()));
        assert_eq!((one.line().len(), one.line().capacity()), (LINE_BYTES, LINE_BYTES));
        assert_eq!(KeyFile::parse(one.line().to_uppercase().as_bytes()).unwrap(), None, "a password like any other");
        assert_ne!(one.wrapping(&[0; 16]).bytes(), one.wrapping(&[1; 16]).bytes());
    }

    #[test]
    fn what_begins_so_and_is_no_key_is_told_and_not_taken_for_a_password() {
        let line = KeyFile::random().unwrap().line();
        for end in PREFIX.len()..line.len() {
            assert!(matches!(KeyFile::parse(&line.as_bytes()[..end]), Err(StoreError::KeyFile)), "{end}");
        }
        for at in PREFIX.len()..line.len() {
            let mut typed = line.as_bytes().to_vec();
            typed[at] = if typed[at] == b'0' { b'1' } else { b'0' };
            assert!(matches!(KeyFile::parse(&typed), Err(StoreError::KeyFile)), "{at}");
        }
        assert!(matches!(KeyFile::parse(format!("{}\n", *line).as_bytes()), Err(StoreError::KeyFile)));
        assert_eq!(KeyFile::parse(b"correct horse").unwrap(), None);
        assert_eq!(KeyFile::parse(b"").unwrap(), None);
    }
}
