//! Pieces of work: containers that are worked on between two commits.

use siltstone_store::ContainerId;
use siltstone_store::manifest::Manifest;
use std::collections::{HashMap, VecDeque};

/// Containers in pieces of at most so many bytes, with the bytes of each; at least one container in each, and at least
/// one piece.
pub(super) fn pieces(
    manifest: &Manifest,
    containers: Vec<ContainerId>,
    piece_bytes: u64,
) -> VecDeque<(Vec<ContainerId>, u64)> {
    let bytes: HashMap<ContainerId, u64> =
        manifest.containers.iter().map(|record| (record.id, record.object_bytes)).collect();
    let (mut pieces, mut last, mut last_bytes) = (VecDeque::new(), Vec::new(), 0);
    for id in containers {
        let added = bytes.get(&id).copied().unwrap_or_default();
        if !last.is_empty() && last_bytes + added > piece_bytes {
            pieces.push_back((std::mem::take(&mut last), std::mem::take(&mut last_bytes)));
        }
        last_bytes += added;
        last.push(id);
    }
    pieces.push_back((last, last_bytes));
    pieces
}
