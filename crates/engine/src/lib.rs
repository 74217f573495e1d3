#![doc = include_str!("../README.md")]

#[cfg(test)]
extern crate self as siltstone_engine;

mod acl;
mod amend;
pub mod backup;
mod bases;
mod borrowed;
pub mod browse;
mod cache_file;
mod catalog_file;
pub mod check;
mod chunks;
pub mod compare;
pub mod copy;
pub mod cost;
mod decode;
pub mod delta;
pub mod dump;
mod error;
pub mod file_reader;
pub mod find;
pub mod forget;
pub mod fs;
#[doc(hidden)]
pub mod fuzzing;
mod half_read;
mod held;
mod history;
pub mod import;
pub mod index;
pub mod label;
mod lease;
mod lending;
mod lifecycle;
mod linked;
pub mod maintain;
mod many_series;
mod observer;
mod orphans;
mod overlay;
mod pack;
mod parallel;
pub mod protect;
#[cfg(test)]
mod refused;
pub mod repair;
mod resources;
pub mod restore;
pub mod rewrite;
pub mod seen;
mod session;
mod setters;
pub mod snapshots;
mod spares;
pub mod stats;
pub mod undelete;
pub mod unlock;
pub mod usage;
mod watch;
pub mod write_only;
mod written;

pub use error::{Danger, EngineError};
pub use observer::{EntryAction, Notice, Observer, Silent};
pub use resources::{Command, MEMORY_BYTES_DEFAULT, Resources};
pub use session::Session;
pub use siltstone_chunk::Isa;
pub use written::VerifyWritten;
