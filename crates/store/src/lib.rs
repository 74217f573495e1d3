#![doc = include_str!("../README.md")]

pub mod catalog;
pub mod config;
pub mod container;
mod created;
pub mod directory;
mod encoding;
pub mod error;
mod header;
pub mod ids;
mod key_file;
pub mod keys;
pub mod manifest;
pub mod pad;
pub mod parity;
pub mod recipe;
mod recipient;
mod recovery;
pub mod region;
pub mod repository;
pub mod salvage;
pub mod sealed;
pub mod secrets;
pub mod series;
pub mod storage;
#[cfg(test)]
mod testing;
pub mod twins;
mod write_only;

pub use error::StoreError;
pub use ids::{
    ChunkNumber, ChunkRun, ContainerId, Fingerprint, KeyId, LoanId, OriginId, PartId, RenewalId, RepositoryId,
    SeriesId, SnapshotId, Time,
};
pub use key_file::KeyFile;
pub use recovery::{RecoveryKey, RecoveryKeyError};
pub use secrets::{Epoch, MasterKey, RepositoryKeys};
pub use write_only::WriteOnlyKey;
