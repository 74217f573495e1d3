//! Siltstone's store: everything that lies on disk, and nothing that decides. See `docs/FORMAT.md` for the format
//! itself.
//!
//! From the bottom: [`storage`] holds named objects; [`secrets`], [`sealed`] and [`keys`] make them secret and
//! authentic; [`region`] and [`container`] hold chunks, and [`parity`] heals them; [`recipe`] and [`catalog`] describe
//! files; [`manifest`] commits a series; [`repository`] opens it all and [`series`] writes to it under a lease.

pub mod catalog;
pub mod config;
pub mod container;
mod encoding;
pub mod error;
mod header;
pub mod ids;
pub mod keys;
pub mod manifest;
pub mod pad;
pub mod parity;
pub mod recipe;
mod recovery;
pub mod region;
pub mod repository;
pub mod salvage;
pub mod sealed;
pub mod secrets;
pub mod series;
pub mod storage;
pub mod twins;

pub use error::StoreError;
pub use ids::{
    ChunkNumber, ChunkRun, ContainerId, Fingerprint, KeyId, RenewalId, RepositoryId, SeriesId, SnapshotId, Time,
};
pub use recovery::{RecoveryKey, RecoveryKeyError};
pub use secrets::{Epoch, MasterKey, RepositoryKeys};
