//! Packing: regions go into containers in the order in which they were cut off.

use super::context::Stages;
use crate::EngineError;
use crate::backup::flow::Handed;
use crate::backup::notes::Notes;
use crate::backup::outcome::Noted;
use crate::pack::{Packed, Packer};
use crossbeam_channel::Receiver;

impl Stages<'_, '_, '_> {
    /// Packs what is handed on, and commits the checkpoints between.
    pub(super) fn pack(&self, handed: &Receiver<Handed>, mut notes: Notes<'_>) -> Result<(Packed, Noted), EngineError> {
        let mut packer = Packer::new(self.run.repository, self.manifest.series, self.sink);
        for next in handed {
            match next {
                Handed::Region(kind, ticket) => {
                    let encoded = ticket.wait()??;
                    packer.push(kind, &encoded.region)?;
                    notes.take(encoded);
                }
                Handed::Checkpoint(reached) => {
                    notes.forget_texts();
                    let packed = packer.flush()?;
                    if let Some(checkpoints) = self.checkpoints {
                        self.run.commit_checkpoint(checkpoints, self.manifest, &reached, packed, notes.so_far())?;
                    }
                }
            }
        }
        Ok((packer.finish()?, notes.finish()))
    }
}
