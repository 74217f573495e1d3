//! The rules, each against small histories written out by hand.

use super::{Decision, KeepPolicy, apply, span_text};
use crate::snapshots::SnapshotView;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, ToSpan, Zoned};
use proptest::prelude::*;
use siltstone_store::manifest::{Snapshot, SnapshotStatistics};
use siltstone_store::{ChunkNumber, SeriesId, SnapshotId, Time};

fn view(time: Time, tags: &[&str]) -> SnapshotView {
    let snapshot = Snapshot {
        id: SnapshotId([0; 32]),
        time,
        made: time,
        host: "host".into(),
        user: "user".into(),
        paths: vec![b"/source".to_vec()],
        tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
        description: None,
        program: "silt".into(),
        root: ChunkNumber(0),
        record: ChunkNumber(0),
        statistics: SnapshotStatistics::default(),
        partial: false,
        deleted: None,
    };
    let series = SeriesId([0; 16]);
    SnapshotView { series, series_name: "series".into(), position: 0, borrows_of: Vec::new(), snapshot }
}

fn zoned(text: &str, zone: &TimeZone) -> Zoned {
    let civil: DateTime = text.parse().expect("a civil time");
    civil.to_zoned(zone.clone()).expect("a time of the zone")
}

fn time(at: &Zoned) -> Time {
    let nanoseconds = u32::try_from(at.timestamp().subsec_nanosecond()).expect("after 1970");
    Time { seconds: at.timestamp().as_second(), nanoseconds }
}

fn history(times: &[&str]) -> Vec<SnapshotView> {
    times.iter().map(|text| view(time(&zoned(text, &TimeZone::UTC)), &[])).collect()
}

fn decide(times: &[&str], policy: &KeepPolicy) -> Vec<Decision> {
    apply(&history(times), policy, &zoned("2030-01-01T00:00", &TimeZone::UTC))
}

/// Which of the times are kept, as a string of `k` and `-`, oldest first.
fn kept(times: &[&str], policy: &KeepPolicy) -> String {
    decide(times, policy).iter().map(|decision| if decision.keep { 'k' } else { '-' }).collect()
}

/// Four snapshots on each of five days around the turn of a year.
const HISTORY: [&str; 10] = [
    "2023-12-29T08:00",
    "2023-12-29T20:00",
    "2023-12-30T08:00",
    "2023-12-30T20:00",
    "2023-12-31T08:00",
    "2023-12-31T20:00",
    "2024-01-01T08:00",
    "2024-01-01T20:00",
    "2024-01-02T08:00",
    "2024-01-02T08:30",
];

#[test]
fn an_empty_policy_keeps_all() {
    let decisions = decide(&HISTORY, &KeepPolicy { daily: Some(0), within: Some(Span::new()), ..Default::default() });
    assert!(decisions.iter().all(|decision| decision.keep && decision.reasons == ["policy is empty"]));
    assert!(KeepPolicy::default().is_empty());
    assert!(!KeepPolicy { tags: vec![vec!["a".into()]], ..Default::default() }.is_empty());
}

#[test]
fn no_snapshots_no_decisions() {
    assert!(decide(&[], &KeepPolicy { last: Some(1), ..Default::default() }).is_empty());
}

#[test]
fn last_counts_from_the_newest() {
    assert_eq!(kept(&HISTORY, &KeepPolicy { last: Some(3), ..Default::default() }), "-------kkk");
    assert_eq!(kept(&HISTORY, &KeepPolicy { last: Some(99), ..Default::default() }), "kkkkkkkkkk");
    assert_eq!(kept(&HISTORY, &KeepPolicy { last: Some(u32::MAX), ..Default::default() }), "kkkkkkkkkk");
}

#[test]
fn each_period_keeps_its_last_snapshot() {
    assert_eq!(kept(&HISTORY, &KeepPolicy { hourly: Some(2), ..Default::default() }), "-------k-k");
    assert_eq!(kept(&HISTORY, &KeepPolicy { daily: Some(3), ..Default::default() }), "-----k-k-k");
    assert_eq!(kept(&HISTORY, &KeepPolicy { weekly: Some(1), ..Default::default() }), "---------k");
    assert_eq!(kept(&HISTORY, &KeepPolicy { weekly: Some(2), ..Default::default() }), "-----k---k");
    assert_eq!(kept(&HISTORY, &KeepPolicy { monthly: Some(2), ..Default::default() }), "-----k---k");
    assert_eq!(kept(&HISTORY, &KeepPolicy { yearly: Some(2), ..Default::default() }), "-----k---k");
}

#[test]
fn the_oldest_stays_while_a_count_has_not_run_out() {
    let decisions = decide(&HISTORY, &KeepPolicy { yearly: Some(3), ..Default::default() });
    assert_eq!(decisions[0].reasons, ["oldest yearly snapshot"]);
    assert_eq!(decisions[5].reasons, ["yearly snapshot"]);
    assert_eq!(decisions.iter().filter(|decision| decision.keep).count(), 3);
    let unlimited = decide(&HISTORY, &KeepPolicy { daily: Some(u32::MAX), ..Default::default() });
    assert_eq!(unlimited[0].reasons, ["oldest daily snapshot"]);
}

#[test]
fn periods_without_a_snapshot_do_not_count() {
    let sparse = ["2020-05-01T00:00", "2022-01-01T00:00", "2024-03-05T00:00", "2024-03-05T01:00"];
    assert_eq!(kept(&sparse, &KeepPolicy { daily: Some(2), ..Default::default() }), "-k-k");
}

#[test]
fn the_iso_week_around_new_year_is_one_week() {
    // 2024-12-30 to 2025-01-05 is week 1 of 2025; 2021-01-01 still is week 53 of 2020.
    let times = ["2020-12-31T12:00", "2021-01-01T12:00", "2024-12-30T12:00", "2025-01-04T12:00"];
    assert_eq!(kept(&times, &KeepPolicy { weekly: Some(2), ..Default::default() }), "-k-k");
}

#[test]
fn the_same_day_of_another_month_is_another_day() {
    let times = ["2024-01-15T12:00", "2024-02-15T12:00", "2025-02-15T12:00"];
    assert_eq!(kept(&times, &KeepPolicy { daily: Some(2), ..Default::default() }), "-kk");
    assert_eq!(kept(&times, &KeepPolicy { monthly: Some(2), ..Default::default() }), "-kk");
}

#[test]
fn spans_are_measured_from_the_newest_and_exclude_their_edge() {
    let policy = KeepPolicy { within: Some(1.day()), ..Default::default() };
    let times = ["2024-01-01T08:00", "2024-01-01T08:30", "2024-01-01T08:31", "2024-01-02T08:30"];
    assert_eq!(kept(&times, &policy), "--kk");
    let reasons = &decide(&times, &policy)[3].reasons;
    assert_eq!(reasons, &["within 1d"]);
}

#[test]
fn spans_follow_the_calendar() {
    let policy = KeepPolicy { within: Some(1.month().days(1)), ..Default::default() };
    let times = ["2024-02-09T11:00", "2024-02-09T13:00", "2024-03-10T12:00"];
    assert_eq!(kept(&times, &policy), "-kk");
}

#[test]
fn within_daily_keeps_one_a_day_for_as_long() {
    let policy = KeepPolicy { within_daily: Some(2.days()), ..Default::default() };
    assert_eq!(kept(&HISTORY, &policy), "-----k-k-k");
    assert_eq!(decide(&HISTORY, &policy)[9].reasons, ["daily within 2d"]);
    let all = KeepPolicy { within_daily: Some(1.year()), ..Default::default() };
    assert_eq!(kept(&HISTORY, &all), "kk-k-k-k-k", "the oldest of the group is kept as well");
}

#[test]
fn other_spans_use_their_own_periods() {
    let year = Some(1.year());
    assert_eq!(kept(&HISTORY, &KeepPolicy { within_hourly: year, ..Default::default() }), "kkkkkkkk-k");
    assert_eq!(kept(&HISTORY, &KeepPolicy { within_weekly: year, ..Default::default() }), "k----k---k");
    assert_eq!(kept(&HISTORY, &KeepPolicy { within_monthly: year, ..Default::default() }), "k----k---k");
    assert_eq!(kept(&HISTORY, &KeepPolicy { within_yearly: year, ..Default::default() }), "k----k---k");
}

#[test]
fn a_snapshot_from_the_future_does_not_move_the_span() {
    let policy = KeepPolicy { within: Some(7.days()), ..Default::default() };
    let times = ["2024-01-01T00:00", "2024-01-02T00:00", "2031-01-01T00:00"];
    assert_eq!(kept(&times, &policy), "kkk");
    assert_eq!(kept(&["2031-01-01T00:00", "2035-01-01T00:00"], &policy), "kk");
}

/// An interrupted backup made long after the others leaves them as they are.
#[test]
fn a_partial_snapshot_does_not_move_the_span() {
    let mut snapshots = history(&["2024-01-01T00:00", "2024-01-08T00:00", "2024-01-09T00:00", "2024-06-01T00:00"]);
    snapshots[3].snapshot.partial = true;
    let now = zoned("2030-01-01T00:00", &TimeZone::UTC);
    for policy in [
        KeepPolicy { within: Some(7.days()), ..Default::default() },
        KeepPolicy { within_daily: Some(7.days()), ..Default::default() },
    ] {
        let keeps: Vec<bool> = apply(&snapshots, &policy, &now).iter().map(|decision| decision.keep).collect();
        assert_eq!(keeps, [false, true, true, true]);
    }
}

#[test]
fn a_snapshot_dated_in_the_future_stays_and_displaces_none() {
    let times = ["2024-01-01T00:00", "2024-01-02T00:00", "2031-01-01T00:00", "2035-01-01T00:00"];
    for policy in
        [KeepPolicy { last: Some(1), ..Default::default() }, KeepPolicy { daily: Some(1), ..Default::default() }]
    {
        assert_eq!(kept(&times, &policy), "-kkk");
        assert_eq!(decide(&times, &policy)[3].reasons, ["dated in the future"]);
    }
    let oldest = KeepPolicy { yearly: Some(9), ..Default::default() };
    assert_eq!(kept(&["2024-01-01T00:00", "2024-01-02T00:00", "2031-01-01T00:00"], &oldest), "kkk");
}

#[test]
fn clocks_may_differ_by_a_day() {
    let policy = KeepPolicy { last: Some(1), ..Default::default() };
    assert_eq!(kept(&["2029-12-31T00:00", "2030-01-01T20:00"], &policy), "-k", "counted as any other");
    assert_eq!(kept(&["2029-12-31T00:00", "2030-01-02T00:01"], &policy), "kk");
}

#[test]
fn a_time_given_ahead_of_the_making_counts_from_the_making() {
    let policy = KeepPolicy { last: Some(1), within: Some(1.hour()), ..Default::default() };
    let mut forged = history(&["2025-01-01T00:00", "2026-01-01T00:00"]);
    forged[0].snapshot.made = time(&zoned("2024-01-01T00:00", &TimeZone::UTC));
    let now = zoned("2030-01-01T00:00", &TimeZone::UTC);
    let keeps: Vec<bool> = apply(&forged, &policy, &now).iter().map(|decision| decision.keep).collect();
    assert_eq!(keeps, [false, true]);
    assert_eq!(forged[0].dated().seconds, forged[0].snapshot.made.seconds);
}

#[test]
fn tags_keep_without_being_counted() {
    let at = |text: &str, tags: &[&str]| view(time(&zoned(text, &TimeZone::UTC)), tags);
    let snapshots = [
        at("2024-01-01T00:00", &["a", "b"]),
        at("2024-01-02T00:00", &["a"]),
        at("2024-01-03T00:00", &[]),
        at("2024-01-04T00:00", &["c"]),
    ];
    let now = zoned("2030-01-01T00:00", &TimeZone::UTC);
    let keep = |lists: &[&[&str]], last| {
        let lists = lists.iter().map(|list| list.iter().map(|&tag| tag.to_owned()).collect()).collect();
        let policy = KeepPolicy { tags: lists, last, ..Default::default() };
        let decisions = apply(&snapshots, &policy, &now);
        decisions.iter().map(|decision| if decision.keep { 'k' } else { '-' }).collect::<String>()
    };
    assert_eq!(keep(&[&["a", "b"]], None), "k---");
    assert_eq!(keep(&[&["a"], &["c"]], None), "kk-k");
    assert_eq!(keep(&[&[""]], None), "--k-");
    assert_eq!(keep(&[&["a", "b"]], Some(1)), "k--k");
    assert_eq!(keep(&[&["no such"]], None), "----");
}

#[test]
fn reasons_add_up_in_a_fixed_order() {
    let policy = KeepPolicy {
        last: Some(1),
        daily: Some(1),
        within: Some(1.hour()),
        within_weekly: Some(1.year().months(5).days(7).hours(2)),
        ..Default::default()
    };
    let reasons = &decide(&HISTORY, &policy)[9].reasons;
    assert_eq!(reasons, &["within 1h", "last snapshot", "daily snapshot", "weekly within 1y5m7d2h"]);
}

#[test]
fn days_are_those_of_the_zone() {
    let zone = TimeZone::fixed(jiff::tz::offset(-5));
    let policy = KeepPolicy { daily: Some(9), ..Default::default() };
    let snapshots = history(&["2024-01-01T12:00", "2024-01-02T01:00", "2024-01-02T12:00"]);
    let keep = |zone| {
        let decisions = apply(&snapshots, &policy, &zoned("2030-01-01T00:00", &zone));
        decisions.into_iter().map(|decision| decision.reasons.join(",")).collect::<Vec<_>>()
    };
    assert_eq!(keep(TimeZone::UTC), ["daily snapshot", "", "daily snapshot"]);
    assert_eq!(keep(zone), ["oldest daily snapshot", "daily snapshot", "daily snapshot"]);
}

#[test]
fn moments_beyond_the_calendar_do_no_harm() {
    let far = |seconds| view(Time { seconds, nanoseconds: 999_999_999 }, &[]);
    let policy = KeepPolicy { last: Some(1), within: Some(19_998.years()), ..Default::default() };
    let now = zoned("2030-01-01T00:00", &TimeZone::UTC);
    let decisions = apply(&[far(i64::MIN), far(0), far(i64::MAX)], &policy, &now);
    assert!(decisions[1].keep && decisions[2].keep);
}

#[test]
fn span_text_uses_restics_letters() {
    assert_eq!(span_text(&1.year().months(5).weeks(1).days(1).hours(2)), "1y5m8d2h");
}

proptest! {
    /// More rules, or greater ones, never lose a snapshot; the newest stays under any rule that counts.
    #[test]
    fn rules_only_ever_add(
        mut seconds in prop::collection::vec(1_600_000_000i64..1_750_000_000, 1..40),
        counts in prop::array::uniform6(0u32..5),
        more in prop::array::uniform6(0u32..3),
    ) {
        seconds.sort_unstable();
        let snapshots: Vec<_> = seconds.iter().map(|&seconds| view(Time { seconds, nanoseconds: 0 }, &[])).collect();
        let now = zoned("2030-01-01T00:00", &TimeZone::UTC);
        let policy = |counts: [u32; 6]| {
            let [last, hourly, daily, weekly, monthly, yearly] = counts.map(Some);
            KeepPolicy { last, hourly, daily, weekly, monthly, yearly, ..Default::default() }
        };
        let greater = std::array::from_fn(|i| counts[i] + more[i]);
        prop_assume!(counts.iter().any(|&count| count > 0));
        let few = apply(&snapshots, &policy(counts), &now);
        let many = apply(&snapshots, &policy(greater), &now);
        prop_assert!(few.iter().zip(&many).all(|(few, many)| !few.keep || many.keep));
        prop_assert!(few.last().is_some_and(|newest| newest.keep));
        let kept = few.iter().filter(|decision| decision.keep).count();
        prop_assert!(kept <= counts.iter().map(|&count| count as usize).sum());
    }
}
