//! One file per command: its options, and how its result is shown.

pub(crate) mod backup;
mod changes;
pub(crate) mod check;
pub(crate) mod copy;
pub(crate) mod diff;
pub(crate) mod dump;
pub(crate) mod find;
pub(crate) mod forget;
pub(crate) mod generate;
pub(crate) mod init;
pub(crate) mod key;
mod layout;
pub(crate) mod ls;
pub(crate) mod maintain;
pub(crate) mod mount;
pub(crate) mod policy;
pub(crate) mod prune;
pub(crate) mod repair;
pub(crate) mod restore;
pub(crate) mod serve;
pub(crate) mod snapshots;
mod sources;
pub(crate) mod stats;
pub(crate) mod undelete;
pub(crate) mod unlock;
pub(crate) mod version;
