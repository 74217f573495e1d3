//! Chunks that come again in a group, kept from one occurrence to the next.
//!
//! All content of a group is known before the first region is decoded. So it is known what comes again, and when: of
//! what does not fit into memory, that goes which is wanted last (Belady 1966). To keep the regions instead would take
//! more memory, for much of a region may not come again; and what is kept was verified.

use super::prefetch::Wanted;
use crate::decode::Bytes;
use crate::parallel::lock;
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

/// Chunks that are kept, by the position in the group's content at which they are wanted; `None` where one was wanted
/// before it was kept.
#[derive(Default)]
pub(super) struct KeptChunks(Mutex<HashMap<usize, Option<Bytes>>>);

impl KeptChunks {
    /// Keeps a chunk until it is taken; not if that was tried already.
    pub(super) fn put(&self, position: usize, chunk: Bytes) {
        let mut kept = lock(&self.0);
        if kept.remove(&position).is_none() {
            kept.insert(position, Some(chunk));
        }
    }

    /// Takes what was kept for a position; `None` if whoever should keep it has not come so far.
    pub(super) fn take(&self, position: usize) -> Option<Bytes> {
        let mut kept = lock(&self.0);
        let chunk = kept.remove(&position);
        if chunk.is_none() {
            kept.insert(position, None);
        }
        chunk.flatten()
    }
}

/// Marks what is kept of a group's content, so many bytes at a time.
pub(super) fn mark(mut content: Vec<&mut Wanted>, bytes_max: usize) {
    let again = positions_again(&content);
    // What is kept by then: where it is wanted, and since where it is kept.
    let (mut kept, mut bytes) = (BTreeMap::<usize, usize>::new(), 0);
    for now in 0..content.len() {
        if let Some(since) = kept.remove(&now) {
            bytes -= content[since].bytes;
            content[since].kept_until = Some(now);
            content[now].kept_for = Some(now);
        }
        let Some(again) = again[now] else { continue };
        kept.insert(again, now);
        bytes += content[now].bytes;
        while bytes > bytes_max
            && let Some((_, since)) = kept.pop_last()
        {
            bytes -= content[since].bytes;
        }
    }
}

/// Where each chunk comes again.
fn positions_again(content: &[&mut Wanted]) -> Vec<Option<usize>> {
    let mut coming = HashMap::new();
    let backwards = content.iter().enumerate().rev();
    let mut again: Vec<_> = backwards.map(|(now, wanted)| coming.insert(wanted.number, now)).collect();
    again.reverse();
    again
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_store::ChunkNumber;

    /// Which chunks are there when they are wanted, of chunks of ten bytes.
    fn kept(numbers: &[u64], bytes_max: usize) -> Vec<usize> {
        let mut content: Vec<Wanted> = numbers.iter().map(|number| Wanted::new(ChunkNumber(*number), 10)).collect();
        mark(content.iter_mut().collect(), bytes_max);
        let promised: Vec<usize> = content.iter().filter_map(|wanted| wanted.kept_until).collect();
        let had: Vec<usize> = content.iter().filter_map(|wanted| wanted.kept_for).collect();
        let mut sorted = promised.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, had, "what is promised is had");
        had
    }

    #[test]
    fn what_comes_again_is_kept_until_then() {
        assert_eq!(kept(&[1, 2, 1, 3, 2, 1], 100), [2, 4, 5]);
        assert_eq!(kept(&[1, 1, 1], 10), [1, 2]);
        assert!(kept(&[1, 2, 3], 100).is_empty());
        assert!(kept(&[], 100).is_empty());
    }

    #[test]
    fn what_is_wanted_last_goes_first() {
        assert_eq!(kept(&[1, 2, 3, 3, 2, 1], 20), [3, 4]);
        assert_eq!(kept(&[1, 2, 3, 1, 2, 3], 20), [3, 4]);
        assert!(kept(&[1, 1], 9).is_empty());
    }

    #[test]
    fn a_chunk_is_kept_for_one_position_and_taken_once() {
        let (kept, chunk) = (KeptChunks::default(), Bytes::from_static(&[1, 2]));
        kept.put(5, chunk.clone());
        assert_eq!(kept.take(5), Some(chunk.clone()));
        assert_eq!(kept.take(6), None, "too early");
        kept.put(6, chunk);
        assert!(lock(&kept.0).is_empty(), "nobody would take it");
    }
}
