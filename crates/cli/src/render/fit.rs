//! Texts made to fit a terminal: cut in the middle, or wrapped. Widths are those of a terminal, where a Chinese
//! character takes two places and an accent none.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Mark in place of what was cut out.
const CUT: &str = "...";

/// The text, with as much cut out of its middle as it takes to fit. The end of a path says more than its middle.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(CUT.len());
    let head = head(text, room / 3);
    format!("{head}{CUT}{}", tail(text, room - head.width()))
}

/// Characters behind which a line may end.
const BREAKS: [char; 3] = ['/', ',', ' '];

/// The width of the longest part of a text that [`wrapped`] can keep together.
pub(crate) fn longest_part(text: &str) -> usize {
    text.split_inclusive(BREAKS).map(|part| part.trim_end_matches(' ').width()).max().unwrap_or(0)
}

/// The text in lines of at most this width, broken behind a slash, comma or blank where a line would not be left nearly
/// empty by that. Nothing is left out.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let (mut lines, mut rest) = (Vec::new(), text);
    while rest.width() > width {
        let line = match head(rest, width) {
            // Not even one character fits.
            "" => break,
            line => line,
        };
        // A blank behind a full line ends it too.
        let at = match rest[line.len()..].strip_prefix(' ') {
            Some(_) => line.len() + 1,
            None => line.rfind(BREAKS).map(|at| at + 1).filter(|at| *at > line.len() / 4).unwrap_or(line.len()),
        };
        let (line, after) = rest.split_at(at.min(rest.len()));
        lines.push(line.trim_end_matches(' ').to_owned());
        rest = after;
    }
    lines.push(rest.to_owned());
    lines
}

/// The longest beginning that fits.
fn head(text: &str, width: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += c.width().unwrap_or(0);
        used > width
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// The longest end that fits.
fn tail(text: &str, width: usize) -> &str {
    let mut used = 0;
    let before = text.char_indices().rev().find(|(_, c)| {
        used += c.width().unwrap_or(0);
        used > width
    });
    &text[before.map_or(0, |(at, c)| at + c.len_utf8())..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_in_the_middle_to_the_width_of_the_terminal() {
        assert_eq!(shortened("/home/me/a", 10), "/home/me/a");
        assert_eq!(shortened("/home/me/photos/2026/p.jpg", 16), "/hom...026/p.jpg");
        for width in 0..30 {
            let text = shortened("/home/\u{4e2d}\u{6587}/e\u{301}t\u{e9}/\u{4e2d}\u{6587}.txt", width);
            assert!(text.width() <= width.max(CUT.len()), "{width}: {text}");
        }
    }

    #[test]
    fn wrapping_loses_nothing_and_breaks_behind_slashes() {
        assert_eq!(wrapped("/home/me", 8), ["/home/me"]);
        assert_eq!(wrapped("/home/me/photos", 10), ["/home/me/", "photos"]);
        assert_eq!(wrapped("last snapshot", 8), ["last", "snapshot"]);
        assert_eq!(wrapped("last snapshot", 10), ["last", "snapshot"]);
        assert_eq!(longest_part("/home/last snapshot"), 8);
        assert_eq!(wrapped("abcdefgh", 3), ["abc", "def", "gh"]);
        for width in 2..20 {
            let text = "/home/\u{4e2d}\u{6587}\u{6587}\u{4ef6}/x";
            let lines = wrapped(text, width);
            assert_eq!(lines.concat(), text);
            assert!(lines.iter().all(|line| line.width() <= width), "{width}: {lines:?}");
        }
        assert_eq!(wrapped("\u{4e2d}", 1), ["\u{4e2d}"]);
    }
}
