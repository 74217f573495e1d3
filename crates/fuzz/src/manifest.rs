//! Manifests.

use crate::sealing::SERIES;
use crate::{filled, parts};
use siltstone_similar::region::plain;
use siltstone_store::SeriesId;
use siltstone_store::manifest::{Manifest, ManifestRoot};
use siltstone_store::storage::ObjectName;
use std::collections::BTreeSet;

/// The number of the manifest that is made.
pub(crate) const SEQUENCE: u64 = 5;
/// Bytes that a body may have once decompressed: a few of them stand for any number.
const BODY_BYTES_MAX: u64 = 4 << 20;
/// Room for a lease.
const LEASE_BYTES: usize = 510;
/// The number of lists.
const LISTS: u8 = 5;
/// Snapshots whose sets are looked at one by one.
const SNAPSHOTS_MAX: usize = 64;

/// The plain content of a manifest, or what it consists of: times and lease, the body before compression, how many
/// salts it has, and the texts of parts, each behind the number of its list.
pub(crate) fn manifest(data: &[u8]) -> bool {
    let Some((mode, data)) = data.split_first() else { return false };
    let name = ObjectName::Manifest(SERIES, SEQUENCE);
    let content = if mode & 1 == 0 { Some((data.to_vec(), Vec::new())) } else { assembled(data) };
    let Some((content, texts)) = content else { return false };
    let root = ManifestRoot::decode_within(&name, &content, BODY_BYTES_MAX);
    let Ok(manifest) = root.and_then(|root| root.complete(&name, texts)) else { return false };
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

/// Puts a manifest together, and gives the texts of its parts; what has a fixed size is cut or filled up.
fn assembled(data: &[u8]) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let pieces = parts(data);
    let [head, lease, body, salts, rest @ ..] = pieces.as_slice() else { return None };
    let mut content = SEQUENCE.to_le_bytes().to_vec();
    content.extend(filled(head, 32 + 8 + 4));
    let lease = lease.get(..LEASE_BYTES).unwrap_or(lease);
    content.extend(u16::try_from(lease.len()).ok()?.to_le_bytes());
    content.extend(filled(lease, LEASE_BYTES));
    let compressed = plain::compress(body, 1).ok()?;
    content.extend((body.len() as u64).to_le_bytes());
    content.extend((compressed.len() as u64).to_le_bytes());
    let salts = salts.first_chunk().map_or(0, |count| 32 * u64::from(u16::from_le_bytes(*count)));
    content.extend(salts.to_le_bytes());
    let mut texts: Vec<(u8, &[u8])> =
        rest.iter().filter_map(|part| part.split_first()).map(|(list, text)| (list % LISTS, text)).collect();
    texts.sort_by_key(|(list, _)| *list);
    for list in 0..LISTS {
        let parts = texts.iter().filter(|(of, _)| *of == list).count();
        content.extend((parts as u64).to_le_bytes());
    }
    content.extend(compressed);
    content.resize(content.len() + usize::try_from(salts).ok()?, 7);
    for (_, text) in &texts {
        content.extend([1; 12]);
        let bytes = u32::try_from(text.len()).ok()?.to_le_bytes();
        content.extend([bytes, bytes].concat());
        content.extend([0; 32]);
    }
    Some((content, texts.into_iter().map(|(_, text)| text.to_vec()).collect()))
}

/// Returns what a plain manifest of this series and the texts of its parts consist of, as the target wants it, for the
/// series of the targets.
pub(crate) fn taken_apart(content: &[u8], series: SeriesId, texts: &[Vec<u8>]) -> Option<Vec<u8>> {
    let (head, rest) = content.split_at_checked(8 + 44)?;
    let (lease_bytes, rest) = rest.split_first_chunk()?;
    let (lease, rest) = rest.split_at_checked(LEASE_BYTES)?;
    let (body_bytes, rest) = rest.split_first_chunk()?;
    let (compressed_bytes, rest) = rest.split_first_chunk()?;
    let (salts_bytes, rest) = rest.split_first_chunk()?;
    let (counts, rest) = rest.split_at_checked(8 * usize::from(LISTS))?;
    let (compressed, _) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*compressed_bytes)).ok()?)?;
    let body_bytes = u64::from_le_bytes(*body_bytes).min(BODY_BYTES_MAX);
    let mut body = plain::decompress(compressed, usize::try_from(body_bytes).ok()?).ok()?;
    // It begins with the series.
    body.get_mut(..16).filter(|id| *id == series.0)?.copy_from_slice(&SERIES.0);
    let containers = u16::try_from(u64::from_le_bytes(*salts_bytes) / 32).ok()?.to_le_bytes();
    let lease = lease.get(..usize::from(u16::from_le_bytes(*lease_bytes)))?;
    let (counts, _) = counts.as_chunks();
    let lists = counts.iter().zip(0u8..).flat_map(|(count, list)| (0..u64::from_le_bytes(*count)).map(move |_| list));
    let texts = lists.zip(texts).map(|(list, text)| [&[list], &text[..]].concat());
    let whole = [head.get(8..)?, lease, &body, &containers].map(<[u8]>::to_vec);
    let joined = crate::join(whole.into_iter().chain(texts))?;
    Some([&[1], &joined[..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;
    use std::path::Path;

    #[test]
    fn a_manifest_in_parts_is_among_the_seeds_and_sound() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/golden/v1/repository");
        let seeds = seeds::all(&golden, seeds::GOLDEN_PASSWORD).expect("seeds of the golden repository");
        let is_in_parts = |seed: &&Vec<u8>| matches!(seed.split_first(), Some((1, rest)) if parts(rest).len() > 4);
        let in_parts: Vec<_> = seeds["manifest"].iter().filter(is_in_parts).collect();
        assert!(!in_parts.is_empty() && in_parts.iter().all(|seed| manifest(seed)));
    }
}
