//! Bases: who hangs on whom, and the walks along that.
//!
//! A region delta hangs on its bases, chunks of other regions, which may be deltas themselves. Backup, maintenance,
//! decoding and checks all follow such chains; how, stands here once. Where the facts come from does not: `chunks`
//! reads them from containers' indexes, and this room knows nothing of storage.
//!
//! ```text
//! graph    chunks in deltas, all in memory     closure, roots, needs of snapshots, what is lost with what
//! regions  region deltas alone, 8 bytes a pair cycles, and what a fault costs
//! depth    indexes read as they are met        bases before what hangs on them, the length of chains
//! pending  the same, container by container    for closures, and for plans of decoding
//! levels   numbers by how deep they are        as manifests keep them, and backups in memory
//! ```
//! All go by lists, not by calls: chains may be thousands long.

mod depth;
mod graph;
mod levels;
mod pending;
mod regions;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use depth::BOTTOMLESS;
pub(crate) use depth::{Descent, Step, depth_of, descend};
pub(crate) use graph::BaseGraph;
pub(crate) use levels::{level_of, raise};
pub(crate) use pending::Pending;
pub(crate) use regions::RegionGraph;

/// The longest chain of regions that a reader follows (docs/FORMAT.md, section 7): without a bound, forged indexes
/// could keep it busy for as long as they are. Writers end chains at a quarter of it ([`crate::delta::DEPTH_MAX`]),
/// because chains of both directions come to stand on one another where a series changes its policy, and changes it
/// back.
pub(crate) const CHAIN_REGIONS_MAX: u32 = 4096;
