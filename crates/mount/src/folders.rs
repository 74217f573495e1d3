//! The folders above the snapshots, and the names in them.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use siltstone_engine::snapshots::{SnapshotView, newest_last};
use siltstone_store::Time;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Longest name that a file system has.
const NAME_BYTES_MAX: usize = 255;
/// Bytes left for what tells equal names apart.
const SUFFIX_BYTES_MAX: usize = 12;
/// Folder of all snapshots.
const ALL: &str = "snapshots";
/// Link to the newest snapshot of a folder.
const LATEST: &[u8] = b"latest";

/// Entry that a name in a folder stands for.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A folder of names.
    Folder(Arc<Folder>),
    /// A snapshot.
    Snapshot(Arc<SnapshotView>),
    /// A symbolic link with this target.
    Link(Vec<u8>),
}

/// Names and what they stand for.
pub(crate) type Folder = BTreeMap<Vec<u8>, Place>;

/// The names under which a snapshot is shown.
type Grouping = fn(&SnapshotView) -> Vec<String>;

/// Arranges snapshots, given oldest first, in folders.
pub(crate) fn arranged(views: Vec<SnapshotView>, now: Time, zone: &TimeZone) -> Folder {
    let views: Vec<Arc<SnapshotView>> = newest_last(views, now).into_iter().map(Arc::new).collect();
    let mut root = Folder::new();
    let all = by_time(&views, zone);
    if let Some(Place::Link(newest)) = all.get(LATEST) {
        let target = [ALL.as_bytes(), b"/", newest].concat();
        root.insert(LATEST.to_vec(), Place::Link(target));
    }
    root.insert(ALL.into(), Place::Folder(Arc::new(all)));
    let ids = views.iter().map(|view| (view.snapshot.id.short().into_bytes(), view.clone()));
    root.insert(b"ids".to_vec(), Place::Folder(Arc::new(unlike(ids))));
    let groups: [(&str, Grouping); 3] = [
        ("series", |view| vec![view.series_name.clone()]),
        ("hosts", |view| vec![view.snapshot.host.clone()]),
        ("tags", |view| view.snapshot.tags.clone()),
    ];
    for (name, of) in groups {
        root.insert(name.into(), Place::Folder(Arc::new(by(of, &views, zone))));
    }
    root
}

/// A folder for each name that `of` gives, with the snapshots it gives it for.
fn by(of: Grouping, views: &[Arc<SnapshotView>], zone: &TimeZone) -> Folder {
    let mut groups: BTreeMap<String, Vec<Arc<SnapshotView>>> = BTreeMap::new();
    for view in views {
        for name in of(view) {
            groups.entry(name).or_default().push(view.clone());
        }
    }
    let mut folders = Folder::new();
    for (name, views) in groups {
        let name = free(&folders, &safe(name.as_bytes()));
        folders.insert(name, Place::Folder(Arc::new(by_time(&views, zone))));
    }
    folders
}

/// A folder of snapshots by their times, with a link to the newest, which comes last.
fn by_time(views: &[Arc<SnapshotView>], zone: &TimeZone) -> Folder {
    let mut folder = Folder::new();
    for view in views {
        let name = free(&folder, &time_name(view.snapshot.time, zone));
        folder.insert(LATEST.to_vec(), Place::Link(name.clone()));
        folder.insert(name, Place::Snapshot(view.clone()));
    }
    folder
}

fn unlike(named: impl Iterator<Item = (Vec<u8>, Arc<SnapshotView>)>) -> Folder {
    let mut folder = Folder::new();
    for (name, view) in named {
        folder.insert(free(&folder, &name), Place::Snapshot(view));
    }
    folder
}

/// A time to the second with its zone, as `2026-11-24T02:21:36+00:00`.
fn time_name(time: Time, zone: &TimeZone) -> Vec<u8> {
    match Timestamp::from_second(time.seconds) {
        Ok(moment) => moment.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string().into_bytes(),
        Err(_) => format!("second {}", time.seconds).into_bytes(),
    }
}

/// The name, or, if that is taken, the first of NAME-1, NAME-2 that is not.
fn free(folder: &Folder, name: &[u8]) -> Vec<u8> {
    let mut number = 0_u64;
    let mut candidate = name.to_vec();
    while folder.contains_key(&candidate) || candidate == LATEST {
        number += 1;
        candidate = [name, format!("-{number}").as_bytes()].concat();
    }
    candidate
}

/// A name that a file can have: `_` stands for what cannot be in one.
fn safe(name: &[u8]) -> Vec<u8> {
    let replaced = name.iter().map(|byte| if matches!(byte, b'/' | 0) { b'_' } else { *byte });
    let name: Vec<u8> = replaced.take(NAME_BYTES_MAX - SUFFIX_BYTES_MAX).collect();
    match name.as_slice() {
        b"" | b"." | b".." => [b"_", name.as_slice()].concat(),
        _ => name,
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn names(folder: &Folder) -> Vec<&str> {
        folder.keys().map(|name| std::str::from_utf8(name).expect("text")).collect()
    }

    fn inside<'f>(folder: &'f Folder, name: &str) -> &'f Folder {
        match &folder[name.as_bytes()] {
            Place::Folder(folder) => folder,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn names_are_safe_and_unlike() {
        assert_eq!(safe(b"host:/home\0"), b"host:_home_");
        assert_eq!([safe(b""), safe(b"."), safe(b"..")], [b"_".to_vec(), b"_.".to_vec(), b"_..".to_vec()]);
        assert_eq!(safe(&[b'a'; 400]).len(), NAME_BYTES_MAX - SUFFIX_BYTES_MAX);
        let mut folder = Folder::new();
        for expected in ["a", "a-1", "a-2"] {
            let name = free(&folder, b"a");
            assert_eq!(name, expected.as_bytes());
            folder.insert(name, Place::Link(Vec::new()));
        }
        assert_eq!(free(&folder, LATEST), b"latest-1");
    }

    #[test]
    fn a_time_is_told_with_its_zone() {
        let zone = TimeZone::fixed(jiff::tz::offset(-3));
        let time = Time { seconds: 86_400, nanoseconds: 5 };
        assert_eq!(time_name(time, &zone), b"1970-01-01T21:00:00-03:00");
        assert!(time_name(Time { seconds: i64::MAX, nanoseconds: 0 }, &zone).starts_with(b"second "));
    }

    #[test]
    fn without_snapshots_the_folders_are_empty() {
        let root = arranged(Vec::new(), Time { seconds: 0, nanoseconds: 0 }, &TimeZone::UTC);
        assert_eq!(names(&root), ["hosts", "ids", "series", "snapshots", "tags"]);
        assert!(inside(&root, "snapshots").is_empty() && inside(&root, "hosts").is_empty());
    }
}
