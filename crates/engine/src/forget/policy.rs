//! Which snapshots to keep: restic's `--keep-*` rules, pure.
//!
//! One walk over a group, newest first. A counted rule (`--keep-daily 7`) keeps a snapshot that opens a new period - it
//! is the last of its day - while its count lasts; the group's oldest snapshot is kept too as long as the count has not
//! run out, so that a history shorter than the rule asks for keeps its beginning. A rule with a span
//! (`--keep-within-daily 7d`) does the same without a count, for snapshots younger than the span, measured back from
//! the newest whole snapshot that does not lie in the future. Tags keep without being counted. Rules add up: what any
//! of them keeps is kept.
//!
//! A snapshot counts at its time, but never later than it was made; one that a clock far ahead has made is kept, and
//! counts for no rule: it neither takes a place from the others nor moves the spans. So it is with partial snapshots,
//! which interrupted backups leave. It can be forgotten by its id.
//!
//! Cost: one pass, a few calendar conversions per snapshot. No clock is read: `now` carries the moment and the time
//! zone.

mod text;

pub use text::{PolicyTextError, parse_count, parse_span, span_text};

use crate::setters::setters;
use crate::snapshots::SnapshotView;
use jiff::{Span, Timestamp, Zoned};
use siltstone_store::Time;

/// The rules; a snapshot that any of them keeps is kept. `Option<u32>`: `None` and 0 off; `u32::MAX` stands for
/// "unlimited".
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct KeepPolicy {
    /// The last N.
    pub last: Option<u32>,
    /// The last of each of the last N hours that have one.
    pub hourly: Option<u32>,
    /// Days.
    pub daily: Option<u32>,
    /// ISO weeks.
    pub weekly: Option<u32>,
    /// Months.
    pub monthly: Option<u32>,
    /// Years.
    pub yearly: Option<u32>,
    /// All within this span before the newest.
    pub within: Option<Span>,
    /// The last of each hour within the span.
    pub within_hourly: Option<Span>,
    /// Days within the span.
    pub within_daily: Option<Span>,
    /// Weeks within the span.
    pub within_weekly: Option<Span>,
    /// Months within the span.
    pub within_monthly: Option<Span>,
    /// Years within the span.
    pub within_yearly: Option<Span>,
    /// All that have every tag of one of these lists; an empty tag stands for "has no tags".
    pub tags: Vec<Vec<String>>,
}

setters!(KeepPolicy {
    with_last(last: Option<u32>),
    with_hourly(hourly: Option<u32>),
    with_daily(daily: Option<u32>),
    with_weekly(weekly: Option<u32>),
    with_monthly(monthly: Option<u32>),
    with_yearly(yearly: Option<u32>),
    with_within(within: Option<Span>),
    with_within_hourly(within_hourly: Option<Span>),
    with_within_daily(within_daily: Option<Span>),
    with_within_weekly(within_weekly: Option<Span>),
    with_within_monthly(within_monthly: Option<Span>),
    with_within_yearly(within_yearly: Option<Span>),
    with_tags(tags: Vec<Vec<String>>),
});

impl KeepPolicy {
    /// The count that means "all of them".
    pub const UNLIMITED: u32 = u32::MAX;

    /// Tells whether no rule is on.
    pub fn is_empty(&self) -> bool {
        self.tags.is_empty()
            && self.counts().iter().all(|(count, ..)| is_off(*count))
            && is_zero(self.within)
            && self.spans().iter().all(|(span, ..)| is_zero(*span))
    }

    fn counts(&self) -> [(Option<u32>, Period, &'static str); 6] {
        [
            (self.last, Period::Each, "last snapshot"),
            (self.hourly, Period::Hour, "hourly snapshot"),
            (self.daily, Period::Day, "daily snapshot"),
            (self.weekly, Period::Week, "weekly snapshot"),
            (self.monthly, Period::Month, "monthly snapshot"),
            (self.yearly, Period::Year, "yearly snapshot"),
        ]
    }

    fn spans(&self) -> [(Option<Span>, Period, &'static str); 5] {
        [
            (self.within_hourly, Period::Hour, "hourly within"),
            (self.within_daily, Period::Day, "daily within"),
            (self.within_weekly, Period::Week, "weekly within"),
            (self.within_monthly, Period::Month, "monthly within"),
            (self.within_yearly, Period::Year, "yearly within"),
        ]
    }
}

/// The reason to keep a snapshot that is dated in the future.
pub const AHEAD: &str = "dated in the future";
/// The reason to keep what an interrupted backup has left: the next whole backup takes it over.
pub const PARTIAL: &str = "partial";

/// Decision of a policy on one snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// True if it stays.
    pub keep: bool,
    /// The rules that keep it, in restic's words ("last snapshot", "daily snapshot", ...).
    pub reasons: Vec<String>,
}

/// Decides for the snapshots of one group, given oldest first; answers in the same order. An empty policy keeps all.
///
/// Hours, days, weeks, months and years are those of the time zone of `now`; snapshots after `now` (a clock that was
/// wrong) and partial ones never serve as the moment from which spans are measured; the latter, and those far after
/// `now`, are kept and count for nothing.
pub fn apply(snapshots: &[SnapshotView], policy: &KeepPolicy, now: &Zoned) -> Vec<Decision> {
    if policy.is_empty() {
        let keep = Decision { keep: true, reasons: vec!["policy is empty".to_owned()] };
        return vec![keep; snapshots.len()];
    }
    let local: Vec<Zoned> = snapshots.iter().map(|view| in_zone_of(now, view.dated())).collect();
    let today = moment(now);
    let oldest = snapshots.iter().position(|view| passed_over(view, today).is_none());
    let counts = |(view, time): &(&SnapshotView, &Zoned)| passed_over(view, today).is_none() && *time <= now;
    let newest = snapshots.iter().zip(&local).filter(counts).map(|(_, time)| time).max().unwrap_or(now);
    let mut counted = policy.counts().map(|(count, period, words)| CountedRule::new(count, period, words));
    let mut spanned = policy.spans().map(|(span, period, words)| SpannedRule::new(span, newest, period, words));
    let whole = SpannedRule::new(policy.within, newest, Period::Each, "within");

    let mut decisions: Vec<Decision> = Vec::with_capacity(snapshots.len());
    for (position, (view, time)) in snapshots.iter().zip(&local).enumerate().rev() {
        if let Some(reason) = passed_over(view, today) {
            decisions.push(Decision { keep: true, reasons: vec![reason.to_owned()] });
            continue;
        }
        let oldest = oldest == Some(position);
        let mut reasons = tag_reasons(&view.snapshot.tags, &policy.tags);
        reasons.extend(whole.holds(time).then(|| whole.reason()));
        reasons.extend(counted.iter_mut().filter_map(|rule| rule.visit(time, position, oldest)));
        reasons.extend(spanned.iter_mut().filter_map(|rule| rule.visit(time, position, oldest)));
        decisions.push(Decision { keep: !reasons.is_empty(), reasons });
    }
    decisions.reverse();
    decisions
}

/// Period that a rule counts by; two moments of equal key lie in one.
#[derive(Clone, Copy)]
enum Period {
    Each,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

impl Period {
    /// The period of a moment, as a tuple that differs from that of any other period of its kind.
    fn key(self, time: &Zoned, position: usize) -> (i64, i64, i64, i64) {
        let (year, month) = (i64::from(time.year()), i64::from(time.month()));
        let (day, hour) = (i64::from(time.day()), i64::from(time.hour()));
        let week = time.date().iso_week_date();
        match self {
            Self::Each => (i64::try_from(position).unwrap_or(i64::MAX), 0, 0, 0),
            Self::Hour => (year, month, day, hour),
            Self::Day => (year, month, day, 0),
            Self::Week => (i64::from(week.year()), i64::from(week.week()), 0, 0),
            Self::Month => (year, month, 0, 0),
            Self::Year => (year, 0, 0, 0),
        }
    }
}

/// `--keep-daily N` and its kin.
struct CountedRule {
    left: u32,
    period: Period,
    previous: Option<(i64, i64, i64, i64)>,
    words: &'static str,
}

impl CountedRule {
    fn new(count: Option<u32>, period: Period, words: &'static str) -> Self {
        Self { left: count.unwrap_or(0), period, previous: None, words }
    }

    /// The reason to keep the snapshot, if this rule has one.
    fn visit(&mut self, time: &Zoned, position: usize, oldest: bool) -> Option<String> {
        if self.left == 0 {
            return None;
        }
        let key = self.period.key(time, position);
        let opens_period = self.previous != Some(key);
        if !opens_period && !oldest {
            return None;
        }
        self.previous = Some(key);
        if self.left != KeepPolicy::UNLIMITED {
            self.left -= 1;
        }
        Some(if opens_period { self.words.to_owned() } else { format!("oldest {}", self.words) })
    }
}

/// `--keep-within-daily SPAN` and its kin.
struct SpannedRule {
    /// The span and the moment it begins; `None` if the rule is off.
    since: Option<(Span, Zoned)>,
    period: Period,
    previous: Option<(i64, i64, i64, i64)>,
    words: &'static str,
}

impl SpannedRule {
    fn new(span: Option<Span>, newest: &Zoned, period: Period, words: &'static str) -> Self {
        // A span that reaches before the beginning of the calendar holds everything.
        let begin = |span: &Span| newest.checked_sub(*span).unwrap_or_else(|_| first_moment(newest));
        let since = span.filter(|span| !span.is_zero()).map(|span| (span, begin(&span)));
        Self { since, period, previous: None, words }
    }

    fn holds(&self, time: &Zoned) -> bool {
        self.since.as_ref().is_some_and(|(_, since)| time > since)
    }

    fn reason(&self) -> String {
        let span = self.since.as_ref().map(|(span, _)| span_text(span));
        format!("{} {}", self.words, span.unwrap_or_default())
    }

    fn visit(&mut self, time: &Zoned, position: usize, oldest: bool) -> Option<String> {
        let key = self.period.key(time, position);
        if !self.holds(time) || (self.previous == Some(key) && !oldest) {
            return None;
        }
        self.previous = Some(key);
        Some(self.reason())
    }
}

fn tag_reasons(tags: &[String], wanted: &[Vec<String>]) -> Vec<String> {
    let has = |tag: &String| tags.contains(tag) || (tag.is_empty() && tags.is_empty());
    let met = wanted.iter().filter(|all| all.iter().all(has));
    met.map(|all| format!("has tags [{}]", all.join(", "))).collect()
}

fn is_off(count: Option<u32>) -> bool {
    count.unwrap_or(0) == 0
}

fn is_zero(span: Option<Span>) -> bool {
    span.is_none_or(Span::is_zero)
}

fn first_moment(like: &Zoned) -> Zoned {
    Timestamp::MIN.to_zoned(like.time_zone().clone())
}

/// Why no rule counts the snapshot, if none does.
pub fn passed_over(view: &SnapshotView, now: Time) -> Option<&'static str> {
    if view.snapshot.partial { Some(PARTIAL) } else { view.is_ahead(now).then_some(AHEAD) }
}

fn moment(now: &Zoned) -> Time {
    let now = now.timestamp();
    Time { seconds: now.as_second(), nanoseconds: u32::try_from(now.subsec_nanosecond()).unwrap_or(0) }
}

/// A snapshot's time in the zone of `now`; moments the calendar cannot hold become its first or last.
fn in_zone_of(now: &Zoned, time: Time) -> Zoned {
    let nanoseconds = i32::try_from(time.nanoseconds).unwrap_or(0);
    let edge = if time.seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
    let moment = Timestamp::new(time.seconds, nanoseconds).unwrap_or(edge);
    moment.to_zoned(now.time_zone().clone())
}

#[cfg(test)]
mod tests;
