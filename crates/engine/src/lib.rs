//! Siltstone's engine: the flow of data between a source, a repository and a target. One folder or file per command;
//! inside [`backup`] and [`restore`] one file per stage. The engine decides and moves; it never formats text for
//! people.

#[cfg(test)]
extern crate self as siltstone_engine;

pub mod backup;
mod bases;
pub mod browse;
mod cache_file;
pub mod check;
mod chunks;
pub mod cost;
mod decode;
pub mod delta;
pub mod dump;
mod error;
pub mod forget;
pub mod fs;
#[doc(hidden)]
pub mod fuzzing;
pub mod index;
mod lease;
mod lifecycle;
mod linked;
pub mod maintain;
mod numbers;
mod observer;
mod pack;
mod parallel;
pub mod protect;
#[cfg(test)]
mod refused;
pub mod repair;
pub mod restore;
pub mod seen;
pub mod snapshots;
pub mod stats;
pub mod undelete;
pub mod unlock;
mod watch;
mod written;

pub use error::EngineError;
pub use observer::{EntryAction, Notice, Observer, Silent};
pub use siltstone_chunk::Isa;
