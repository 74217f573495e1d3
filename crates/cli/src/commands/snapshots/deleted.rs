//! `silt snapshots --deleted`: what is marked as deleted, until when, and what comes back then.

use crate::choose::keys;
use crate::commands::forget;
use crate::context::Context;
use crate::error::CliError;
use crate::render::{SnapshotJson, Table, counted, exact, local, rfc3339, size, visible};
use serde::Serialize;
use siltstone_engine::forget::held_by;
use siltstone_engine::snapshots::SnapshotView;
use siltstone_store::manifest::Deleted;
use siltstone_store::repository::Repository;

/// A deleted snapshot, and the bytes that come back when it alone ends.
struct Row<'v> {
    view: &'v SnapshotView,
    mark: Deleted,
    bytes: i64,
}

#[derive(Serialize)]
struct RowJson {
    #[serde(flatten)]
    snapshot: SnapshotJson,
    deleted_at: String,
    deleted_until: String,
    bytes_freed: i64,
}

/// Shows these snapshots, which are deleted.
pub(super) fn show(
    views: &[SnapshotView],
    compact: bool,
    repository: &Repository,
    context: &Context,
) -> Result<(), CliError> {
    let (options, resources) = (forget::options(context)?, context.resources());
    let freed = |views: &[SnapshotView]| held_by(repository, &keys(views), &options, &resources);
    let rows = views.iter().filter_map(|view| Some((view, view.snapshot.deleted?)));
    let rows = rows.map(|(view, mark)| Ok(Row { view, mark, bytes: freed(std::slice::from_ref(view))? }));
    let rows = rows.collect::<Result<Vec<_>, CliError>>()?;
    if context.output.json {
        return context.output.json(&rows.iter().map(RowJson::from).collect::<Vec<_>>());
    }
    if rows.is_empty() {
        return context.output.line("0 deleted snapshots");
    }
    let mut table = table(&rows, compact).fit(context.output.columns(), &["Host", "Deleted", "Kept Until", "Paths"]);
    let (deleted, bytes) = (counted(rows.len() as u64, "deleted snapshot"), exact(freed(views)?));
    table.footer(format!("{deleted}, {bytes} in all"));
    context.output.line(table)
}

fn table(rows: &[Row<'_>], compact: bool) -> Table {
    let headings = ["ID", "Time", "Host", "Deleted", "Kept Until", "Frees"];
    let mut table = Table::new(headings.into_iter().chain((!compact).then_some("Paths")).collect());
    for Row { view, mark, bytes } in rows {
        let snapshot = &view.snapshot;
        let sign = if *bytes < 0 { "-" } else { "" };
        let texts = [
            snapshot.id.short(),
            local(snapshot.time),
            visible(snapshot.host.as_bytes()),
            local(mark.at),
            local(mark.until),
            format!("{sign}{}", size(bytes.unsigned_abs())),
        ];
        let mut cells: Vec<Vec<String>> = texts.into_iter().map(|text| vec![text]).collect();
        cells.extend((!compact).then(|| snapshot.paths.iter().map(|path| visible(path)).collect()));
        table.row(cells);
    }
    table
}

impl From<&Row<'_>> for RowJson {
    fn from(row: &Row<'_>) -> Self {
        Self {
            snapshot: row.view.into(),
            deleted_at: rfc3339(row.mark.at),
            deleted_until: rfc3339(row.mark.until),
            bytes_freed: row.bytes,
        }
    }
}
