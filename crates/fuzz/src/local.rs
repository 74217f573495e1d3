//! Inputs from this machine: lists of changes, patterns, cache files, access control lists out of catalogs.

use crate::sealing::{KEYS, REPOSITORY, SERIES};
use siltstone_engine::backup::ChangedList;
use siltstone_engine::fs::{Case, ExcludeRules, PathFilter};
use siltstone_engine::fuzzing;
use siltstone_engine::index::{CacheIdentity, CacheKind, CachedRun, FingerprintIndex};
use siltstone_store::catalog::EntryPath;
use siltstone_store::{Fingerprint, SnapshotId};
use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;

/// Memory that a list of changes takes its share of: nearly the least, and plenty.
const MEMORY_BYTES: [u64; 2] = [145 << 20, 512 << 20];
/// Patterns that are looked at; each takes a machine of its own.
const PATTERNS_MAX: usize = 8;
/// The snapshot of cache files.
const SNAPSHOT: SnapshotId = SnapshotId([6; 32]);
/// Memory of an index: little enough that large files stay files.
const INDEX_BYTES: u64 = 64 << 10;

/// A list of changes, as text or as raw paths.
pub(crate) fn changed_list(data: &[u8]) -> bool {
    let Some((mode, data)) = data.split_first() else { return false };
    let mut list = ChangedList::new(MEMORY_BYTES[usize::from(mode & 1)]);
    let added = if mode & 2 == 0 {
        list.add_lines("the list", Cursor::new(data))
    } else {
        list.add_raw("the list", Cursor::new(data))
    };
    added.is_ok()
}

/// Patterns, one a line, held against the path in the first line.
pub(crate) fn patterns(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.split('\n');
    let path = EntryPath::new(lines.next().unwrap_or_default());
    let mut filter = PathFilter::builder();
    let mut rules = ExcludeRules::builder();
    for (number, line) in lines.take(PATTERNS_MAX).enumerate() {
        let case = if number % 2 == 0 { Case::Sensitive } else { Case::Insensitive };
        let is_sound = rules.pattern(line, case).is_ok() && filter.include(line, case).is_ok();
        if !is_sound || rules.if_present(line).is_err() || filter.exclude(line, case).is_err() {
            return false;
        }
    }
    let (Ok(filter), Ok(_), Ok(path)) = (filter.build(), rules.build(), path) else { return false };
    let _ = (filter.select(&path, true), filter.select(&path, false));
    true
}

/// The value of an extended attribute that holds an access control list.
pub(crate) fn acl(data: &[u8]) -> bool {
    fuzzing::acl_text(data).is_some()
}

/// An archive to be imported. Blocks with the mark of a header get the sum that belongs to them.
pub(crate) fn tar(data: &[u8]) -> bool {
    let mut bytes = data.to_vec();
    for block in bytes.as_chunks_mut::<512>().0 {
        if block[257..262] == *b"ustar" {
            block[148..156].fill(b' ');
            let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
            block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
    let Ok(mut file) = tempfile::tempfile() else { return false };
    file.write_all(&bytes).is_ok() && fuzzing::tar(&file).is_some()
}

/// Files that are kept from one run to the next: as they lie there, or the records of one, under its code of
/// authentication.
pub(crate) fn cache(data: &[u8]) -> bool {
    let Some((mode, data)) = data.split_first() else { return false };
    let Ok(folder) = tempfile::tempdir() else { return false };
    let genuine = mode & 4 == 0;
    match mode & 3 {
        0 => index(folder.path(), CacheKind::Last, data, genuine),
        1 => index(folder.path(), CacheKind::Older, data, genuine),
        2 => {
            let path = folder.path().join(format!("{REPOSITORY}.seen"));
            let header = header(b"SILTSEEN", &[&REPOSITORY.0]);
            write(&path, &header, data, genuine, 159)
                && fuzzing::memory_of_history(folder.path(), REPOSITORY, KEYS.cache_key()).is_ok_and(|read| read)
        }
        _ => {
            let path = folder.path().join("log");
            let header = header(b"SILTREAD", &[&SERIES.0]);
            write(&path, &header, data, genuine, 28) && fuzzing::readings(&path, &header, &KEYS.cache_key()).is_ok()
        }
    }
}

fn index(folder: &Path, kind: CacheKind, data: &[u8], genuine: bool) -> bool {
    let magic = if kind == CacheKind::Last { b"SILTINDX" } else { b"SILTOLDR" }.as_slice();
    let path = folder.join("index");
    if !write(&path, &header(magic, &[&SERIES.0, &SNAPSHOT.0]), data, genuine, 24) {
        return false;
    }
    let identity = CacheIdentity { kind, series: SERIES, snapshot: SNAPSHOT };
    let Ok(run) = CachedRun::open(&path, &identity, &KEYS.cache_key(), INDEX_BYTES) else { return false };
    let records = run.len();
    let index = FingerprintIndex::open(run, INDEX_BYTES, folder);
    for record in data.chunks_exact(24) {
        let fingerprint = Fingerprint(*record.first_chunk().expect("24 bytes"));
        let found = index.get(&fingerprint).expect("the file is there");
        assert!(found.is_some() || !genuine, "what is in the file is found");
    }
    records > 0
}

fn header(magic: &[u8], fields: &[&[u8]]) -> Vec<u8> {
    [magic, &1u64.to_le_bytes(), &fields.concat()].concat()
}

/// Writes the file: the data as it is, or as many whole records as it has, with header and trailer.
fn write(path: &Path, header: &[u8], data: &[u8], genuine: bool, record_bytes: usize) -> bool {
    if !genuine {
        return fs::write(path, data).is_ok();
    }
    let count = data.len() / record_bytes;
    let mut file = [header, &data[..count * record_bytes], &(count as u64).to_le_bytes()].concat();
    let mac = blake3::keyed_hash(&KEYS.cache_key(), &file);
    file.extend(mac.as_bytes());
    fs::write(path, file).is_ok()
}
