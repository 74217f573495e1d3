//! The right to write to a series, recorded by a manifest commit.

use crate::ids::Time;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A lease: who may write to the series, since when and for what.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lease {
    /// The process that holds it.
    pub holder: LeaseHolder,
    /// Time at which it was taken, by the holder's clock; for messages only, age never decides anything.
    pub since: Time,
    /// Purpose of the holder: "backup", "forget".
    pub purpose: String,
    /// Sequence number of the manifest that granted it: what is written under the lease bears this number.
    pub number: u64,
    /// Milliseconds between two renewals; 0 if it is not renewed.
    pub renewed_every_ms: u32,
}

/// A process, named so that another process of the same machine can tell whether it still lives.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeaseHolder {
    /// Name of the machine.
    pub host: String,
    /// Name of the user.
    pub user: String,
    /// Number of the process.
    pub pid: u32,
    /// Identity of the machine's boot: a process number means nothing after the next one.
    pub boot: String,
    /// Start of the process, in clock ticks since boot: tells it from a later process with the same number.
    pub started_ticks: u64,
}

impl fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of {} on {}", self.pid, self.user, self.host)
    }
}
