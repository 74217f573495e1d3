//! JSON of `forget`, one document: with rules restic's array of groups, and the summary goes to standard error; with
//! ids the summary.

use crate::render::{Cost, Path, SnapshotJson, rfc3339};
use serde::Serialize;
use siltstone_engine::forget::{DecidedGroup, ForgetSummary, Held};
use siltstone_store::Time;

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

impl From<&DecidedGroup> for GroupJson {
    fn from(decided: &DecidedGroup) -> Self {
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
    snapshots_marked: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    marked_until: Option<String>,
    snapshots_ended: u64,
    snapshots_failed: u64,
    containers_deleted: u64,
    containers_rewritten: u64,
    bytes_before: u64,
    bytes_after: u64,
    bytes_returned: i64,
    ghost_bytes: u64,
    deleted: HeldJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
}

/// Snapshots marked as deleted once all is done. `bytes` is null if it could not be found out.
#[derive(Serialize)]
struct HeldJson {
    snapshots: u64,
    bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_until: Option<String>,
}

impl From<&Held> for HeldJson {
    fn from(held: &Held) -> Self {
        Self {
            snapshots: held.snapshots,
            bytes: if held.snapshots == 0 { Some(0) } else { held.bytes },
            first_until: held.first_until.map(rfc3339),
            last_until: held.last_until.map(rfc3339),
        }
    }
}

impl SummaryMessage {
    pub(super) fn new(summary: &ForgetSummary, until: Option<Time>, dry_run: bool, cost: Option<Cost>) -> Self {
        Self {
            message_type: "summary",
            dry_run,
            snapshots_removed: summary.snapshots_removed,
            snapshots_marked: summary.snapshots_marked,
            marked_until: until.filter(|_| summary.snapshots_marked > 0).map(rfc3339),
            snapshots_ended: summary.snapshots_ended,
            snapshots_failed: summary.snapshots_failed,
            containers_deleted: summary.containers_deleted,
            containers_rewritten: summary.containers_rewritten,
            bytes_before: summary.bytes_before,
            bytes_after: summary.bytes_after,
            bytes_returned: summary.bytes_returned(),
            ghost_bytes: summary.ghost_bytes,
            deleted: (&summary.held).into(),
            cost,
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
        let json = serde_json::to_value(SummaryMessage::new(&summary, None, true, None)).expect("plain data");
        assert_eq!((&json["bytes_returned"], &json["ghost_bytes"]), (&300.into(), &70.into()));
        assert_eq!((&json["message_type"], &json["dry_run"]), (&"summary".into(), &true.into()));
        assert_eq!(json["deleted"], serde_json::json!({ "snapshots": 0, "bytes": 0 }));
        assert!(json.get("marked_until").is_none());
    }
}
