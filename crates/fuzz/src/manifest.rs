//! Manifests.

use crate::parts;
use crate::sealing::SERIES;
use siltstone_similar::region::plain;
use siltstone_store::SeriesId;
use siltstone_store::manifest::Manifest;
use siltstone_store::storage::ObjectName;
use std::collections::BTreeSet;

/// The number of the manifest that is made.
pub(crate) const SEQUENCE: u64 = 5;
/// Bytes that a body may have once decompressed: a few of them stand for any number.
const BODY_BYTES_MAX: u64 = 4 << 20;
/// Room for a lease.
const LEASE_BYTES: usize = 510;
/// Snapshots whose sets are looked at one by one.
const SNAPSHOTS_MAX: usize = 64;

/// The plain content of a manifest, or its parts: times and lease, the body before compression, how many containers it
/// has.
pub(crate) fn manifest(data: &[u8]) -> bool {
    let Some((mode, data)) = data.split_first() else { return false };
    let name = ObjectName::Manifest(SERIES, SEQUENCE);
    let content = if mode & 1 == 0 { Some(data.to_vec()) } else { assembled(data) };
    let Some(content) = content else { return false };
    let Ok(manifest) = Manifest::decode_within(&name, &content, BODY_BYTES_MAX) else { return false };
    look(&manifest);
    let again = manifest.encode().expect("what was read can be written");
    assert!(Manifest::decode(&name, &again).expect("and read again") == manifest);
    true
}

fn look(manifest: &Manifest) {
    let is_sound = manifest.faults().is_empty();
    assert!(!is_sound || manifest.verify_intervals().is_ok());
    let (live, ghosts) = (manifest.live(), manifest.ghosts());
    assert!(ghosts.is_subset(&live));
    let _ = manifest.has_hulls();
    if manifest.snapshots().len() > SNAPSHOTS_MAX {
        return;
    }
    let mut seen = 0;
    manifest.for_each_necessary(|position, necessary| {
        assert_eq!(*necessary, manifest.necessary(position));
        seen += 1;
    });
    assert_eq!(seen, manifest.snapshots().len());
    manifest.for_each_direct(|_, _| {});
    if let Some(first) = manifest.snapshots().first() {
        let ids = BTreeSet::from([first.id]);
        let dead = manifest.dead_after_removal(&ids);
        let mut rest = manifest.clone();
        assert_eq!(rest.remove_snapshots(&ids).len(), 1);
        assert!(!is_sound || (rest.live() & dead).is_empty(), "what is dead is needed by nobody");
    }
}

/// Puts the parts together; what has a fixed size is cut or filled up.
fn assembled(data: &[u8]) -> Option<Vec<u8>> {
    let pieces = parts(data);
    let [head, lease, body, salts, ..] = pieces.as_slice() else { return None };
    let mut content = SEQUENCE.to_le_bytes().to_vec();
    content.extend(filled(head, 32 + 8 + 4));
    let lease = lease.get(..LEASE_BYTES).unwrap_or(lease);
    content.extend(u16::try_from(lease.len()).ok()?.to_le_bytes());
    content.extend(filled(lease, LEASE_BYTES));
    let compressed = plain::compress(body, 1).ok()?;
    content.extend((body.len() as u64).to_le_bytes());
    content.extend((compressed.len() as u64).to_le_bytes());
    content.extend(compressed);
    let containers = salts.first_chunk().map_or(0, |count| u16::from_le_bytes(*count));
    content.resize(content.len() + 32 * usize::from(containers), 7);
    Some(content)
}

fn filled(bytes: &[u8], length: usize) -> Vec<u8> {
    let mut filled = bytes.to_vec();
    filled.resize(length, 0);
    filled
}

/// The parts of a plain manifest of this series, as the target wants them, for the series of the targets.
pub(crate) fn taken_apart(content: &[u8], series: SeriesId) -> Option<Vec<u8>> {
    let (head, rest) = content.split_at_checked(8 + 44)?;
    let (lease_bytes, rest) = rest.split_first_chunk()?;
    let (lease, rest) = rest.split_at_checked(LEASE_BYTES)?;
    let (body_bytes, rest) = rest.split_first_chunk()?;
    let (compressed_bytes, rest) = rest.split_first_chunk()?;
    let (compressed, salts) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*compressed_bytes)).ok()?)?;
    let body_bytes = u64::from_le_bytes(*body_bytes).min(BODY_BYTES_MAX);
    let mut body = plain::decompress(compressed, usize::try_from(body_bytes).ok()?).ok()?;
    // It begins with the series.
    body.get_mut(..16).filter(|id| *id == series.0)?.copy_from_slice(&SERIES.0);
    let containers = u16::try_from(salts.len() / 32).ok()?.to_le_bytes();
    let lease = lease.get(..usize::from(u16::from_le_bytes(*lease_bytes)))?;
    let joined = crate::join([head.get(8..)?, lease, &body, &containers])?;
    Some([&[1], &joined[..]].concat())
}
