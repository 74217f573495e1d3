//! Values of the command line, each a type that parses itself and says what is wrong with its text.

mod budget;
mod compression;
mod count;
mod deltas;
mod duration;
mod groups;
mod guard;
mod moment;
mod parity;
mod preset;
mod rate;
mod reference;
mod share;
mod size;
mod size_range;
mod span;
mod subset;
mod tags;

pub(crate) use budget::Budget;
pub(crate) use compression::Compression;
pub(crate) use count::KeepCount;
pub(crate) use deltas::DeltaPolicy;
pub(crate) use duration::Duration;
pub(crate) use groups::Groups;
pub(crate) use guard::{Checkpointing, ShrinkGuard};
pub(crate) use moment::Moment;
pub(crate) use parity::Parity;
pub(crate) use preset::Preset;
pub(crate) use rate::Rate;
pub(crate) use reference::{SnapshotReference, entry_path};
pub(crate) use share::Share;
pub(crate) use size::Size;
pub(crate) use size_range::SizeRange;
pub(crate) use span::KeepSpan;
pub(crate) use subset::Subset;
pub(crate) use tags::TagList;
