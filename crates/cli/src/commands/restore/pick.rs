//! `restore --pick`: words narrow a list of what the snapshot holds, numbers choose from it.

use crate::context::Context;
use crate::error::CliError;
use crate::render::{long_line, plural};
use siltstone_engine::EngineError;
use siltstone_engine::browse::ls;
use siltstone_engine::snapshots::SnapshotView;
use siltstone_store::catalog::{Entry, EntryPath};
use siltstone_store::repository::Repository;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};

/// Entries that a list shows; it counts the others.
const LISTED_MAX: usize = 50;

/// Sees early that there is somebody to ask.
///
/// # Errors
/// [`CliError::NoOneToPick`].
pub(super) fn require_terminal(context: &Context) -> Result<(), CliError> {
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if is_terminal && !context.output.json { Ok(()) } else { Err(CliError::NoOneToPick) }
}

/// Asks what to restore, of the whole snapshot or of what is below a path; at least one entry.
///
/// # Errors
/// [`CliError::NothingPicked`] if the answer ends before; what keeps the snapshot from being read.
pub(super) fn pick(
    repository: &Repository,
    view: &SnapshotView,
    below: Option<&EntryPath>,
    context: &Context,
) -> Result<Vec<EntryPath>, CliError> {
    let mut listed: Vec<EntryPath> = Vec::new();
    loop {
        let question = if listed.is_empty() { "Words of the path: " } else { "Numbers to restore, or other words: " };
        let line = ask(question)?.ok_or(CliError::NothingPicked)?;
        match Answer::read(&line, listed.len()) {
            Answer::Numbers(numbers) => {
                let picked = listed.into_iter().zip(1..).filter(|(_, number)| numbers.contains(number));
                return Ok(picked.map(|(path, _)| path).collect());
            }
            Answer::Beyond(number) => context.output.warn(format_args!("the list has no number {number}")),
            Answer::Words(words) => listed = list(repository, view, below, &words, context)?,
        }
    }
}

/// Returns a line from the terminal; `None` at its end.
fn ask(question: &str) -> Result<Option<String>, CliError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(question.as_bytes()).and_then(|()| stdout.flush()).map_err(CliError::Output)?;
    let mut line = Vec::new();
    io::BufRead::read_until(&mut io::stdin().lock(), b'\n', &mut line).map_err(CliError::Answer)?;
    Ok((!line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned()))
}

/// A line that was typed, as it is understood.
#[derive(PartialEq, Eq, Debug)]
enum Answer {
    /// Numbers of the list.
    Numbers(BTreeSet<usize>),
    /// A number that the list does not have.
    Beyond(usize),
    /// Words to look for, in small letters.
    Words(Vec<String>),
}

impl Answer {
    /// Understands a line beside a list of this length: numbers and ranges of it, or else words.
    fn read(line: &str, listed: usize) -> Self {
        let parts: Vec<&str> = line.split([' ', ',', '\t', '\r', '\n']).filter(|part| !part.is_empty()).collect();
        let ranges: Option<Vec<_>> = parts.iter().map(|part| range(part)).collect();
        match ranges {
            Some(ranges) if listed > 0 && !ranges.is_empty() => {
                let ends = ranges.iter().flat_map(|(first, last)| [*first, *last]);
                match ends.into_iter().find(|number| !(1..=listed).contains(number)) {
                    Some(number) => Self::Beyond(number),
                    None => Self::Numbers(ranges.iter().flat_map(|(first, last)| *first..=*last).collect()),
                }
            }
            _ => Self::Words(parts.iter().map(|word| word.to_lowercase()).collect()),
        }
    }
}

/// A number, or a range as `3-5`.
fn range(part: &str) -> Option<(usize, usize)> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some((first, last))
}

/// Prints the entries whose paths have all words, whatever the case of letters, with their numbers; returns those
/// listed.
fn list(
    repository: &Repository,
    view: &SnapshotView,
    below: Option<&EntryPath>,
    words: &[String],
    context: &Context,
) -> Result<Vec<EntryPath>, CliError> {
    let (mut listed, mut more, mut failed) = (Vec::new(), 0, None);
    let mut visit = |entry: &Entry| {
        let path = String::from_utf8_lossy(entry.path.as_bytes()).to_lowercase();
        if !words.iter().all(|word| path.contains(word)) {
            return Ok(());
        }
        if listed.len() == LISTED_MAX {
            more += 1;
            return Ok(());
        }
        listed.push(entry.path.clone());
        let printed = context.output.line(format_args!("{:>4}  {}", listed.len(), long_line(entry)));
        printed.map_err(|error| {
            failed = Some(error);
            EngineError::Interrupted
        })
    };
    let visited = ls(repository, view, below, true, &mut visit);
    if let Some(error) = failed {
        return Err(error);
    }
    visited?;
    match (listed.len(), more) {
        (0, _) => context.output.line("nothing has all of these words in its path")?,
        (_, 0) => {}
        (_, more) => {
            let noun = plural(more, "entry");
            context.output.line(format_args!("and {more} more {noun}: more words narrow the list"))?;
        }
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Answer {
        Answer::Words(words.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn numbers_and_ranges_of_the_list_choose_and_all_else_is_words() {
        assert_eq!(Answer::read("1,3-5 4\n", 9), Answer::Numbers([1, 3, 4, 5].into()));
        assert_eq!(Answer::read("3-10\n", 9), Answer::Beyond(10));
        assert_eq!(Answer::read("0\n", 9), Answer::Beyond(0));
        assert_eq!(Answer::read("Letters 2025\n", 9), words(&["letters", "2025"]));
        assert_eq!(Answer::read("5-3\n", 9), words(&["5-3"]));
        assert_eq!(Answer::read("2025\n", 0), words(&["2025"]), "there is no list yet");
        assert_eq!(Answer::read("\n", 9), words(&[]), "which lists everything");
    }
}
