//! Help against the findings of a check.

use siltstone_store::StoreError;

/// Help against a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Help {
    /// `silt repair`: a second copy, older manifests or containers bring back what is lost.
    Repair,
    /// `silt repair --read-data`: damage that only reading finds is healed by parity, or costs nothing.
    RepairReadData,
    /// `silt backup --force`: what the source still has is stored again.
    Backup,
    /// `silt forget`: what older snapshots alone had comes back from nowhere, unless the source gets it again.
    Forget,
    /// `silt key add`: nothing brings a key slot back; whoever used it needs another.
    KeyAdd,
    /// `--accept-rollback`: nothing of a series is left to repair.
    AcceptRollback,
    /// `silt backup --series` with another name: a manifest that contradicts itself is built on no further.
    NewSeries,
    /// A newer `silt`: what is of a format that this one does not know is sound for all that is known.
    NewerProgram,
    /// A look after the place, and `silt check` again: it lists what it says is missing, or does not give it out.
    LookAfterPlace,
}

impl Help {
    /// Against what keeps a series from being read.
    pub(super) fn against_unreadable(error: &StoreError, has_containers: bool) -> Self {
        match error {
            StoreError::LostSeries { .. } if !has_containers => Self::AcceptRollback,
            error if error.is_of_newer_format() => Self::NewerProgram,
            error if error.is_contradiction_of_place() => Self::LookAfterPlace,
            StoreError::UnreadableSeries { source, .. } if !source.is_damage() => Self::LookAfterPlace,
            error if !error.is_damage() => Self::LookAfterPlace,
            _ => Self::Repair,
        }
    }

    /// Against a contradiction within a manifest.
    pub(super) fn against_contradiction(error: &StoreError) -> Self {
        match error {
            StoreError::MissingChunk { .. } => Self::Backup,
            _ => Self::NewSeries,
        }
    }

    /// Against damage of these snapshots, given the last whole one: by their short ids. Damage that costs no snapshot
    /// anything is tidied away.
    pub(super) fn against_loss(snapshots: &[String], last: Option<&str>) -> Self {
        match last {
            _ if snapshots.is_empty() => Self::RepairReadData,
            Some(last) if snapshots.iter().any(|id| id == last) => Self::Backup,
            _ => Self::Forget,
        }
    }
}
