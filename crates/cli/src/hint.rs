//! Hints of what to type against an error: the crates below say what is wrong, and know nothing of this program's
//! options.

use siltstone_engine::{Danger, EngineError};
use siltstone_store::StoreError;
use siltstone_store::storage::{ObjectName, Original, StorageError};
use std::borrow::Cow;

/// Hint of what to type.
type Hint = Option<Cow<'static, str>>;

/// A message and what to type, in one line.
pub(crate) fn added_to(mut message: String, hint: Hint) -> String {
    if let Some(hint) = hint {
        message.push_str("; ");
        message.push_str(&hint);
    }
    message
}

/// Returns what to type against an error of the store.
pub(crate) fn of_store(error: &StoreError) -> Hint {
    let hint = match error {
        StoreError::LeaseHeld { .. } => "--retry-lock waits for it, 'silt unlock' takes over from a dead process",
        StoreError::Damaged { .. } | StoreError::MissingChunk { .. } => {
            "'silt check' says what that affects and what helps"
        }
        StoreError::KeyCost { needed_mib, .. } => {
            return Some(format!("raise --memory to {needed_mib} MiB, or name a key by --key-hint").into());
        }
        StoreError::WrongPassword { untried: 1.., .. } => "--key-hint names it",
        StoreError::LostSeries { .. } => "--accept-rollback goes on without it",
        StoreError::BothDamaged { object, .. } if object.starts_with("config/") => "'silt repair --from-older-config'",
        StoreError::NeedsMemory { .. } => "--memory raises it",
        StoreError::Storage(error) => return of_storage(error),
        StoreError::Shared(error) => return of_store(error),
        StoreError::UnreadableSeries { source, .. } => return of_store(source),
        _ => return None,
    };
    Some(hint.into())
}

/// Returns what to type against an error of the storage.
pub(crate) fn of_storage(error: &StorageError) -> Hint {
    match error {
        StorageError::TooLarge {
            name: ObjectName::Manifest(..) | ObjectName::Copy(Original::Manifest(..)), ..
        } => Some("--memory raises what is allowed".into()),
        StorageError::ReplacesObjects { location } if location.starts_with("rclone:") => Some(
            "rclone has no way to refuse; if never two processes write at once, --rclone-one-writer says so".into(),
        ),
        _ => None,
    }
}

/// Returns what to type against an error of the engine.
pub(crate) fn of_engine(error: &EngineError) -> Hint {
    let hint = match error {
        EngineError::Store(error) => return of_store(error),
        EngineError::SourceShrunk { .. } => {
            "is a disk not mounted? --allow-shrink takes the source as it is, --shrink-guard sets how much may go"
        }
        EngineError::SameRepository { .. } => "--from-repo names the one to copy from, --repo the one to copy into",
        EngineError::RemovesAll { .. } => "--unsafe-allow-remove-all allows it",
        EngineError::ExcludesAll { .. } => "'silt forget' removes a snapshot; --unsafe-allow-remove-all allows it",
        EngineError::EmptyPolicy => "give ids, or --keep-* options",
        EngineError::NoRecordedPolicy => "'silt policy set' gives it one",
        EngineError::RecordedPolicy { .. } => "use a newer silt, or set it anew by 'silt policy set'",
        EngineError::RemovesAllUnfiltered => "choose by --host, --tag, --path or --series",
        EngineError::NotDeleted { .. } => "'silt snapshots --deleted' lists those that are",
        EngineError::NothingIncluded { .. } => "'silt ls' lists what it holds",
        EngineError::MemoryTooSmall { .. } => "--memory sets it",
        EngineError::ChangedListTooLarge { needed_mib, .. } => {
            return Some(format!("raise --memory to {needed_mib} MiB").into());
        }
        EngineError::HistoryLost { .. } => "--accept-rollback goes on with what is there",
        EngineError::DangerousTarget { reason: Danger::HoldsRepository, .. } => "leave --delete out",
        EngineError::DangerousTarget { reason: Danger::Empties(_), .. } => {
            "--include chooses what is restored, --unsafe-allow-delete allows it"
        }
        _ => return None,
    };
    Some(hint.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_hinted_at_only_where_more_of_it_helps() {
        let object = || "series/01/02".to_owned();
        let manifest = StoreError::NeedsMemory { object: object(), found: 2, limit: 1 }.of_series("s");
        assert_eq!(of_store(&manifest).as_deref(), Some("--memory raises it"));
        let fixed =
            StoreError::Limit { object: object(), what: "the password hash's memory in KiB", found: 2, limit: 1 };
        assert_eq!(of_store(&fixed), None);
    }
}
