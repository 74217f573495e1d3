//! Encoding chunks against similar ones: the parts that backup (new against old) and maintenance (old against new)
//! both are made of.
//!
//! ```text
//! policy         which way deltas point, how long chains may be
//! sketch         how chunks are sketched
//! similar_index  candidates: chunks by their sketches
//! likeness       the same by anchors as well
//! new_chunks     what a backup knows of its new chunks when it is done
//! offers         what each chunk may be encoded against, as the choice of bases wants it
//! segment        regions being filled, and the choice of bases for each; how much is looked at together
//! encode         a region against its bases
//! keep           whether it stays a delta: the one place where that is decided
//! ```
//! Bases are read by `decode::Gatherer`. Which chunks are looked at, in which order and on which threads, is
//! left to `backup::select` and `maintain`; so is what becomes of the regions.

mod encode;
mod keep;
mod likeness;
mod new_chunks;
mod offers;
mod policy;
mod segment;
mod similar_index;
mod sketch;

pub(crate) use encode::encode_region;
pub use keep::KeepRule;
pub(crate) use likeness::{Alike, Likeness, LikenessIndex};
pub(crate) use new_chunks::{ChunkTexts, NewChunks, NewChunksRoom};
pub(crate) use offers::{CANDIDATES, offer};
pub use policy::{DEPTH_DEFAULT, DEPTH_MAX, Deltas, FORWARD_DEPTH_DEFAULT, ForwardPolicy};
pub(crate) use segment::{BASES_OF_TEXT, DELTA_REGION_BYTES_TARGET, OpenRegion, SEGMENT_BYTES};
pub(crate) use similar_index::SimilarIndex;
pub(crate) use sketch::sketcher;
