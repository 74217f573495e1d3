//! Names that may hold any bytes: shown so that they can neither forge a line nor drive a terminal, and so that JSON loses nothing.

use serde::ser::{Serialize, SerializeMap, Serializer};
use siltstone_store::catalog::EntryPath;
use std::fmt::Write;

/// The bytes as text: control characters and what is not UTF-8 are escaped.
pub(crate) fn visible(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() { text.extend(c.escape_default()) } else { text.push(c) }
        }
        // Writing to a string cannot fail.
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// A path below `/`, for JSON: `path`, and `path_raw` (hexadecimal) where the bytes are no text.
pub(crate) struct Path(Vec<u8>);

impl Path {
    /// The path of an entry, shown from the root.
    pub(crate) fn of(entry: &EntryPath) -> Self {
        Self([b"/", entry.as_bytes()].concat())
    }

    /// A path as it is.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// As one line of text.
    pub(crate) fn visible(&self) -> String {
        visible(&self.0)
    }

    /// As text, whatever it takes; control characters stay, JSON escapes them.
    pub(crate) fn lossy(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }

    /// The bytes in hexadecimal, if they are no text.
    pub(crate) fn raw(&self) -> Option<String> {
        let is_text = std::str::from_utf8(&self.0).is_ok();
        (!is_text).then(|| hexadecimal(&self.0))
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("path", &self.lossy())?;
        if let Some(raw) = self.raw() {
            map.serialize_entry("path_raw", &raw)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_line() {
        assert_eq!(visible("a\nb\u{1b}[2J\u{e9}".as_bytes()), "a\\nb\\u{1b}[2J\u{e9}");
        assert_eq!(visible(b"\xff\xc3x"), "\\xff\\xc3x");
    }

    #[test]
    fn json_keeps_the_bytes_of_what_is_no_text() {
        let json = |bytes: &[u8]| serde_json::to_string(&Path::from_bytes(bytes)).expect("plain data");
        assert_eq!(json(b"/a\nb"), r#"{"path":"/a\nb"}"#);
        assert_eq!(json(b"/\xff"), format!(r#"{{"path":"/{}","path_raw":"2fff"}}"#, '\u{fffd}'));
    }
}
