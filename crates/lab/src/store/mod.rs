//! Stores for versions: greedy, capped, and laid out by lifetime, each with real reads and writes on the same
//! containers (MeGA, ATC'22).
//!
//! ```text
//! history, maintenance    the experiments; on_history: their frame; figures: their plots; versions: what they are fed
//! bases                   how bases lie in containers
//! virtual_full            full backups against incremental ones; incremental: what these are told
//! method                  Greedy FGD CLD | MFD MeGA | silt
//! ingest                  how a version is backed up, the same for all but silt; choose: what is refused
//! arrival, lifecycle      the two layouts: restore, upkeep, deletion      engine: Siltstone, by its own engine
//! stored index recipe     what a store knows; scale: how large its parts are
//! container_store cache   containers on disk and in memory
//! prefetch placing        containers opened before they are needed; chunks written where they go
//! uncached                reads that come from the disk; device: what they would take on other devices, trace: and on
//!                         this one
//! ```
//! All methods have the same CPUs, prefetch containers with the same code and never find one in the page cache that
//! they read before: only what a method itself keeps in memory is there, an eighth of a version for the papers'
//! methods. (Siltstone's engine has its own bound, of memory.) A backup reads bases container by container through its
//! cache, and a base it read, dropped and needs again comes from the disk again: what makes Greedy slow in the paper
//! (section 5.2) is there, at the price that this machine's disk has for it. How much it weighs depends on the history:
//! with few versions, or where few chunks resemble old ones, Greedy reads hardly more than MeGA without a threshold,
//! and what is left is the difference of computing. The number of containers read carries over to other disks. Files
//! must lie on a disk for that: set `TMPDIR` where the folder for temporary files is kept in memory.
//!
//! Differences from the paper: the chunker (`lagged`, with its limits), the fingerprints, the codec of deltas
//! (`CopyInsert`) and the encryption are Siltstone's, as is the container's format, and each container is durable
//! (`fsync`) at the end of a backup and of every upkeep: with containers as small as the lab's, waiting for that is a
//! large part of upkeep. Chunk-level indexes lie in memory, as they do there.

mod arrival;
mod bases;
mod cache;
mod choose;
mod container_store;
mod device;
mod engine;
mod figures;
mod history;
mod incremental;
mod index;
mod ingest;
mod lifecycle;
mod maintenance;
mod method;
mod on_history;
mod parallel;
mod placing;
mod prefetch;
mod recipe;
mod scale;
mod stored;
#[cfg(test)]
mod tests;
mod trace;
mod uncached;
mod versions;
mod virtual_full;

use crate::experiment::Experiment;
use history::History;
use maintenance::{Maintenance, Retention};
use scale::Sizes;

/// The experiments of this room.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(History { sizes: Sizes::Paper }),
        Box::new(History { sizes: Sizes::Siltstone }),
        Box::new(Maintenance { retention: Retention::Last }),
        Box::new(Maintenance { retention: Retention::Thinned }),
        Box::new(trace::Trace),
        Box::new(bases::Bases),
        Box::new(virtual_full::VirtualFull),
    ]
}
