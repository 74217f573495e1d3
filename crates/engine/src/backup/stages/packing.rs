//! Packing: regions go into containers in the order in which they were cut off. Before a checkpoint is committed, what
//! it refers to is read back.

use super::context::Stages;
use crate::EngineError;
use crate::backup::flow::Handed;
use crate::backup::notes::Notes;
use crate::backup::outcome::Noted;
use crate::backup::run::BackupRun;
use crate::pack::{Packed, Packer};
use crate::written::verify_written;
use crossbeam_channel::Receiver;

impl Stages<'_, '_, '_> {
    /// Packs what is handed on, and commits the checkpoints between.
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
                        let new = packed.containers.get(verified..).unwrap_or_default();
                        let BackupRun { repository, options, .. } = self.run;
                        verify_written(options.verify_written, repository, self.manifest.series, new)?;
                        verified = packed.containers.len();
                        self.run.commit_checkpoint(checkpoints, self.manifest, &reached, packed, notes.so_far())?;
                    }
                }
            }
        }
        Ok((Packed { verified, ..packer.finish()? }, notes.finish()))
    }
}
