//! Which snapshots of a series a run takes out, which it marks as deleted, and which it writes anew; pure.
//!
//! A mark changes nothing that storage goes by: the snapshot stays where it is in its series, its chunks stay
//! necessary, and what was made before or after it hangs together as before. So it can be taken off at any time, and
//! ending it is an ordinary removal.

use super::{ForgetOptions, Marking};
use crate::EngineError;
use crate::maintain::dead::take_out;
use siltstone_store::manifest::{Deleted, Manifest, Snapshot};
use siltstone_store::{SnapshotId, Time};
use std::collections::BTreeSet;
use std::time::Duration;

/// Changes to a series' snapshots; those in none of the sets stay as they are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Choice {
    /// Given, and taken out at once.
    pub(super) removed: BTreeSet<SnapshotId>,
    /// Marked before, and taken out now.
    pub(super) ended: BTreeSet<SnapshotId>,
    /// Given, and marked.
    pub(super) marked: BTreeSet<SnapshotId>,
    /// Given, and to be written anew without what is excluded.
    pub(super) rewritten: BTreeSet<SnapshotId>,
    mark: Deleted,
}

impl Choice {
    /// Applies the options to the given snapshots, as far as they are among those of a series. Where something is
    /// excluded they are rewritten, and nothing else is done.
    pub(super) fn new(snapshots: &[Snapshot], given: &BTreeSet<SnapshotId>, options: &ForgetOptions) -> Self {
        if options.exclude.is_some() {
            let given = snapshots.iter().map(|snapshot| snapshot.id).filter(|id| given.contains(id));
            return Self { rewritten: given.collect(), ..Self::default() };
        }
        Self::of_marking(snapshots, given, &options.marking)
    }

    fn of_marking(snapshots: &[Snapshot], given: &BTreeSet<SnapshotId>, marking: &Marking) -> Self {
        let mut choice = Self { mark: marking.mark(), ..Self::default() };
        for snapshot in snapshots {
            let is_given = given.contains(&snapshot.id);
            let chosen = match snapshot.deleted {
                Some(mark) if mark.is_over(marking.now) || (is_given && marking.ends_given) => &mut choice.ended,
                None if is_given && (snapshot.partial || marking.keep.is_zero()) => &mut choice.removed,
                None if is_given => &mut choice.marked,
                _ => continue,
            };
            chosen.insert(snapshot.id);
        }
        choice
    }

    /// These are taken out, and nothing else is done.
    pub(super) fn removing(removed: BTreeSet<SnapshotId>) -> Self {
        Self { removed, ..Self::default() }
    }

    /// How many snapshots it is about.
    pub(super) fn len(&self) -> u64 {
        (self.removed.len() + self.ended.len() + self.marked.len() + self.rewritten.len()) as u64
    }

    /// Tells whether a live snapshot is removed or marked.
    pub(super) fn takes(&self, id: &SnapshotId) -> bool {
        self.removed.contains(id) || self.marked.contains(id)
    }

    /// Tells whether everything stays as it is.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes snapshots out of a manifest, and marks others. What is rewritten stays as it is.
    pub(super) fn apply(&self, manifest: &mut Manifest) {
        take_out(manifest, &(&self.removed | &self.ended));
        for id in &self.marked {
            if let Some(snapshot) = manifest.snapshot_mut(id) {
                snapshot.deleted = Some(self.mark);
            }
        }
    }

    /// Refuses to take the last live snapshots of a series: what was probably meant is less. Checkpoints and snapshots
    /// marked as deleted do not count as left.
    pub(super) fn refuse_emptying(&self, manifest: &Manifest, options: &ForgetOptions) -> Result<(), EngineError> {
        let is_live = |snapshot: &&Snapshot| !snapshot.partial && snapshot.deleted.is_none();
        let mut live = manifest.snapshots().iter().filter(is_live).peekable();
        let has_any = live.peek().is_some();
        if options.allow_remove_all || !has_any || live.any(|snapshot| !self.takes(&snapshot.id)) {
            return Ok(());
        }
        Err(EngineError::RemovesAll { series: manifest.name.clone() })
    }
}

impl Marking {
    /// Until when what is marked now is kept.
    pub fn until(&self) -> Time {
        later(self.now, self.keep)
    }

    fn mark(&self) -> Deleted {
        Deleted { at: self.now, until: self.until() }
    }
}

/// The moment so long after another; the last there is, if it lies beyond.
fn later(time: Time, span: Duration) -> Time {
    let nanoseconds = time.nanoseconds.saturating_add(span.subsec_nanos());
    let (carry, nanoseconds) = (i64::from(nanoseconds / 1_000_000_000), nanoseconds % 1_000_000_000);
    let seconds = i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    // At the end of time the seconds stay, and the nanoseconds would go back.
    Time { seconds: time.seconds.saturating_add(seconds).saturating_add(carry), nanoseconds }.max(time)
}

/// The snapshots of a series that are marked as deleted.
pub(super) fn marked(manifest: &Manifest) -> BTreeSet<SnapshotId> {
    manifest.snapshots().iter().filter(|snapshot| snapshot.deleted.is_some()).map(|snapshot| snapshot.id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_may_be_of_any_length() {
        let at = |seconds, nanoseconds| Time { seconds, nanoseconds };
        assert_eq!(later(at(5, 999_999_999), Duration::new(7, 2)), at(13, 1));
        assert_eq!(later(at(-5, 0), Duration::ZERO), at(-5, 0));
        assert_eq!(later(at(5, 1), Duration::MAX).seconds, i64::MAX);
        let mark = Marking { now: at(i64::MAX, 999_999_999), keep: Duration::MAX, ..Marking::default() }.mark();
        assert!(mark.at <= mark.until, "{mark:?}");
    }
}
