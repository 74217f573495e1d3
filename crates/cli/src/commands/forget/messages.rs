//! JSON of `forget`, one document: with rules restic's array of groups, and the summary goes to standard error; with ids the summary.

use super::Decided;
use crate::render::{Path, SnapshotJson};
use serde::Serialize;
use siltstone_engine::forget::ForgetSummary;

/// A group, what stays of it and why, and what goes.
#[derive(Serialize)]
pub(super) struct GroupJson {
    tags: Option<Vec<String>>,
    host: String,
    paths: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<String>,
    keep: Vec<SnapshotJson>,
    remove: Vec<SnapshotJson>,
    reasons: Vec<ReasonJson>,
}

#[derive(Serialize)]
struct ReasonJson {
    snapshot: SnapshotJson,
    matches: Vec<String>,
}

impl From<&Decided> for GroupJson {
    fn from(decided: &Decided) -> Self {
        let group = &decided.group;
        let (keep, reasons) = decided.part(true);
        let text = |paths: &Vec<Vec<u8>>| paths.iter().map(|path| Path::from_bytes(path).lossy()).collect();
        let reason = |(view, matches)| ReasonJson { snapshot: SnapshotJson::from(view), matches };
        Self {
            tags: group.tags.clone(),
            host: group.host.clone().unwrap_or_default(),
            paths: group.paths.as_ref().map(text),
            series: group.series.clone(),
            keep: keep.iter().map(SnapshotJson::from).collect(),
            remove: decided.part(false).0.iter().map(SnapshotJson::from).collect(),
            reasons: keep.iter().zip(reasons).map(reason).collect(),
        }
    }
}

/// `message_type` `summary`.
#[derive(Serialize)]
pub(super) struct SummaryMessage {
    message_type: &'static str,
    dry_run: bool,
    snapshots_removed: u64,
    snapshots_failed: u64,
    containers_deleted: u64,
    containers_rewritten: u64,
    bytes_before: u64,
    bytes_after: u64,
    bytes_returned: i64,
    ghost_bytes: u64,
}

impl SummaryMessage {
    pub(super) fn new(summary: &ForgetSummary, dry_run: bool) -> Self {
        Self {
            message_type: "summary",
            dry_run,
            snapshots_removed: summary.snapshots_removed,
            snapshots_failed: summary.snapshots_failed,
            containers_deleted: summary.containers_deleted,
            containers_rewritten: summary.containers_rewritten,
            bytes_before: summary.bytes_before,
            bytes_after: summary.bytes_after,
            bytes_returned: summary.bytes_returned(),
            ghost_bytes: summary.ghost_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_says_what_comes_back_now_and_later() {
        let summary =
            ForgetSummary { bytes_before: 500, bytes_after: 200, ghost_bytes: 70, ..ForgetSummary::default() };
        let json = serde_json::to_value(SummaryMessage::new(&summary, true)).expect("plain data");
        assert_eq!((&json["bytes_returned"], &json["ghost_bytes"]), (&300.into(), &70.into()));
        assert_eq!((&json["message_type"], &json["dry_run"]), (&"summary".into(), &true.into()));
    }
}
