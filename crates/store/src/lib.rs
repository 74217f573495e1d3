#![doc = include_str!("../README.md")]

pub mod catalog;
pub mod config;
pub mod container;
mod created;
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
    ChunkNumber, ChunkRun, ContainerId, Fingerprint, KeyId, OriginId, PartId, RenewalId, RepositoryId, SeriesId,
    SnapshotId, Time,
};
pub use recovery::{RecoveryKey, RecoveryKeyError};
pub use secrets::{Epoch, MasterKey, RepositoryKeys};
