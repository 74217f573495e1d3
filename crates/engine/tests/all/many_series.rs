//! Work in many series at a distance: what waits for answers waits for those of several series at a time.

use crate::common::{Sandbox, noise, resources};
use siltstone_engine::backup::{self, Source};
use siltstone_engine::forget;
use siltstone_engine::snapshots::{self, SnapshotFilter, SnapshotView};
use siltstone_store::SeriesId;
use siltstone_store::storage::{Call, Guarded, Listing, Outcome, SimulatedRemote, StorageError};
use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const SERIES: usize = 3;
/// A listing that nobody joins fails after this long; one that is joined waits for no time.
const PATIENCE: Duration = Duration::from_secs(30);

/// The series whose manifests are asked for, while the first listing of each waits for all of them.
#[derive(Debug, Default)]
struct Meeting {
    met: Mutex<Option<BTreeSet<SeriesId>>>,
    changed: Condvar,
}

impl Meeting {
    fn begin(&self) {
        *self.met.lock().expect("a lock") = Some(BTreeSet::new());
    }

    fn meet(&self, series: SeriesId) -> Outcome {
        let mut met = self.met.lock().expect("a lock");
        let Some(asked) = met.as_mut() else { return Outcome::Made };
        asked.insert(series);
        self.changed.notify_all();
        let is_alone = |met: &mut Option<BTreeSet<SeriesId>>| met.as_ref().is_some_and(|met| met.len() < SERIES);
        let is_over = self.changed.wait_timeout_while(met, PATIENCE, is_alone).expect("a lock").1.timed_out();
        let source = std::io::ErrorKind::TimedOut.into();
        let alone = || StorageError::Io { operation: "list", name: format!("series {series}, alone"), source };
        if is_over { Outcome::Refused(alone()) } else { Outcome::Made }
    }
}

#[test]
fn forgetting_and_its_dry_run_ask_for_several_series_at_once() {
    let meeting = Arc::new(Meeting::default());
    let met = Arc::clone(&meeting);
    let place = Guarded::new(SimulatedRemote::new(), move |call| match call {
        Call::List(Listing::Manifests(series)) => met.meet(series),
        _ => Outcome::Made,
    });
    let sandbox = Sandbox::on(Arc::new(place));
    for version in 0..2 {
        for number in 0..SERIES {
            let content = noise((10 * version + number) as u64, 20_000);
            let source = Source::Stream { name: "stream".into(), reader: Box::new(Cursor::new(content)) };
            let options = sandbox.options().with_series(Some(format!("series {number}")));
            backup::backup(&sandbox.repository(), source, &options, &sandbox.resources()).expect("a backup");
        }
    }
    let repository = sandbox.repository();
    let views = snapshots::list(&repository, &SnapshotFilter::default()).expect("a list");
    let older: Vec<_> = views.iter().filter(|view| view.position == 0).map(SnapshotView::key).collect();
    assert_eq!(older.len(), SERIES);
    let forget = |dry_run: bool| {
        meeting.begin();
        let options = sandbox.forget_options(dry_run);
        forget::forget(&repository, &older, &options, &resources()).expect("forgetting")
    };
    let expected = forget(true);
    let done = forget(false);
    assert_eq!((expected.snapshots_removed, done.snapshots_removed), (SERIES as u64, SERIES as u64));
    assert_eq!(expected.containers_deleted, done.containers_deleted);
}
