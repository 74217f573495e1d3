//! Text in drawings, where nothing wraps by itself: how wide it is, where to break it, and what of it can be shown.
//!
//! Widths are estimates for the widest of the common sans-serif fonts (`DejaVu` Sans), so that text fits in all of
//! them.

/// Height of all text in a drawing, in its units.
pub(super) const TEXT_HEIGHT: f64 = 12.0;

/// From one line of text to the next.
pub(super) const LINE_HEIGHT: f64 = 15.0;

/// Text without what draws nothing or changes the order of what follows: control characters and marks of direction
/// become `\u{fffd}`.
pub(in crate::report) fn shown(text: &str) -> String {
    let is_hidden = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    text.chars().map(|letter| if is_hidden(letter) { '\u{fffd}' } else { letter }).collect()
}

/// The width of a line of text.
pub(super) fn width(text: &str) -> f64 {
    text.chars().map(letter_width).sum::<f64>() * TEXT_HEIGHT
}

fn letter_width(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | '\'' | '|' => 0.30,
        ' ' | '.' | ',' | ':' | ';' | 'I' | '/' | '·' | '\u{202f}' => 0.35,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '!' | '⁻' | '¹' | '²' | '³' | '\u{2070}'..='\u{2079}' => {
            0.42
        }
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '—' | '…' => 0.99,
        'A'..='Z' | '+' | '=' | '<' | '>' | '~' | '−' | '×' => 0.76,
        ' '..='\u{2fff}' => 0.63,
        _ => 1.05,
    }
}

/// As much of the text as fits, with `…` where something was left out: in the middle, because names differ at both
/// ends.
pub(super) fn shortened(text: &str, width_max: f64) -> String {
    if width(text) <= width_max {
        return text.to_owned();
    }
    let letters: Vec<char> = text.chars().collect();
    let (mut head, mut tail) = (0, 0);
    let mut room = width_max - width("…");
    loop {
        let at_head = head <= tail;
        let next = if at_head { letters[head] } else { letters[letters.len() - 1 - tail] };
        room -= letter_width(next) * TEXT_HEIGHT;
        if room < 0.0 || head + tail + 1 >= letters.len() {
            break;
        }
        if at_head { head += 1 } else { tail += 1 }
    }
    letters[..head].iter().chain(&['…']).chain(&letters[letters.len() - tail..]).collect()
}

/// The text in lines that fit, broken after spaces and hyphens; words that do not fit alone are shortened.
pub(super) fn wrapped(text: &str, width_max: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_inclusive([' ', '-', '/', '_']) {
        match lines.last_mut() {
            Some(line) if width((line.clone() + word).trim_end()) <= width_max => line.push_str(word),
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| shortened(line.trim_end(), width_max)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shortened_fits_and_keeps_both_ends() {
        let name = "rabin-with-a-very-long-name-avx512";
        let short = shortened(name, 100.0);
        assert!(width(&short) <= 100.0, "{short}");
        assert!(short.starts_with("rabin") && short.ends_with("512"), "{short}");
        assert_eq!(shortened("ae", 100.0), "ae");
        assert_eq!(shortened("anything", 0.0), "…");
        assert_eq!(shortened("", 0.0), "");
    }

    #[test]
    fn lines_fit() {
        let lines = wrapped("share of low-entropy strings found, %", 80.0);
        assert!(lines.len() > 2 && lines.iter().all(|line| width(line) <= 80.0), "{lines:?}");
        assert_eq!(wrapped("one", 100.0), ["one"]);
        assert!(wrapped("", 100.0).is_empty());
    }

    #[test]
    fn what_would_not_be_seen_is() {
        assert_eq!(shown("a\u{0}b\u{202e}c\n"), "a\u{fffd}b\u{fffd}c\u{fffd}");
        assert_eq!(shown("naïve 日本 <x>"), "naïve 日本 <x>");
    }
}
