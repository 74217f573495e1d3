//! Values that the stages of one backup share.

use crate::EngineError;
use crate::backup::checkpoint::Checkpoints;
use crate::backup::flow::Unusable;
use crate::backup::local::LocalCatalog;
use crate::backup::run::BackupRun;
use crate::backup::select::Known;
use crate::backup::sketch_file::SketchDraft;
use crate::chunks::ChunkSource;
use crate::delta::NewChunksRoom;
use crate::pack::ContainerSink;
use siltstone_store::manifest::Manifest;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::ScopedJoinHandle;

/// Means to encode new chunks against old ones.
pub(in crate::backup) struct DeltaSelection<'s> {
    /// Chunks that they may be encoded against.
    pub(in crate::backup) known: Known,
    /// Source of those.
    pub(in crate::backup) chunks: Arc<ChunkSource<'s>>,
    /// Bytes of a segment.
    pub(in crate::backup) segment_bytes: usize,
    /// Bytes that may wait for their bases in memory; the rest goes to a temporary file in the folder.
    pub(in crate::backup) waiting_bytes: u64,
    pub(in crate::backup) spill_folder: PathBuf,
    /// File for the new chunks' sketches, if the next backup is to have them.
    pub(in crate::backup) draft: Option<SketchDraft>,
}

/// Values that the stages share.
pub(in crate::backup) struct Stages<'s, 't, 'w> {
    pub(in crate::backup) run: &'s BackupRun<'t>,
    pub(in crate::backup) manifest: &'s Manifest,
    pub(in crate::backup) chunks: &'s ChunkSource<'t>,
    pub(in crate::backup) unusable: &'s Unusable,
    pub(in crate::backup) sink: &'s dyn ContainerSink,
    /// Writer that commits checkpoints, unless none are to be made.
    pub(in crate::backup) checkpoints: Option<&'s Checkpoints<'w, 't>>,
    /// The memory for what is known of new chunks, if old ones will be encoded against them.
    pub(in crate::backup) new_chunks: Option<NewChunksRoom>,
    /// The memory for files of which further names are expected.
    pub(in crate::backup) linked_bytes: u64,
    /// The catalog on this machine.
    pub(in crate::backup) local_catalog: &'s LocalCatalog,
}

impl Stages<'_, '_, '_> {
    /// Fails if the user asked to stop.
    pub(super) fn check_cancelled(&self) -> Result<(), EngineError> {
        if self.run.resources.observer.is_cancelled() { Err(EngineError::Interrupted) } else { Ok(()) }
    }
}

/// Waits for the result of a stage; a panic in it goes on here.
pub(super) fn joined<R>(stage: ScopedJoinHandle<'_, R>) -> R {
    stage.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
