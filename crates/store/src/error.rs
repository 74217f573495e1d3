//! The errors of everything that lies on disk: one enum at the edge of this crate.
//!
//! Every message says what happened, to which object, and what to do. Variants carry facts, so that the command above
//! can choose its exit code and the check can go on past one damaged object; [`StoreError::is_damage`] draws that line.

use crate::storage::{ObjectName, Original, StorageError};
use std::fmt;
use std::sync::Arc;

/// An error of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The place that holds the objects refused or failed.
    #[error(transparent)]
    Storage(#[from] StorageError),

    /// No key slot opens with the password given.
    #[error("wrong password: it opens none of the {slots} key slots tried of {location}{}", told_untried(*untried))]
    WrongPassword {
        /// The repository's place.
        location: String,
        /// Number of slots that were tried.
        slots: usize,
        /// Number of slots beside those.
        untried: usize,
    },

    /// The password given begins as the line of a key file does, and is none.
    #[error(
        "the key file is damaged: a letter of its line is wrong or missing; give the line as it was made, or another key"
    )]
    KeyFile,

    /// Trying a password on a key slot demands more than is allowed; nothing of it was paid.
    #[error(
        "{object} demands {demand} to try a password, more than the memory allowed ({allowed_mib} MiB): \
         allow {needed_mib} MiB, or name another key"
    )]
    KeyCost {
        /// The slot's name.
        object: String,
        /// Its demand, in words.
        demand: String,
        /// The memory in MiB that would allow it.
        needed_mib: u64,
        /// The memory in MiB that is allowed.
        allowed_mib: u64,
    },

    /// There is no repository here.
    #[error("{location} is not a repository: it has no config; run `silt init` to make one there, or check the path")]
    NotARepository {
        /// The place looked at.
        location: String,
    },

    /// There is a repository here already.
    #[error("{location} already holds a repository; choose another place")]
    AlreadyARepository {
        /// The place looked at.
        location: String,
    },

    /// The repository has its config, but no key slot at all.
    #[error(
        "{location} has no key slot left: nothing can open it; bring back a copy of a file of its keys/ folder, \
             or open it by a recovery key: 'silt key import'"
    )]
    NoKeySlots {
        /// The repository's place.
        location: String,
    },

    /// The object is of a version this program does not know.
    #[error("{object} has format version {found}, this program reads up to {supported}: use a newer Siltstone")]
    UnknownVersion {
        /// The object's name.
        object: String,
        /// The version it states.
        found: u16,
        /// The newest version read here.
        supported: u16,
    },

    /// The object needs something this program does not know.
    #[error("{object} needs the feature \"{feature}\", unknown to this program: use a newer Siltstone")]
    UnknownFeature {
        /// The object's name.
        object: String,
        /// The feature that it needs.
        feature: String,
    },

    /// The object's bytes are not those that were written.
    #[error("{object} is damaged ({part}): {reason}")]
    Damaged {
        /// The object's name, or the chunk's.
        object: String,
        /// The damaged part: "header", "index", "region 3", ...
        part: String,
        /// The fault.
        reason: String,
    },

    /// An object that is kept twice can be read from neither copy.
    #[error(
        "{object} and its copy are both unreadable ({reason}): run {}, or bring back either file",
        repair_of(object)
    )]
    BothDamaged {
        /// The object's name.
        object: String,
        /// The fault of the original.
        reason: String,
    },

    /// There are manifests, but no record of the repository they are of.
    #[error(
        "the config of {location} and its copy are missing: run `silt repair`, or bring back a file of its config/ folder"
    )]
    RecordLost {
        /// The repository's place.
        location: String,
    },

    /// The password is that of a key slot that no longer counts.
    #[error("{object} opens nothing any more: {reason}; use another key")]
    KeyInvalid {
        /// The slot's name.
        object: String,
        /// The reason why it does not count.
        reason: &'static str,
    },

    /// The object is whole, but sealed by another key or for another place: a file of another repository, or moved by
    /// hand.
    #[error("{object} does not belong here: it was sealed under another key or name; put back the original file")]
    Misplaced {
        /// The object's name.
        object: String,
    },

    /// A number is beyond what the format allows.
    #[error("{object}: {what} is {found}, the limit is {limit}")]
    Limit {
        /// The object's name, or what was being made.
        object: String,
        /// The number that is too great, in words.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The greatest value allowed.
        limit: u64,
    },

    /// A manifest's body is longer than the memory allowed lets it be; nothing of it was decompressed.
    #[error(
        "{object}: size of the body in bytes (more memory raises what is allowed) is {found}, the limit is {limit}"
    )]
    NeedsMemory {
        /// The manifest's name.
        object: String,
        /// Bytes of its body.
        found: u64,
        /// Bytes allowed.
        limit: u64,
    },

    /// A chunk was asked for that no container of the series holds.
    #[error("chunk {number} is in no container of the series")]
    MissingChunk {
        /// The chunk's number.
        number: crate::ids::ChunkNumber,
    },

    /// A chunk was asked for that is borrowed of another series, and that one does not have it.
    #[error("chunk {number} is borrowed of series {lender}: {reason}")]
    NotLent {
        /// The chunk's number in the series that borrows it.
        number: crate::ids::ChunkNumber,
        /// The series that it is borrowed of.
        lender: crate::ids::SeriesId,
        /// The fault.
        reason: String,
    },

    /// Another writer works on the series.
    #[error(
        "the series \"{series}\" is being written by {holder} since {since}: wait for it to end, or take over if it is dead"
    )]
    LeaseHeld {
        /// The series' name.
        series: String,
        /// The holder.
        holder: String,
        /// Since when, as text.
        since: String,
    },

    /// Another writer took the series over; what this one wrote since does not count.
    #[error("another writer took over the series \"{series}\": nothing of this run was committed; run it again")]
    Fenced {
        /// The series' name.
        series: String,
    },

    /// The answer to a commit was lost, and what became of it cannot be found out now.
    #[error(
        "it is not known whether {object} was written: {reason}; nothing that was there before is lost. \
         Look at the snapshots once the place answers again, then run the command again"
    )]
    OutcomeUnknown {
        /// The object's name.
        object: String,
        /// The reason why it is not known.
        reason: String,
    },

    /// The place contradicts itself: it lists an object, and says that it is not there when it is read.
    #[error(
        "{location} lists {object} or its copy, and says that neither is there when they are read: a part of the place \
         is most likely away; look after it, and run again, before anything is repaired"
    )]
    ListedAndMissing {
        /// The object's name.
        object: String,
        /// The repository's place.
        location: String,
    },

    /// The newest manifest of a series cannot be read; other series are not concerned.
    #[error("the series {series} cannot be read: {source}{}", way_to_save(source))]
    UnreadableSeries {
        /// The series' name in quotation marks, or its id where the name is not known.
        series: String,
        /// The fault.
        source: Box<StoreError>,
    },

    /// The record lists a series of which no manifest is there: it existed, and is lost.
    #[error(
        "the series '{series}' is lost: the repository lists it, and no manifest of it is there; bring series/, data/ \
         and metadata/ back from a copy, or accept the loss"
    )]
    LostSeries {
        /// The series' name.
        series: String,
    },

    /// The highest manifest does not follow from the one before it: files of another copy of the store were mixed in,
    /// or a writer that had been fenced off was killed before it could take its manifest back.
    #[error(
        "{object} does not follow {before}, which is of another copy of the repository or was left by a killed writer: \
         the newer one is true; move the older one away"
    )]
    BrokenHistory {
        /// The newer manifest.
        object: String,
        /// The one before it.
        before: String,
    },

    /// Commits that were seen of a series are not there any more, and nothing was made after them.
    #[error("the newest commits of series \"{series}\" are lost: {seen} was seen, {found} is there")]
    LostCommits {
        /// The series' name.
        series: String,
        /// The number of the newest commit there is.
        found: u64,
        /// The number of the newest commit that was seen.
        seen: u64,
    },

    /// A container was written after the newest manifest there is: manifests are missing.
    #[error(
        "manifests are missing: {container} was written after the newest one there is ({sequence}); \
         bring back the newest copy of the files in series/, or run 'silt repair'; nothing is changed until then"
    )]
    LostManifest {
        /// The container that tells.
        container: String,
        /// Sequence number of the newest manifest; 0 if there is none.
        sequence: u64,
    },

    /// A container reads back other bytes than those that were written; nothing was committed that needs it.
    #[error(
        "{object} does not read back as it was written, and nothing that needs it was committed: \
         the disk, its connection or the memory of this machine is faulty; test them"
    )]
    WrittenWrong {
        /// The object's name.
        object: String,
    },

    /// The credentials do not allow it. Nothing was changed.
    #[error("{what} takes {right}, which these credentials do not give at {location}: nothing was changed; use others")]
    NoRight {
        /// The work that was asked for.
        what: String,
        /// The address of the place.
        location: String,
        /// The right that it takes.
        right: &'static str,
    },

    /// The key is a write-only client's, and this takes one that reads.
    #[error("{what}: this key can add backups to its series and read none; use a key that reads")]
    WriteOnly {
        /// The work that was asked for.
        what: String,
    },

    /// Something was given in the wrong order or shape by the code above.
    #[error("{what}: {reason}")]
    Refused {
        /// The thing that was being made.
        what: String,
        /// The reason why it cannot be made.
        reason: String,
    },

    /// Bytes just encoded did not decode to the same bytes; nothing of them was written.
    #[error("{what} did not decode to what was encoded: the memory or processor of this machine is faulty; test it")]
    SelfCheck {
        /// The thing that was being made.
        what: String,
    },

    /// A library refused work that cannot fail on sound arguments (out of memory, for one).
    #[error("{operation} failed: {reason}")]
    Machine {
        /// The operation that failed.
        operation: &'static str,
        /// The complaint of the library.
        reason: String,
    },

    /// One error that keeps several things from being had.
    #[error(transparent)]
    Shared(Arc<StoreError>),
}

/// The advice about an object lost in both places.
fn repair_of(object: &str) -> &'static str {
    if object.starts_with("config/") { "'silt repair', which can go on from an older config" } else { "'silt repair'" }
}

fn told_untried(untried: usize) -> String {
    match untried {
        0 => String::new(),
        untried => format!("; {untried} more were not tried: name the right one"),
    }
}

/// Words on what helps a series that cannot be read.
fn way_to_save(error: &StoreError) -> &'static str {
    if error.is_contradiction_of_place() { "" } else { "; 'silt repair' shows what can be saved" }
}

impl StoreError {
    /// [`StoreError::Damaged`], from whatever names the object.
    pub fn damaged(object: &(impl fmt::Display + ?Sized), part: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Damaged { object: object.to_string(), part: part.into(), reason: reason.into() }
    }

    /// [`StoreError::BothDamaged`], from what is wrong with the original.
    pub fn both_damaged(original: Original, error: &Self) -> Self {
        let reason = match error {
            Self::Damaged { part, reason, .. } => format!("{part}: {reason}"),
            other => other.to_string(),
        };
        Self::BothDamaged { object: original.name().to_string(), reason }
    }

    /// [`StoreError::OutcomeUnknown`], from the error that left it open, with its sources.
    pub(crate) fn outcome_unknown(object: &impl fmt::Display, error: &(dyn std::error::Error + 'static)) -> Self {
        let chain = std::iter::successors(Some(error), |error| error.source());
        let reasons: Vec<String> = chain.map(ToString::to_string).collect();
        Self::OutcomeUnknown { object: object.to_string(), reason: reasons.join(": ") }
    }

    /// Returns this damage as that of the object that it was found in: a copy is opened under the name of its original.
    pub(crate) fn found_in(self, name: &ObjectName) -> Self {
        let object = name.to_string();
        match self {
            Self::Damaged { part, reason, .. } => Self::Damaged { object, part, reason },
            Self::Misplaced { .. } => Self::Misplaced { object },
            other => other,
        }
    }

    /// [`StoreError::Limit`], from whatever names the object.
    pub fn limit(object: &(impl fmt::Display + ?Sized), what: &'static str, found: u64, limit: u64) -> Self {
        Self::Limit { object: object.to_string(), what, found, limit }
    }

    /// Tells whether the object asked for is not there.
    pub fn is_not_found(&self) -> bool {
        self.missing().is_some()
    }

    /// Returns the object that was asked for, if it is not there.
    pub fn missing(&self) -> Option<&ObjectName> {
        match self {
            Self::Storage(StorageError::NotFound { name }) => Some(name),
            Self::Shared(error) => error.missing(),
            Self::UnreadableSeries { source, .. } => source.missing(),
            _ => None,
        }
    }

    /// Tells whether the place is away: nothing is known of what was asked for.
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Storage(StorageError::Unavailable { .. }) => true,
            Self::Shared(error) => error.is_outage(),
            _ => false,
        }
    }

    /// Tells whether the place contradicts itself ([`StoreError::ListedAndMissing`]): most likely a part of it is away.
    pub fn is_contradiction_of_place(&self) -> bool {
        match self {
            Self::ListedAndMissing { .. } => true,
            Self::Shared(error) => error.is_contradiction_of_place(),
            Self::UnreadableSeries { source, .. } => source.is_contradiction_of_place(),
            _ => false,
        }
    }

    /// Says which series it keeps from being read. What is wrong with the place as a whole stays what it is.
    #[must_use]
    pub fn of_series(self, series: impl fmt::Display) -> Self {
        let concerns_one_object = self.is_damage() || matches!(self, Self::Storage(StorageError::Io { .. }));
        if !concerns_one_object || matches!(self, Self::UnreadableSeries { .. }) {
            return self;
        }
        Self::UnreadableSeries { series: series.to_string(), source: Box::new(self) }
    }

    /// Returns the error as the writer of a series sees it: one whose unfinished writes were swept away has been
    /// overtaken.
    pub(crate) fn of_writer(self, series: &str) -> Self {
        match self {
            Self::Storage(StorageError::Swept { .. }) => Self::Fenced { series: series.to_owned() },
            other => other,
        }
    }

    /// Tells whether the object is of a format that is newer than what this program reads: nothing is wrong with it.
    pub fn is_of_newer_format(&self) -> bool {
        match self {
            Self::UnknownVersion { .. } | Self::UnknownFeature { .. } => true,
            Self::UnreadableSeries { source, .. } => source.is_of_newer_format(),
            Self::Shared(error) => error.is_of_newer_format(),
            _ => false,
        }
    }

    /// Tells whether another writer has the series: trying again later helps.
    pub fn is_lost_race(&self) -> bool {
        match self {
            Self::LeaseHeld { .. } | Self::Fenced { .. } | Self::Storage(StorageError::Swept { .. }) => true,
            Self::Shared(error) => error.is_lost_race(),
            _ => false,
        }
    }

    /// Tells whether the place is full: forgetting snapshots helps.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Storage(error) => error.is_full(),
            Self::Shared(error) => error.is_full(),
            _ => false,
        }
    }

    /// Tells whether bytes at rest are missing, wrong, or cannot be read: a check records it and goes on, a restore
    /// loses what lies there only.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. }
            | Self::BothDamaged { .. }
            | Self::RecordLost { .. }
            | Self::Misplaced { .. }
            | Self::Limit { .. }
            | Self::NeedsMemory { .. }
            | Self::UnknownVersion { .. }
            | Self::UnknownFeature { .. }
            | Self::MissingChunk { .. }
            | Self::NotLent { .. }
            | Self::BrokenHistory { .. }
            | Self::LostManifest { .. }
            | Self::LostCommits { .. }
            | Self::LostSeries { .. }
            | Self::ListedAndMissing { .. }
            | Self::UnreadableSeries { .. } => true,
            Self::Shared(error) => error.is_damage(),
            Self::Storage(error) => {
                let is_other = matches!(
                    error,
                    StorageError::TooShort { .. } | StorageError::TooLarge { .. } | StorageError::Unreadable { .. }
                );
                is_other || error.is_not_found()
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_names_the_object_and_the_part() {
        let error = StoreError::damaged("data/ab/01-02", "region 3", "the seal does not hold");
        let text = error.to_string();
        assert!(text.contains("data/ab/01-02") && text.contains("region 3"), "{text}");
        assert!(error.is_damage() && !error.is_not_found() && !error.is_full());
    }
}
