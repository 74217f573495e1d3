//! Finding snapshots across series: filters, `latest`, `latest~N`, short ids, grouping.
//!
//! People see snapshots in the order of their times, whatever the order of their commits: a backup of older data,
//! committed last with `--time`, is not the latest. A time given ahead of the moment at which the snapshot was made
//! gains nothing by it, and what a clock far ahead has made, or an interrupted backup has left, is the latest only if
//! nothing else is there.

use crate::EngineError;
use crate::lease::now;
use crate::setters::setters;
use siltstone_store::manifest::Snapshot;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Latency, Listing, ObjectName};
use siltstone_store::{SeriesId, SnapshotId, StoreError, Time};
use std::collections::HashMap;

/// Seconds that clocks of machines that back up to one place may differ by, mistaken time zones included: a day. A
/// snapshot dated further ahead was made by a clock that is wrong.
const CLOCKS_DIFFER_SECONDS_MAX: i64 = 24 * 60 * 60;

/// A snapshot and the series it belongs to.
#[derive(Clone, Debug)]
pub struct SnapshotView {
    /// Series it belongs to.
    pub series: SeriesId,
    /// The series' name.
    pub series_name: String,
    /// Place among all snapshots of the series, 0 the oldest.
    pub position: usize,
    /// Names of the series that its series borrows of: they keep chunks that are needed here.
    pub borrows_of: Vec<String>,
    /// The snapshot.
    pub snapshot: Snapshot,
}

impl SnapshotView {
    /// The moment it counts as taken at: its time, but none after it was made.
    pub fn dated(&self) -> Time {
        self.snapshot.dated()
    }

    /// Returns its identity within the repository.
    pub fn key(&self) -> SnapshotKey {
        (self.series, self.snapshot.id)
    }

    /// Tells whether it is dated further ahead of `now` than honest clocks differ.
    pub fn is_ahead(&self, now: Time) -> bool {
        self.dated().seconds > now.seconds.saturating_add(CLOCKS_DIFFER_SECONDS_MAX)
    }
}

/// Which snapshots a command is about; empty lists let every live one through.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SnapshotFilter {
    /// Only these hosts.
    pub hosts: Vec<String>,
    /// Only those having all tags of one of these lists (restic's meaning of repeated `--tag a,b`).
    pub tags: Vec<Vec<String>>,
    /// Only those whose source paths hold all of these absolute paths.
    pub paths: Vec<Vec<u8>>,
    /// Only these series, by name.
    pub series: Vec<String>,
    /// Only those that are marked as deleted, instead of only those that are not.
    pub deleted: bool,
}

setters!(SnapshotFilter {
    with_hosts(hosts: Vec<String>),
    with_tags(tags: Vec<Vec<String>>),
    with_paths(paths: Vec<Vec<u8>>),
    with_series(series: Vec<String>),
    with_deleted(deleted: bool),
});

impl SnapshotFilter {
    /// Tells whether every snapshot passes that is live, or deleted.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.tags.is_empty() && self.paths.is_empty() && self.series.is_empty()
    }

    /// Tells whether a snapshot passes.
    pub fn matches(&self, view: &SnapshotView) -> bool {
        let snapshot = &view.snapshot;
        snapshot.deleted.is_some() == self.deleted
            && (self.hosts.is_empty() || self.hosts.contains(&snapshot.host))
            && (self.series.is_empty() || self.series.contains(&view.series_name))
            && (self.tags.is_empty()
                || self.tags.iter().any(|all| {
                    all.iter().all(|tag| (tag.is_empty() && snapshot.tags.is_empty()) || snapshot.tags.contains(tag))
                }))
            && self.paths.iter().all(|path| snapshot.paths.contains(path))
    }
}

/// All snapshots that pass, oldest first by the moment they are dated; those of equal moments in the order of their
/// commits.
///
/// # Errors
/// Those of the repository; the damage of any series the filter lets through.
pub fn list(repository: &Repository, filter: &SnapshotFilter) -> Result<Vec<SnapshotView>, EngineError> {
    let (views, damage) = list_readable(repository, filter)?;
    match damage.into_iter().next() {
        Some(error) => Err(error.into()),
        None => Ok(views),
    }
}

/// As [`list`], but what is wrong with one series does not hide the others: the errors are returned beside.
///
/// # Errors
/// Those of the repository; the damage of the first series if none that the filter lets through can be read.
pub fn list_readable(
    repository: &Repository,
    filter: &SnapshotFilter,
) -> Result<(Vec<SnapshotView>, Vec<StoreError>), EngineError> {
    let mut views = Vec::new();
    let asked: Vec<SeriesId> = filter.series.iter().map(|name| repository.keys().series_id(name)).collect();
    let series = repository.series()?.into_iter().filter(|series| asked.is_empty() || asked.contains(series));
    let damage = repository.visit_summaries(series, |of| {
        let borrows_of: Vec<String> = of.lenders.iter().map(|lender| name_of(repository, lender.series)).collect();
        for (position, snapshot) in of.snapshots.into_iter().enumerate() {
            let (series, series_name, borrows_of) = (of.series, of.name.clone(), borrows_of.clone());
            let view = SnapshotView { series, series_name, position, borrows_of, snapshot };
            if filter.matches(&view) {
                views.push(view);
            }
        }
        Ok::<_, EngineError>(())
    })?;
    sort_oldest_first(&mut views);
    Ok((views, damage))
}

/// The name of a series; of one that the repository's record does not know, its id.
pub(crate) fn name_of(repository: &Repository, series: SeriesId) -> String {
    repository.config().series.get(&series).cloned().unwrap_or_else(|| series.to_string())
}

fn sort_oldest_first(views: &mut [SnapshotView]) {
    views.sort_by_key(|view| (view.dated(), view.series, view.position));
}

/// The order in which `latest` counts, given oldest first: partial snapshots come before all others, and behind them
/// what is dated ahead of `now`.
pub fn newest_last(views: Vec<SnapshotView>, now: Time) -> Vec<SnapshotView> {
    let (mut ordered, whole): (Vec<_>, Vec<_>) = views.into_iter().partition(|view| view.snapshot.partial);
    let (ahead, others): (Vec<_>, Vec<_>) = whole.into_iter().partition(|view| view.is_ahead(now));
    ordered.extend(ahead);
    ordered.extend(others);
    ordered
}

/// The one snapshot meant by `latest`, `latest~N`, or the beginning of an id. `latest` is the last by [`newest_last`]
/// that passes the filter, of the series that can be read: what is wrong with the others is returned beside, for the
/// last of all may be theirs.
///
/// # Errors
/// [`EngineError::NoSnapshot`], [`EngineError::AmbiguousSnapshot`]; where there is none, the damage of a series it may
/// have stood in.
pub fn resolve(
    repository: &Repository,
    wanted: &str,
    filter: &SnapshotFilter,
) -> Result<(SnapshotView, Vec<StoreError>), EngineError> {
    let none = || EngineError::NoSnapshot { wanted: wanted.to_owned() };
    if let Some(rest) = wanted.strip_prefix("latest") {
        let back = match rest.strip_prefix('~') {
            Some(number) => number.parse::<usize>().map_err(|_| none())?,
            None if rest.is_empty() => 0,
            None => return Err(none()),
        };
        let (views, damage) = list_readable(repository, filter)?;
        return match newest_last(views, now()).into_iter().rev().nth(back) {
            Some(view) => Ok((view, damage)),
            None => Err(no_snapshot(repository, damage)?.unwrap_or_else(none)),
        };
    }
    let (mut found, damage) = beginning_with(repository, wanted, filter.deleted)?;
    match found.len() {
        1 => Ok((found.pop().ok_or_else(none)?, Vec::new())),
        0 => {
            let (others, _) = beginning_with(repository, wanted, !filter.deleted)?;
            Err(match others.first() {
                Some(view) => other_state(view),
                None => no_snapshot(repository, damage)?.unwrap_or_else(none),
            })
        }
        count => Err(EngineError::AmbiguousSnapshot { wanted: wanted.to_owned(), count }),
    }
}

/// The snapshots, live or `deleted`, whose ids begin so.
fn beginning_with(
    repository: &Repository,
    wanted: &str,
    deleted: bool,
) -> Result<(Vec<SnapshotView>, Vec<StoreError>), EngineError> {
    let (mut views, damage) = list_readable(repository, &SnapshotFilter { deleted, ..SnapshotFilter::default() })?;
    views.retain(|view| !wanted.is_empty() && view.snapshot.id.to_string().starts_with(wanted));
    Ok((views, damage))
}

/// The error to tell where a live snapshot was wanted and this one is deleted, or the other way round.
fn other_state(view: &SnapshotView) -> EngineError {
    let snapshot = view.snapshot.id.short();
    if view.snapshot.deleted.is_some() {
        EngineError::SnapshotDeleted { snapshot }
    } else {
        EngineError::NotDeleted { snapshot }
    }
}

/// The error to tell where no snapshot was found, if it may stand in a manifest that cannot be read or is lost.
fn no_snapshot(repository: &Repository, damage: Vec<StoreError>) -> Result<Option<EngineError>, EngineError> {
    match damage.into_iter().next() {
        Some(error) => Ok(Some(error.into())),
        None => lost_manifest(repository),
    }
}

/// The error to tell if there is a series with containers but no manifest; at a distance a check looks for that. Of
/// series that the key does not reach, none is known: their containers prove nothing.
fn lost_manifest(repository: &Repository) -> Result<Option<EngineError>, EngineError> {
    if repository.storage().capabilities().latency > Latency::Disk {
        // Millions of objects may be listed in vain.
        return Ok(None);
    }
    let series = repository.series()?;
    let listed = repository.storage().list(Listing::All).map_err(StoreError::from)?;
    let is_lost = |id: SeriesId| repository.reaches(id) && !series.contains(&id);
    let lost = listed.iter().find(|meta| matches!(meta.name, ObjectName::Container(_, id, _) if is_lost(id)));
    Ok(lost.map(|meta| StoreError::LostManifest { container: meta.name.to_string(), sequence: 0 }.into()))
}

/// Field that snapshots are grouped by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GroupKey {
    /// `host`
    Host,
    /// `paths`
    Paths,
    /// `tags`
    Tags,
    /// `series`
    Series,
}

/// The fields a group has in common, in the order asked for, and its snapshots, oldest first.
#[derive(Clone, Debug)]
pub struct Group {
    /// Host, if grouped by it.
    pub host: Option<String>,
    /// Paths, if grouped by them.
    pub paths: Option<Vec<Vec<u8>>>,
    /// Tags, if grouped by them.
    pub tags: Option<Vec<String>>,
    /// Series name, if grouped by it.
    pub series: Option<String>,
    /// Members.
    pub snapshots: Vec<SnapshotView>,
}

/// Splits snapshots into groups that agree on all the keys; groups in order of first appearance.
pub fn group(views: Vec<SnapshotView>, by: &[GroupKey]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<_, usize> = HashMap::new();
    for view in views {
        let has = |key| by.contains(&key);
        let sorted_tags = || {
            let mut tags = view.snapshot.tags.clone();
            tags.sort();
            tags
        };
        let host = has(GroupKey::Host).then(|| view.snapshot.host.clone());
        let paths = has(GroupKey::Paths).then(|| view.snapshot.paths.clone());
        let tags = has(GroupKey::Tags).then(sorted_tags);
        let series = has(GroupKey::Series).then(|| view.series_name.clone());
        let fields = (host, paths, tags, series);
        let place = places.get(&fields).copied().unwrap_or(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.snapshots.push(view),
            None => {
                let (host, paths, tags, series) = fields.clone();
                groups.push(Group { host, paths, tags, series, snapshots: vec![view] });
                places.insert(fields, place);
            }
        }
    }
    groups
}

/// Identity of the snapshot within the repository, for calls that take one.
pub type SnapshotKey = (SeriesId, SnapshotId);
