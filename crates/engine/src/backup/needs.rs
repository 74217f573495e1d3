//! Needs of a snapshot: the chunks that its catalog refers to, and those that these hang on.

use super::previous;
use super::run::BackupRun;
use crate::EngineError;
use crate::chunks::ChunkSource;
use roaring::RoaringTreemap;
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::Manifest;
use siltstone_store::{ChunkNumber, StoreError};

/// Parts of a snapshot that say what it needs.
#[derive(Clone, Copy)]
pub(super) struct Needs<'n> {
    /// Chunks that its catalog refers to.
    pub(super) direct: &'n RoaringTreemap,
    /// Numbers of earlier snapshots that new containers answer for.
    pub(super) healed: &'n RoaringTreemap,
    /// The next numbers of data and metadata chunks.
    pub(super) next: (ChunkNumber, ChunkNumber),
    /// The containers written by this run.
    pub(super) containers: &'n [ContainerRecord],
    /// Chunks that their regions hang on.
    pub(super) bases: &'n RoaringTreemap,
}

impl BackupRun<'_> {
    /// Finds what a snapshot needs: what its catalog refers to, and the bases; and whether it is no more than that.
    /// `before` is the manifest at the beginning of the run.
    pub(super) fn necessary(
        &self,
        before: &Manifest,
        needs: &Needs<'_>,
    ) -> Result<(RoaringTreemap, bool), EngineError> {
        let Needs { direct, healed, next: (next_data, next_metadata), containers, bases } = *needs;
        let mut new = RoaringTreemap::new();
        new.insert_range(before.next_data.0..next_data.0);
        new.insert_range(before.next_metadata.0..next_metadata.0);
        let mut needed = direct.clone();
        if bases.is_empty() || new.is_subset(direct) {
            needed |= bases;
        } else {
            // Of regions with chunks that no entry refers to in the end, the indexes tell which bases are needed. What
            // was put can be read behind a barrier only.
            self.repository.storage().barrier().map_err(StoreError::from)?;
            let mut written = Manifest::new(before.series, "");
            written.containers = containers.to_vec();
            let kept = direct & &new;
            needed |= ChunkSource::new(self.repository, &written).bases(&kept)?;
        }
        // New bases are whole, and so is what was healed.
        let old = &needed - &new - healed;
        match ChunkSource::new(self.repository, before).closure_of_live(&old) {
            // With a key that opens no index: what it uses again of older snapshots lies beside no delta.
            Err(StoreError::WriteOnly { .. }) => Ok((old | previous::needed(before) | needed, false)),
            // What a damaged index hides must stay: all that was needed by the snapshot before.
            Err(error) if error.is_damage() => {
                let hidden = before.necessary(before.snapshots().len().saturating_sub(1));
                Ok((old | hidden | needed, false))
            }
            other => Ok((other? | needed, true)),
        }
    }
}
