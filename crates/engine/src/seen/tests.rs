//! Contradictions, and what the file keeps.

use super::file::MemoryFile;
use super::*;
use siltstone_store::{RepositoryId, Time};
use tempfile::TempDir;

fn sighting(sequence: u64, hash: u8) -> Sighting {
    let committed = Time { seconds: 1_400_000_000, nanoseconds: 0 };
    Sighting { title: "series 'home'".into(), sequence, committed, hash: [hash; 32], next: [5, 7] }
}

fn found(sequence: u64, hash: u8, previous: u8) -> Found {
    Found { sighting: sighting(sequence, hash), previous: [previous; 32] }
}

#[test]
fn only_what_cannot_follow_from_what_was_seen_is_a_loss() {
    let seen = sighting(10, 1);
    let is_lost = |found: Option<Found>| judge(&seen, found.as_ref()).is_some();
    assert!(is_lost(None));
    assert!(is_lost(Some(found(9, 1, 0))), "a lower number");
    assert!(is_lost(Some(found(10, 2, 0))), "another manifest of that number");
    assert!(is_lost(Some(found(11, 2, 9))), "the next one follows another");
    assert!(!is_lost(Some(found(10, 1, 0))), "what was seen");
    assert!(!is_lost(Some(found(11, 2, 1))), "what follows it");
    assert!(!is_lost(Some(found(30, 2, 9))), "others went on");
    for at in 0..2 {
        let mut other = found(30, 2, 9);
        other.sighting.next[at] -= 1;
        assert!(is_lost(Some(other)), "numbers are given out again");
    }
}

#[test]
fn a_loss_names_the_series_what_was_seen_and_what_is_there() {
    let told = |found: Option<Found>| judge(&sighting(10, 1), found.as_ref()).expect("a loss").to_string();
    assert_eq!(told(None), "series 'home' is gone (commit 10 of 2014-05-13T16:53:20Z was seen)");
    assert!(told(Some(found(9, 1, 0))).contains("rolled back to commit 9 of"));
    assert!(told(Some(found(10, 2, 0))).contains("does not continue commit 10 of 2014-05-13T16:53:20Z"));
}

fn file(folder: &TempDir) -> MemoryFile {
    MemoryFile::new(&folder.path().join("made/on the way"), RepositoryId([3; 16]), [9; 32])
}

fn subject(number: u8) -> Subject {
    if number == 1 { Subject::Record } else { Subject::Series(SeriesId([number; 16])) }
}

fn of(number: u8, sighting: Sighting) -> BTreeMap<Subject, Sighting> {
    BTreeMap::from([(subject(number), sighting)])
}

#[test]
fn the_file_keeps_what_was_seen_and_long_names_in_part() {
    let folder = TempDir::new().expect("a folder");
    let file = file(&folder);
    assert_eq!(file.read().expect("read"), (BTreeMap::new(), false), "a first contact");
    let long = Sighting { title: "\u{4e2d}".repeat(50), ..sighting(4, 4) };
    file.merge(&of(1, sighting(3, 3))).expect("written");
    file.merge(&of(2, long.clone())).expect("written");
    let (seen, is_begun_anew) = file.read().expect("read");
    assert!(!is_begun_anew);
    assert_eq!(seen[&subject(1)], sighting(3, 3));
    assert_eq!(seen[&subject(2)], Sighting { title: "\u{4e2d}".repeat(26), ..long });
}

#[test]
fn of_writers_at_once_the_highest_number_stays() {
    let folder = TempDir::new().expect("a folder");
    std::thread::scope(|scope| {
        for writer in 0..4u64 {
            let file = file(&folder);
            scope.spawn(move || {
                for turn in 0..25 {
                    let sequence = (turn * 7 + writer * 13) % 100;
                    file.merge(&of(1, sighting(sequence, 1))).expect("written");
                    file.merge(&of(10 + u8::try_from(writer).expect("small"), sighting(turn, 1))).expect("written");
                }
            });
        }
    });
    let (seen, _) = file(&folder).read().expect("read");
    let highest = (0..4).flat_map(|writer| (0..25).map(move |turn| (turn * 7 + writer * 13) % 100)).max();
    assert_eq!(Some(seen[&subject(1)].sequence), highest);
    assert!((10..14).all(|series| seen[&subject(series)].sequence == 24));
}

#[test]
fn a_file_that_was_changed_is_begun_anew_and_says_so() {
    let folder = TempDir::new().expect("a folder");
    let file = file(&folder);
    file.merge(&of(1, sighting(3, 3))).expect("written");
    let path = folder.path().join("made/on the way").join(format!("{}.seen", RepositoryId([3; 16])));
    let genuine = std::fs::read(&path).expect("the file");
    for at in [0, 8, 20, 50, genuine.len() - 1] {
        let mut bytes = genuine.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, &bytes).expect("written");
        assert_eq!(file.read().expect("read"), (BTreeMap::new(), true), "byte {at}");
        std::fs::write(&path, &genuine[..at]).expect("written");
        assert_eq!(file.read().expect("read"), (BTreeMap::new(), true), "{at} bytes");
    }
    file.replace(&of(1, sighting(2, 2))).expect("written");
    assert_eq!(file.read().expect("read"), (of(1, sighting(2, 2)), false));
}
