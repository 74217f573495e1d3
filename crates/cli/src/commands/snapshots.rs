//! `silt snapshots`: lists snapshots.

mod deleted;

use crate::choose::find_all_or_list;
use crate::context::Context;
use crate::environment;
use crate::error::{CliError, Done};
use crate::parse::Groups;
use crate::patterns::FilterArgs;
use crate::render::{GroupHeader, Path, SnapshotJson, borrowing_lines, snapshot_table};
use crate::repository::open;
use clap::Args;
use serde::Serialize;
use siltstone_engine::snapshots::{Group, GroupKey, SnapshotView, group, newest_last};

/// List the snapshots
#[derive(Args, Debug)]
#[command(visible_alias = "list")]
pub(crate) struct SnapshotsArgs {
    /// Only these snapshots
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Only the last N of each series, host and paths
    #[arg(long, value_name = "N")]
    latest: Option<usize>,
    /// Group by host, paths, tags or series, separated by commas
    #[arg(short, long, value_name = "KEYS")]
    group_by: Option<Groups>,
    /// Those marked as deleted instead: until when each is kept, and the bytes that come back when it ends
    #[arg(long, conflicts_with = "group_by")]
    deleted: bool,
    /// Narrow table without paths
    #[arg(short, long)]
    compact: bool,
}

#[derive(Serialize)]
struct GroupJson {
    group_key: KeyJson,
    snapshots: Vec<SnapshotJson>,
}

/// Fields that the snapshots of a group have in common; those that were not asked for are empty, as restic has it.
#[derive(Serialize)]
pub(super) struct KeyJson {
    hostname: String,
    paths: Option<Vec<String>>,
    tags: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<String>,
}

impl From<&Group> for KeyJson {
    fn from(group: &Group) -> Self {
        Self {
            hostname: group.host.clone().unwrap_or_default(),
            paths: group.paths.as_ref().map(|paths| paths.iter().map(|path| Path::from_bytes(path).lossy()).collect()),
            tags: group.tags.clone(),
            series: group.series.clone(),
        }
    }
}

pub(crate) fn run(arguments: &SnapshotsArgs, context: &Context) -> Result<Done, CliError> {
    let repository = open(context)?;
    let filter = arguments.filter.filter().with_deleted(arguments.deleted);
    let (mut views, done) = find_all_or_list(&repository, &arguments.ids, &filter, context.output)?;
    if let Some(number) = arguments.latest {
        views = latest(views, number);
    }
    if arguments.deleted {
        deleted::show(&views, arguments.compact, &repository, context)?;
        return Ok(done);
    }
    let is_grouped = arguments.group_by.is_some();
    let keys = arguments.group_by.clone().unwrap_or_default().0;
    let borrowing = borrowing_lines(&views);
    let groups = group(views, &keys);
    let json = |views: &[SnapshotView]| views.iter().map(SnapshotJson::from).collect::<Vec<_>>();
    let output = context.output;
    match (output.json, is_grouped) {
        (true, true) => output.json(&groups.iter().map(grouped_json).collect::<Vec<_>>())?,
        (true, false) => output.json(&json(groups.first().map_or(&[], |group| &group.snapshots)))?,
        (false, _) if groups.is_empty() => output.line("0 snapshots")?,
        (false, _) => {
            groups.iter().try_for_each(|group| print_group(group, arguments.compact, context))?;
            borrowing.map_or(Ok(()), |lines| output.line(lines))?;
        }
    }
    Ok(done)
}

/// The last `number` of each series, host and paths, in the order they came in.
fn latest(views: Vec<SnapshotView>, number: usize) -> Vec<SnapshotView> {
    let groups = group(views.clone(), &[GroupKey::Series, GroupKey::Host, GroupKey::Paths]);
    let last = |group: &Group| {
        let skip = group.snapshots.len().saturating_sub(number);
        let ordered = newest_last(group.snapshots.clone(), environment::now());
        ordered.into_iter().skip(skip).map(|view| view.snapshot.id).collect::<Vec<_>>()
    };
    let kept: Vec<_> = groups.iter().flat_map(last).collect();
    views.into_iter().filter(|view| kept.contains(&view.snapshot.id)).collect()
}

fn grouped_json(group: &Group) -> GroupJson {
    GroupJson { group_key: group.into(), snapshots: group.snapshots.iter().map(SnapshotJson::from).collect() }
}

fn print_group(group: &Group, compact: bool, context: &Context) -> Result<(), CliError> {
    let header = GroupHeader(group).to_string();
    if !header.is_empty() {
        context.output.line(format_args!("snapshots for ({header}):"))?;
    }
    context.output.line(snapshot_table(&group.snapshots, None, compact, context.output.columns()))?;
    if header.is_empty() { Ok(()) } else { context.output.line("") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::snapshot_tests::view;

    #[test]
    fn the_latest_of_each_group_stay_in_order() {
        let mut other = view(3, &[], None);
        other.snapshot.host = "other".into();
        let named = view(5, &[], Some("named"));
        let views = vec![view(1, &[], None), other, view(2, &[], None), named, view(4, &[], None)];
        let ids: Vec<_> = latest(views, 1).iter().map(|view| view.snapshot.id.0[0]).collect();
        assert_eq!(ids, [3, 5, 4]);
    }
}
