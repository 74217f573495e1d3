//! Packing: regions go into containers in the order in which they were cut off. What was written is read back before
//! anything is committed that refers to it, by a checkpoint or by the run.

use super::context::Stages;
use crate::EngineError;
use crate::backup::flow::Handed;
use crate::backup::notes::Notes;
use crate::backup::outcome::Noted;
use crate::pack::{Packed, Packer};
use crate::written::verify_written;
use crossbeam_channel::Receiver;
use siltstone_store::container::ContainerRecord;

impl Stages<'_, '_, '_> {
    /// Packs what is handed on, and commits the checkpoints between. All containers were read back in the end, if they
    /// were written at all.
    pub(super) fn pack(&self, handed: &Receiver<Handed>, mut notes: Notes<'_>) -> Result<(Packed, Noted), EngineError> {
        let mut packer = Packer::new(self.run.repository, self.manifest.series, self.sink);
        let mut verified = 0;
        for next in handed {
            match next {
                Handed::Region(kind, ticket) => {
                    let encoded = ticket.wait()??;
                    packer.push(kind, &encoded.region)?;
                    notes.take(encoded);
                }
                Handed::Checkpoint(reached) => {
                    let packed = packer.flush()?;
                    if let Some(checkpoints) = self.checkpoints {
                        self.verify(&packed.containers[verified..])?;
                        verified = packed.containers.len();
                        self.run.commit_checkpoint(checkpoints, self.manifest, &reached, packed, notes.so_far())?;
                    }
                }
            }
        }
        let packed = packer.finish()?;
        if !self.run.options.dry_run {
            self.verify(&packed.containers[verified..])?;
        }
        Ok((packed, notes.finish()))
    }

    /// Reads these containers back, if the run is to.
    fn verify(&self, containers: &[ContainerRecord]) -> Result<(), EngineError> {
        verify_written(self.run.options.verify_written, self.run.repository, self.manifest.series, containers)
    }
}
