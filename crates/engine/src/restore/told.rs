//! Paths that a restore tells: those of the snapshot, from its root, whatever part of it is restored. The work itself
//! goes by paths in the target.

use super::run::SnapshotPart;
use crate::fs::{Problem, Subject};
use crate::observer::{EntryAction, Notice};
use crate::{Observer, Resources};
use siltstone_store::catalog::EntryPath;
use std::sync::Arc;

/// The folder of the snapshot that the target stands for; `None` for the root.
#[derive(Clone, Debug)]
pub(super) struct Origin(Option<EntryPath>);

impl Origin {
    /// The folder of this part.
    pub(super) fn of(part: &SnapshotPart) -> Self {
        Self(match &part.below {
            Some(entry) if entry.is_directory() => Some(entry.path.clone()),
            Some(entry) => entry.path.parent(),
            None => None,
        })
    }

    /// The path in the snapshot of something in the target.
    pub(super) fn path(&self, in_target: &EntryPath) -> EntryPath {
        let path = self.0.as_ref().map(|folder| [folder.as_bytes(), b"/", in_target.as_bytes()].concat());
        // What the snapshot does not hold may have a path that none can have in it.
        path.and_then(|path| EntryPath::new(path).ok()).unwrap_or_else(|| in_target.clone())
    }

    /// The resources, with an observer that is given paths in the target and tells those in the snapshot.
    pub(super) fn told_by(self, resources: &Resources) -> Resources {
        let observer = Arc::new(Told { observer: resources.observer.clone(), origin: self });
        resources.clone().with_observer(observer)
    }

    fn subject(&self, in_target: &Subject) -> Subject {
        match (in_target, &self.0) {
            (Subject::Entry(path), _) => Subject::Entry(self.path(path)),
            (Subject::Root, Some(folder)) => Subject::Entry(folder.clone()),
            (other, _) => other.clone(),
        }
    }
}

/// See [`Origin::told_by`].
struct Told {
    observer: Arc<dyn Observer>,
    origin: Origin,
}

impl Observer for Told {
    fn estimate(&self, files: u64, bytes: u64, complete: bool) {
        self.observer.estimate(files, bytes, complete);
    }

    fn advance(&self, files: u64, bytes: u64) {
        self.observer.advance(files, bytes);
    }

    fn at(&self, path: &EntryPath) {
        self.observer.at(&self.origin.path(path));
    }

    fn wants_paths(&self) -> bool {
        self.observer.wants_paths()
    }

    fn duplicate(&self, bytes: u64) {
        self.observer.duplicate(bytes);
    }

    fn settle(&self, done: u64, found: u64) {
        self.observer.settle(done, found);
    }

    fn entry(&self, path: &EntryPath, action: EntryAction, bytes: u64) {
        self.observer.entry(&self.origin.path(path), action, bytes);
    }

    fn wants_entries(&self) -> bool {
        self.observer.wants_entries()
    }

    fn problem(&self, problem: &Problem) {
        let Problem { subject, kind, reason } = problem;
        self.observer.problem(&Problem { subject: self.origin.subject(subject), kind: *kind, reason: reason.clone() });
    }

    fn notice(&self, notice: &Notice) {
        if let Notice::OnlyLookedRight { path, reason } = notice {
            let path = self.origin.path(path);
            self.observer.notice(&Notice::OnlyLookedRight { path, reason: reason.clone() });
        } else {
            self.observer.notice(notice);
        }
    }

    fn is_cancelled(&self) -> bool {
        self.observer.is_cancelled()
    }
}
