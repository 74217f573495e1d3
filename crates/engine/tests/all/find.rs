//! Holds what is found in the snapshots against a walk of each.

use crate::common::faults::forget_parity;
use crate::common::ruin::containers_of;
use crate::common::{self, Sandbox, noise};
use crate::edit::any_edits;
use proptest::test_runner::Config;
use siltstone_engine::backup::{self, Borrow, Source};
use siltstone_engine::browse;
use siltstone_engine::find::{Found, find};
use siltstone_engine::snapshots::SnapshotView;
use siltstone_store::catalog::Entry;
use siltstone_store::container::ContainerKind;
use siltstone_store::storage::{Damage, Original, SimulatedDisk};
use std::collections::BTreeMap;
use std::sync::Arc;

const CASES: u32 = 40;

fn back_up(sandbox: &Sandbox, series: &str) {
    let options = sandbox.options().with_series(Some(series.to_owned())).with_force(true).with_borrow(Borrow::Never);
    let source = Source::Paths(vec![sandbox.source()]);
    backup::backup(&sandbox.repository(), source, &options, &sandbox.resources()).expect("a backup");
}

fn walked(sandbox: &Sandbox, view: &SnapshotView, is_wanted: impl Fn(&Entry) -> bool) -> Found {
    let mut found = Found::new();
    let mut visit = |entry: &Entry| {
        if is_wanted(entry) {
            found.insert(entry.path.clone(), entry.clone());
        }
        Ok(())
    };
    browse::ls(&sandbox.repository(), view, None, true, &mut visit).expect("walked");
    found
}

/// Finds as [`find`] shows them, by the names of the series and the positions of the snapshots.
fn shown(sandbox: &Sandbox, views: &[SnapshotView], is_wanted: &dyn Fn(&Entry) -> bool) -> Vec<(SnapshotView, Found)> {
    let mut shown: Vec<(SnapshotView, Found)> = Vec::new();
    let damage = find(&sandbox.repository(), views, is_wanted, &mut |view, found| {
        let last = shown.last().filter(|(last, _)| last.series == view.series);
        assert!(last.is_none_or(|(last, _)| last.position < view.position), "in the order of their commits");
        shown.push((view.clone(), found.clone()));
        Ok(())
    });
    assert!(damage.expect("found").is_empty());
    shown
}

#[test]
fn each_snapshot_has_what_a_walk_of_it_finds() {
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    common::for_each_drawn(config, &proptest::collection::vec(any_edits(), 1..5), |rounds| {
        let sandbox = Sandbox::new();
        (0..4).for_each(|file| sandbox.write(&format!("d/{file}"), &noise(file, 3000)));
        for edits in &rounds {
            for edit in edits {
                edit.apply(&sandbox.source());
            }
            back_up(&sandbox, "one");
            back_up(&sandbox, "two");
        }
        let is_wanted = |entry: &Entry| entry.path.as_bytes().last().is_some_and(|byte| byte % 2 == 0);
        let views = sandbox.snapshots();
        let every_other: Vec<SnapshotView> = views.iter().step_by(2).cloned().collect();
        for views in [views, every_other] {
            let shown = shown(&sandbox, &views, &is_wanted);
            assert_eq!(shown.len(), views.len());
            for (view, found) in shown {
                assert_eq!(found, walked(&sandbox, &view, is_wanted));
            }
        }
    });
}

#[test]
fn damage_ends_the_search_in_one_series_only() {
    let disk = SimulatedDisk::new();
    let sandbox = Sandbox::on(Arc::new(disk.clone()));
    sandbox.write("a", b"a");
    back_up(&sandbox, "one");
    back_up(&sandbox, "two");
    let views = sandbox.snapshots();
    let hit = views.iter().find(|view| view.series_name == "one").expect("a snapshot").series;
    let catalog = &containers_of(&sandbox.repository(), hit, ContainerKind::Metadata)[0];
    forget_parity(&disk);
    let name = catalog.object_name(hit);
    for name in [Some(name), name.original().map(Original::copy)].into_iter().flatten() {
        assert!(disk.damage(&name, Damage::Delete), "{name}");
    }
    let mut seen = BTreeMap::new();
    let damage = find(&sandbox.repository(), &views, &|_| true, &mut |view, found| {
        seen.insert(view.series_name.clone(), found.len());
        Ok(())
    });
    assert_eq!(damage.expect("found in part").len(), 1);
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["two"]);
    assert!(seen["two"] > 1);
}
