//! Plans of what is to be forgotten: made without writing, and true of what is then done.

use crate::common::{Sandbox, noise, resources};
use siltstone_engine::forget::policy::KeepPolicy;
use siltstone_engine::forget::{ForgetOptions, ForgetPlan, Marking, PolicyScope, SnapshotSelection, record_policy};
use siltstone_engine::snapshots::{GroupKey, SnapshotFilter, SnapshotView};
use siltstone_engine::{EngineError, Session};
use siltstone_store::config::Config;
use siltstone_store::repository::Repository;
use siltstone_store::storage::Listing;
use siltstone_store::{SnapshotId, Time};
use std::collections::BTreeSet;
use std::time::Duration;

/// The moment at which plans are made: the first of March 2026.
const NOW: i64 = 1_772_323_200;
const DAY: i64 = 24 * 60 * 60;

/// Three snapshots of one series, a day apart; the second has a tag.
fn three() -> (Sandbox, Vec<SnapshotId>) {
    let sandbox = Sandbox::new();
    let ids = [3, 2, 1].map(|days| {
        sandbox.write("file", &noise(u64::try_from(days).expect("small"), 100_000));
        let tags = if days == 2 { vec!["dear".to_owned()] } else { Vec::new() };
        let time = Time { seconds: NOW - days * DAY, nanoseconds: 0 };
        let options = sandbox.options().with_force(true).with_tags(tags).with_time(Some(time));
        sandbox.try_backup(&options).expect("a backup").snapshot.expect("a snapshot")
    });
    (sandbox, ids.to_vec())
}

fn session(sandbox: &Sandbox) -> Session {
    Session::new(sandbox.repository(), resources())
}

fn by_policy(policy: KeepPolicy, group_by: &[GroupKey], filter: SnapshotFilter) -> SnapshotSelection {
    let now = jiff::Timestamp::from_second(NOW).expect("a moment").to_zoned(jiff::tz::TimeZone::UTC);
    SnapshotSelection::ByPolicy { filter, group_by: group_by.to_vec(), policy, now }
}

fn last(count: u32) -> KeepPolicy {
    KeepPolicy::default().with_last(Some(count))
}

fn with_tag(tag: &str) -> KeepPolicy {
    KeepPolicy::default().with_tags(vec![vec![tag.to_owned()]])
}

/// Decisions in the order of the groups, a letter for each snapshot: `k` for one that is kept.
fn kept(plan: &ForgetPlan) -> String {
    let decisions = plan.groups.iter().flat_map(|decided| &decided.decisions);
    decisions.map(|decision| if decision.keep { 'k' } else { '-' }).collect()
}

fn objects(repository: &Repository) -> u64 {
    repository.storage().list(Listing::All).expect("a list").iter().map(|object| object.bytes).sum()
}

#[test]
fn rules_decide_for_each_group_by_itself() {
    let (sandbox, _) = three();
    let plan = |policy, group_by: &[GroupKey]| {
        let selection = by_policy(policy, group_by, SnapshotFilter::default());
        kept(&session(&sandbox).plan_forget(selection, &ForgetOptions::default()).expect("a plan"))
    };
    assert_eq!(plan(last(1), &[GroupKey::Host]), "--k");
    assert_eq!(plan(with_tag("dear").with_last(Some(1)), &[GroupKey::Host]), "-kk");
    assert_eq!(plan(last(1), &[GroupKey::Tags]), "-kk");
}

#[test]
fn what_would_remove_all_by_accident_is_refused_and_may_be_allowed() {
    let (sandbox, _) = three();
    let allowed = ForgetOptions::default().with_allow_remove_all(true);
    let plan = |policy, filter, options: &ForgetOptions| {
        let selection = by_policy(policy, &[GroupKey::Host], filter);
        session(&sandbox).plan_forget(selection, options)
    };
    let hosts = || SnapshotFilter::default().with_hosts(vec!["host".to_owned()]);
    let empty = plan(KeepPolicy::default(), hosts(), &ForgetOptions::default());
    assert!(matches!(empty, Err(EngineError::EmptyPolicy)), "{empty:?}");
    let unfiltered = plan(last(0), SnapshotFilter::default(), &allowed);
    assert!(matches!(unfiltered, Err(EngineError::RemovesAllUnfiltered)), "{unfiltered:?}");
    assert_eq!(kept(&plan(KeepPolicy::default(), hosts(), &allowed).expect("a plan")), "---");
    // A mistyped tag does not empty a group.
    let mistyped = plan(with_tag("daer"), SnapshotFilter::default(), &ForgetOptions::default()).expect("a plan");
    assert_eq!(mistyped.emptied().and_then(|group| group.host.as_deref()), Some("host"));
    let refused = session(&sandbox).execute(&mistyped);
    assert!(matches!(refused, Err(EngineError::GroupEmptied { snapshots: 3 })), "{refused:?}");
    assert_eq!(sandbox.snapshots().len(), 3);
    assert_eq!(kept(&plan(with_tag("daer"), SnapshotFilter::default(), &allowed).expect("a plan")), "---");
}

#[test]
fn a_plan_says_what_stays_and_why_and_writes_nothing() {
    let (sandbox, ids) = three();
    let session = session(&sandbox);
    let before = objects(session.repository());
    let selection = by_policy(last(2), &[GroupKey::Host], SnapshotFilter::default());
    let plan = session.plan_forget(selection, &ForgetOptions::default()).expect("a plan");
    assert_eq!(objects(session.repository()), before);
    let [series] = plan.series.as_slice() else { panic!("{plan:?}") };
    assert_eq!(series.name, "test");
    assert_eq!(series.removed, BTreeSet::from([ids[0]]));
    let why: Vec<_> = series.kept.iter().map(|kept| (kept.id, kept.reasons.clone())).collect();
    let reason = || vec!["last snapshot".to_owned()];
    assert_eq!(why, [(ids[1], reason()), (ids[2], reason())]);
    assert!(series.marked.is_empty() && series.ended.is_empty());
}

#[test]
fn what_is_forecast_is_what_executing_does_to_the_byte() {
    let (sandbox, ids) = three();
    let session = session(&sandbox);
    let keys: Vec<_> = sandbox.snapshots().iter().map(SnapshotView::key).filter(|(_, id)| *id != ids[2]).collect();
    let plan = session.plan_forget(SnapshotSelection::Given(keys), &ForgetOptions::default()).expect("a plan");
    let forecast = session.forecast(&plan).expect("a forecast");
    assert_eq!(sandbox.snapshots().len(), 3, "a forecast removes nothing");
    let done = session.execute(&plan).expect("forgetting");
    assert_eq!(done, forecast);
    assert!(done.snapshots_removed == 2 && done.bytes_returned() > 100_000, "{done:?}");
    assert_eq!(objects(session.repository()), done.bytes_after);
    let again = session.execute(&plan).expect("nothing is left to do");
    assert_eq!(again.snapshots_removed, 0, "who is gone already is passed over");
}

#[test]
fn a_plan_marks_and_ends_marks_where_it_is_told_to() {
    let (sandbox, ids) = three();
    let session = session(&sandbox);
    let at = |seconds, keep| Marking::default().with_now(Time { seconds, nanoseconds: 0 }).with_keep(keep);
    let keys = || sandbox.snapshots().iter().map(SnapshotView::key).take(1).collect();
    let options = ForgetOptions::default().with_marking(at(NOW, Duration::from_mins(1)));
    let plan = session.plan_forget(SnapshotSelection::Given(keys()), &options).expect("a plan");
    assert_eq!(plan.series[0].marked, BTreeSet::from([ids[0]]));
    assert_eq!(session.execute(&plan).expect("marking").snapshots_marked, 1);
    let marks = |options: &ForgetOptions| {
        let selection = SnapshotSelection::Marks { filter: SnapshotFilter::default() };
        session.plan_forget(selection, options).expect("a plan")
    };
    let early = marks(&ForgetOptions::default().with_marking(at(NOW + 59, Duration::ZERO)));
    assert!(early.series[0].ended.is_empty());
    let late = marks(&ForgetOptions::default().with_marking(at(NOW + 60, Duration::ZERO)));
    assert_eq!((late.series[0].ended.clone(), late.series[0].kept.len()), (BTreeSet::from([ids[0]]), 2));
    // Brought back between plan and execution, it is live and stays.
    sandbox.try_undelete(&ids[..1]).expect("brought back");
    assert_eq!(session.execute(&late).expect("nothing is over").snapshots_ended, 0);
    assert_eq!(sandbox.snapshots().len(), 3);
}

#[test]
fn a_recorded_policy_with_a_rule_of_a_later_version_removes_nothing() {
    let (sandbox, _) = three();
    let session = session(&sandbox);
    let plan = || {
        let now = jiff::Timestamp::from_second(NOW).expect("a moment").to_zoned(jiff::tz::TimeZone::UTC);
        let selection = SnapshotSelection::ByRecordedPolicies { filter: SnapshotFilter::default(), now };
        session.plan_forget(selection, &ForgetOptions::default())
    };
    assert!(matches!(plan(), Err(EngineError::NoRecordedPolicy)));
    let scope = PolicyScope::Series("test".to_owned());
    assert!(!record_policy(session.repository(), &scope, Some(&last(1))).expect("recorded"));
    assert_eq!(kept(&plan().expect("a plan")), "--k");
    let later = |config: &mut Config| {
        config.settings.insert("policy/test".to_owned(), b"last 1\nfull-moon 12\n".to_vec());
        Ok(())
    };
    session.repository().amend(later).expect("a record");
    let refused = plan();
    let told =
        |error: &EngineError| error.to_string().contains("policy/test") && error.to_string().contains("full-moon");
    assert!(matches!(&refused, Err(error @ EngineError::RecordedPolicy { .. }) if told(error)), "{refused:?}");
}
