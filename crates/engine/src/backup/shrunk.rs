//! A source that shrunk: a disk that is not mounted looks like a folder whose files were all deleted.
//!
//! Such a backup is refused before it is committed, and not committed with a warning. What a refusal costs is the
//! changes of what is left of the source, until somebody looks and says that all is well; nothing stored is at risk
//! meanwhile. A snapshot of an empty folder would be the latest, would count for the rules of `forget` day after day
//! until they have removed every one that has the files, and would leave all of them behind as deltas.

use super::options::{BackupOptions, Source};
use super::previous;
use super::run::BackupRun;
use crate::EngineError;
use siltstone_store::manifest::{Manifest, SnapshotStatistics};

/// The share of it that this source may lose. Of a stream, only emptiness counts: how long the next one is says
/// nothing. A list of changes says itself what is gone.
pub(super) fn share_of(source: &Source, options: &BackupOptions) -> Option<f64> {
    options.shrink_share.and_then(|share| match source {
        Source::Paths(_) => Some(share),
        Source::Stream { .. } => Some(1.0),
        Source::Changes { .. } | Source::Entries { .. } => None,
    })
}

impl BackupRun<'_> {
    /// Refuses a source that lost too much since the last live snapshot of the same paths, or all it had.
    pub(super) fn refuse_shrunk(&self, before: &Manifest, now: &SnapshotStatistics) -> Result<(), EngineError> {
        let last = previous::latest_live(before).filter(|last| last.paths == self.paths);
        let Some((share, last)) = self.shrink_share.zip(last) else { return Ok(()) };
        let then = &last.statistics;
        let parts = [(then.files, now.files), (then.logical_bytes, now.logical_bytes)];
        if !parts.into_iter().any(|(then, now)| is_shrunk(then, now, share)) {
            return Ok(());
        }
        Err(EngineError::SourceShrunk {
            snapshot: last.id.short(),
            files_before: then.files,
            bytes_before: then.logical_bytes,
            files: now.files,
            bytes: now.logical_bytes,
        })
    }
}

/// Tells whether more than this share is gone, or all.
#[allow(clippy::cast_precision_loss)]
fn is_shrunk(then: u64, now: u64, share: f64) -> bool {
    let gone = then.saturating_sub(now);
    gone > 0 && (now == 0 || gone as f64 > then as f64 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::SHRINK_SHARE_DEFAULT;

    #[test]
    fn more_than_the_share_or_all_is_too_much() {
        let shrunk = |then, now| is_shrunk(then, now, SHRINK_SHARE_DEFAULT);
        assert!(shrunk(10, 4) && shrunk(1, 0) && shrunk(3, 1));
        assert!(!shrunk(10, 5) && !shrunk(10, 11) && !shrunk(0, 0));
        assert!(is_shrunk(10, 0, 1.0) && !is_shrunk(10, 1, 1.0));
    }
}
