//! Names that may hold any bytes: shown so that they can neither forge a line nor drive a terminal, and so that JSON
//! loses nothing.

use serde::ser::{Serialize, SerializeMap, Serializer};
use siltstone_store::catalog::EntryPath;
use std::fmt::Write;

/// The bytes as one line of text: what draws nothing, moves what follows or is not UTF-8 is escaped.
pub(crate) fn visible(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_visible(c) { text.push(c) } else { text.extend(c.escape_default()) }
        }
        // Writing to a string cannot fail.
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// As [`visible`], but for a text of several lines: their ends stay.
pub(crate) fn visible_lines(text: &str) -> String {
    text.split('\n').map(|line| visible(line.as_bytes())).collect::<Vec<_>>().join("\n")
}

/// Tells whether a character shows as itself: no control character, no mark of direction, no blank but the space,
/// nothing that draws nothing. The table is the standard library's, which knows what `Debug` may show of a text;
/// accents stay on their letters.
fn is_visible(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    let mut letter_first = [b'x'; 1 + char::MAX_LEN_UTF8];
    let bytes = 1 + c.encode_utf8(&mut letter_first[1..]).len();
    str::from_utf8(&letter_first[..bytes]).is_ok_and(|text| text.escape_debug().count() == 2)
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
    fn nothing_invisible_reaches_the_terminal_and_letters_of_all_scripts_do() {
        let escaped =
            "\u{202e}\u{2066}\u{200b}\u{200d}\u{feff}\u{ad}\u{a0}\u{3000}\u{9b}\u{7f}\u{2028}\u{e0041}\u{e000}\u{fff9}";
        for c in escaped.chars() {
            assert_eq!(visible(c.to_string().as_bytes()), c.escape_default().to_string());
        }
        let shown = "e\u{301} \u{416}\u{5d0}\u{4e2d}\u{e9}\u{1f600}\u{2764}\u{fe0f} \\ \" '";
        assert_eq!(visible(shown.as_bytes()), shown);
    }

    #[test]
    fn ends_of_lines_stay_in_a_text_of_several() {
        assert_eq!(visible_lines("a\n\u{202e}b\t\n"), "a\n\\u{202e}b\\t\n");
    }

    #[test]
    fn json_keeps_the_bytes_of_what_is_no_text() {
        let json = |bytes: &[u8]| serde_json::to_string(&Path::from_bytes(bytes)).expect("plain data");
        assert_eq!(json(b"/a\nb"), r#"{"path":"/a\nb"}"#);
        assert_eq!(json(b"/\xff"), format!(r#"{{"path":"/{}","path_raw":"2fff"}}"#, '\u{fffd}'));
    }
}
