//! Ranges of bytes that are asked for (RFC 9110, section 14); pure.

/// Bytes of a file that an answer has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    /// All of it.
    Whole,
    /// From the first offset to the second, which is not among them; there is at least one.
    Part(u64, u64),
    /// Nothing of the file is in the range.
    Beyond,
}

/// Reads the header `Range`. What is not understood, as several ranges at once, asks for the whole file.
pub(super) fn wanted(header: Option<&str>, size: u64) -> Wanted {
    let Some(range) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else { return Wanted::Whole };
    let Some((first, last)) = range.split_once('-') else { return Wanted::Whole };
    match (number(first), number(last)) {
        (Some(from), Some(last)) if from <= last => part(from, last.saturating_add(1), size),
        (Some(from), None) if last.trim().is_empty() => part(from, size, size),
        (None, Some(count)) if first.trim().is_empty() => part(size.saturating_sub(count), size, size),
        _ => Wanted::Whole,
    }
}

fn part(from: u64, to: u64, size: u64) -> Wanted {
    let to = to.min(size);
    if from < to { Wanted::Part(from, to) } else { Wanted::Beyond }
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_the_file_and_what_is_not_understood_is_the_whole() {
        for (header, expected) in [
            ("bytes=0-0", Wanted::Part(0, 1)),
            ("bytes=2-4", Wanted::Part(2, 5)),
            ("bytes=7-", Wanted::Part(7, 10)),
            ("bytes=-3", Wanted::Part(7, 10)),
            ("bytes=-30", Wanted::Part(0, 10)),
            ("bytes=5-99999999999999999999", Wanted::Whole),
            ("bytes=5-18446744073709551615", Wanted::Part(5, 10)),
            ("bytes=10-", Wanted::Beyond),
            ("bytes=-0", Wanted::Beyond),
            ("bytes=4-2", Wanted::Whole),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("items=0-1", Wanted::Whole),
        ] {
            assert_eq!(wanted(Some(header), 10), expected, "{header}");
        }
        assert_eq!(wanted(None, 10), Wanted::Whole);
        assert_eq!(wanted(Some("bytes=0-"), 0), Wanted::Beyond);
    }
}
