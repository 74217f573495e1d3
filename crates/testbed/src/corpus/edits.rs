//! A file's next version: bytes inserted, deleted and replaced in one stretch of it, while all else stays. That files
//! differ in where they change, at their beginning, middle or end, is an idea of Tarasov et al. (Generating Realistic
//! Datasets for Deduplication Analysis, ATC'12); what is done there is, in equal parts, what Odess (section 4.2) does
//! to chunks. The numbers are our choice:
//!
//! ```text
//! place       begin 1/5, end 2/5, anywhere between 2/5
//! stretch     four times as long as what is changed in it
//! an edit     1 to 2047 bytes, short ones more often; three times as many are left alone before the next, on average
//! ```

use super::content::Content;
use crate::deterministic::Sequence;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

/// Stretch over bytes changed.
const STRETCH: u64 = 4;

/// One change to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Edit {
    /// Where, in the file as it was.
    pub(super) at: u64,
    /// Bytes of the old file left out from there on.
    pub(super) deleted: u64,
    /// Bytes written in their place.
    pub(super) inserted: u64,
}

impl Edit {
    /// Bytes that are no longer, or not yet, in the other version.
    pub(super) fn changed(&self) -> u64 {
        self.deleted.max(self.inserted)
    }
}

/// Edits that change about so many of a file's bytes, none beyond its end, in their order.
pub(super) fn plan(sequence: &mut Sequence, file_bytes: u64, changed_bytes: u64) -> Vec<Edit> {
    let stretch = (STRETCH * changed_bytes).min(file_bytes);
    let mut at = match sequence.below(5) {
        0 => 0,
        1 | 2 => sequence.below(file_bytes - stretch + 1),
        _ => file_bytes - stretch,
    };
    let end = at + stretch;
    let mut edits = Vec::new();
    let mut left = changed_bytes;
    while left > 0 && at <= end {
        let scale = 1 << (4 + sequence.below(8));
        let length = (1 + sequence.below(scale - 1)).min(left);
        let deletable = length.min(file_bytes - at);
        let (deleted, inserted) = [(0, length), (deletable, 0), (deletable, length)][sequence.index(3)];
        edits.push(Edit { at, deleted, inserted });
        at += deleted + sequence.below(6 * length + 1);
        left -= length;
    }
    edits
}

/// Writes `from` with these edits to `to`, bounded in memory; what is inserted is content of this kind.
pub(super) fn apply(from: &Path, to: &Path, edits: &[Edit], content: Content, sequence: &mut Sequence) -> Result<()> {
    let old = File::open(from).with_context(|| format!("{} cannot be opened", from.display()))?;
    let new = File::create(to).with_context(|| format!("{} cannot be made", to.display()))?;
    let mut new = BufWriter::with_capacity(1 << 18, new);
    edited(&mut BufReader::with_capacity(1 << 18, old), &mut new, edits, content, sequence)
        .and_then(|()| new.flush())
        .with_context(|| format!("{} cannot be written", to.display()))
}

fn edited(
    old: &mut impl Read,
    new: &mut impl Write,
    edits: &[Edit],
    content: Content,
    sequence: &mut Sequence,
) -> io::Result<()> {
    let mut at = 0;
    for edit in edits {
        io::copy(&mut old.take(edit.at - at), new)?;
        io::copy(&mut old.take(edit.deleted), &mut io::sink())?;
        content.write(Sequence::new(sequence.next()), edit.inserted, new)?;
        at = edit.at + edit.deleted;
    }
    io::copy(old, new).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_follow_one_another_within_the_file_and_change_what_was_asked() {
        let mut sequence = Sequence::new(1);
        let (mut asked, mut changed) = (0, 0);
        for number in 0..2000 {
            let file_bytes = 1 + sequence.below(200_000);
            let wanted = (file_bytes * (1 + number % 10)).div_ceil(100);
            let edits = plan(&mut sequence, file_bytes, wanted);
            let mut ends = edits.iter().map(|edit| edit.at + edit.deleted);
            assert!(edits.iter().skip(1).zip(ends.clone()).all(|(next, end)| end <= next.at), "{edits:?}");
            assert!(ends.next_back().unwrap() <= file_bytes);
            asked += wanted;
            changed += edits.iter().map(Edit::changed).sum::<u64>();
        }
        assert!((85..=100).contains(&(changed * 100 / asked)), "{changed} of {asked}");
    }

    #[test]
    fn what_no_edit_touches_stays() {
        let edits = [Edit { at: 2, deleted: 3, inserted: 0 }, Edit { at: 6, deleted: 0, inserted: 2 }];
        let mut new = Vec::new();
        let mut sequence = Sequence::new(1);
        edited(&mut b"0123456789".as_slice(), &mut new, &edits, Content::Packed, &mut sequence).unwrap();
        assert_eq!((&new[..3], &new[5..]), (b"015".as_slice(), b"6789".as_slice()));
    }
}
