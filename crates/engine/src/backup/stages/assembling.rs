//! Assembling: what the stages before bring becomes a catalog and its snapshot, with checkpoints on the way.

use super::context::Stages;
use crate::EngineError;
use crate::backup::assemble::ChunkStore;
use crate::backup::checkpoint::Pace;
use crate::backup::entries::Entries;
use crate::backup::flow::Step;
use crate::backup::outcome::{Assembled, Tally};
use crate::backup::piece::Buffers;
use crate::backup::previous;
use crossbeam_channel::{Receiver, Sender};
use siltstone_store::catalog::MetadataSink;
use siltstone_store::manifest::{Snapshot, SnapshotRecord};
use std::convert::Infallible;

/// Assembling stage before it runs.
pub(super) struct Assembly<'a, 'env> {
    /// Dropped when assembling has ended: that tells every thread that holds the other end.
    pub(super) end: Sender<Infallible>,
    pub(super) buffers: &'a Buffers,
    pub(super) store: ChunkStore<'a, 'env>,
}

/// Counts of the entries, the snapshot to be, and what is known of its chunks.
pub(super) type Catalogued = (Tally, Snapshot, Assembled);

impl Stages<'_, '_, '_> {
    /// Assembles all steps.
    pub(super) fn assemble(
        &self,
        assembly: Assembly<'_, '_>,
        steps: Receiver<Step>,
        mut pace: Pace,
    ) -> Result<Catalogued, EngineError> {
        let Assembly { end: _end, buffers, mut store } = assembly;
        let mut entries = Entries::new(&mut store, &*self.run.resources.observer);
        match self.take_steps(&mut entries, steps, buffers, &mut pace) {
            Err(EngineError::Interrupted) if pace.is_worth_it(entries.new_bytes()) => {
                self.checkpoint(&mut entries, true)?;
                return Err(EngineError::Interrupted);
            }
            other => other?,
        }
        let (tally, root) = entries.finish()?;
        let snapshot = self.run.snapshot(root, tally.statistics)?;
        let is_unwanted = self.run.is_unwanted(root, self.manifest);
        let snapshot = match previous::recorded_alike(self.manifest, &snapshot) {
            _ if is_unwanted => snapshot,
            Some(earlier) if store.keep_known(earlier.record) => Snapshot { record: earlier.record, ..snapshot },
            _ => self.recorded(snapshot, &mut store)?,
        };
        Ok((tally, snapshot, store.finish()?))
    }

    /// Takes what the stages before bring, with a checkpoint wherever one is due.
    fn take_steps(
        &self,
        entries: &mut Entries<'_, '_, '_>,
        steps: Receiver<Step>,
        buffers: &Buffers,
        pace: &mut Pace,
    ) -> Result<(), EngineError> {
        for step in steps {
            self.check_cancelled()?;
            match step {
                Step::Items(items) => items.into_iter().try_for_each(|item| entries.item(item))?,
                Step::Pieces(pieces) => {
                    for ticket in pieces {
                        let piece = ticket.wait()?;
                        entries.piece(piece.parts, &piece.bytes)?;
                        buffers.give_back(piece.bytes);
                        self.check_cancelled()?;
                        if pace.is_due(entries.new_bytes()) {
                            self.checkpoint(entries, false)?;
                        }
                    }
                }
            }
        }
        // Readers that were asked to stop end as if they were done.
        self.check_cancelled()
    }

    /// Tells when checkpoints are due, if any are to be made.
    pub(super) fn pace(&self, is_wanted: bool) -> Pace {
        // The next run of a write-only client could not read what a checkpoint has.
        let is_wanted = is_wanted && self.checkpoints.is_some() && self.run.repository.may_read();
        Pace::new(self.run.options.checkpoint.filter(|_| is_wanted))
    }

    /// Hands on a checkpoint of what is assembled so far.
    fn checkpoint(&self, entries: &mut Entries<'_, '_, '_>, is_last: bool) -> Result<(), EngineError> {
        entries.checkpoint(is_last, |root, statistics, store| {
            let snapshot = Snapshot { partial: true, ..self.run.snapshot(root, statistics)? };
            self.recorded(snapshot, store)
        })
    }

    /// Puts the snapshot's record behind its catalog.
    fn recorded(&self, snapshot: Snapshot, store: &mut ChunkStore<'_, '_>) -> Result<Snapshot, EngineError> {
        let record = store.store(&SnapshotRecord::encode(self.run.series, &snapshot)?)?;
        Ok(Snapshot { record, ..snapshot })
    }
}
