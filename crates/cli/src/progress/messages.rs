//! JSON messages of long work, in restic's field names.

use super::{Counts, line::fraction, notices::Words};
use crate::render::{Path, Transfer, size};
use serde::Serialize;
use siltstone_engine::EntryAction;
use siltstone_engine::fs::{Problem, Subject};
use siltstone_store::catalog::EntryPath;
use std::time::Duration;

/// Kinds of work that show progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    Backup,
    Copy,
    Import,
    Restore,
    Dump,
    Forget,
    Undelete,
    Label,
    Rewrite,
    Maintain,
    Check,
    Repair,
    Unlock,
}

impl Work {
    /// Tells whether its result is one JSON document, or the data itself, beside which nothing else may stand on
    /// standard output.
    pub(super) fn prints_one_document(self) -> bool {
        matches!(self, Self::Dump | Self::Forget | Self::Label | Self::Rewrite | Self::Undelete)
    }

    /// The noun for its counts of files.
    pub(super) fn noun(self) -> &'static str {
        if matches!(self, Self::Check | Self::Maintain | Self::Repair) { "container" } else { "file" }
    }

    /// restic's word for the phase in which an error happened.
    fn during(self) -> &'static str {
        match self {
            Self::Backup => "archival",
            Self::Copy => "copy",
            Self::Import => "import",
            Self::Restore => "restore",
            Self::Dump => "dump",
            Self::Forget => "forget",
            Self::Undelete => "undelete",
            Self::Label => "label",
            Self::Rewrite => "rewrite",
            Self::Maintain => "maintain",
            Self::Check => "check",
            Self::Repair => "repair",
            Self::Unlock => "unlock",
        }
    }
}

/// `message_type` `status`.
#[derive(Serialize)]
pub(super) struct StatusMessage {
    message_type: &'static str,
    seconds_elapsed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_remaining: Option<u64>,
    percent_done: f64,
    total_files: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    files_done: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files_restored: Option<u64>,
    total_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_done: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_restored: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_duplicate: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_settled: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_to_settle: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    current_files: Vec<String>,
    error_count: u64,
    #[serde(flatten)]
    transfer: Transfer,
}

impl StatusMessage {
    pub(super) fn new(
        work: Work,
        counts: &Counts,
        current: Option<&Path>,
        elapsed: Duration,
        remaining: Option<Duration>,
    ) -> Self {
        let restores = work == Work::Restore;
        let settles = counts.bytes_to_settle > 0;
        Self {
            message_type: "status",
            seconds_elapsed: elapsed.as_secs(),
            seconds_remaining: remaining.map(|left| left.as_secs()),
            percent_done: if counts.is_total_known {
                fraction(counts.bytes_done, counts.bytes_total, 1.0)
            } else {
                0.0
            },
            total_files: counts.files_total,
            files_done: (!restores).then_some(counts.files_done),
            files_restored: restores.then_some(counts.files_done),
            total_bytes: counts.bytes_total,
            bytes_done: (!restores).then_some(counts.bytes_done),
            bytes_restored: restores.then_some(counts.bytes_done),
            bytes_duplicate: (work == Work::Backup).then_some(counts.bytes_duplicate),
            bytes_settled: settles.then_some(counts.bytes_settled),
            bytes_to_settle: settles.then_some(counts.bytes_to_settle),
            current_files: current.map(Path::lossy).into_iter().collect(),
            error_count: counts.problems,
            transfer: counts.transfer,
        }
    }
}

/// `message_type` `verbose_status`: one entry was dealt with.
#[derive(Serialize)]
pub(super) struct EntryMessage {
    message_type: &'static str,
    action: &'static str,
    item: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    item_raw: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip)]
    line: String,
}

impl EntryMessage {
    pub(super) fn new(work: Work, path: &EntryPath, action: EntryAction, bytes: u64) -> Self {
        let path = Path::of(path);
        let action = action_word(action);
        let shown = path.visible();
        let is_backup = matches!(work, Work::Backup | Work::Import);
        let line = match action {
            "unchanged" | "deleted" => format!("{action:<9} {shown}"),
            _ => format!("{action:<9} {shown}, {}", size(bytes)),
        };
        Self {
            message_type: "verbose_status",
            action,
            item: path.lossy(),
            item_raw: path.raw(),
            data_size: is_backup.then_some(bytes),
            size: (!is_backup).then_some(bytes),
            line,
        }
    }

    /// The message as a line of text.
    pub(super) fn text(&self) -> &str {
        &self.line
    }
}

fn action_word(action: EntryAction) -> &'static str {
    match action {
        EntryAction::New => "new",
        EntryAction::Changed => "modified",
        EntryAction::Unchanged | EntryAction::Kept => "unchanged",
        EntryAction::Restored => "restored",
        EntryAction::Deleted => "deleted",
    }
}

/// `message_type` `error`, on standard error.
#[derive(Serialize)]
pub(super) struct ErrorMessage {
    message_type: &'static str,
    error: ErrorText,
    during: &'static str,
    item: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    item_raw: Option<String>,
    code: &'static str,
}

#[derive(Serialize)]
struct ErrorText {
    message: String,
}

impl ErrorMessage {
    pub(super) fn new(work: Work, problem: &Problem) -> Self {
        let item = match &problem.subject {
            Subject::Root => Path::from_bytes(b"/"),
            Subject::Entry(path) => Path::of(path),
            Subject::Object(name) => Path::from_bytes(name.as_bytes()),
        };
        Self {
            message_type: "error",
            error: ErrorText { message: format!("{}: {}", problem.kind.words(), problem.reason) },
            during: work.during(),
            item: item.lossy(),
            item_raw: item.raw(),
            code: problem.kind.code(),
        }
    }
}

/// `message_type` `notice`: something worth knowing that is no error.
#[derive(Serialize)]
pub(super) struct NoticeMessage<'a> {
    message_type: &'static str,
    code: &'static str,
    message: &'a str,
}

impl<'a> NoticeMessage<'a> {
    pub(super) fn new(words: &'a Words) -> Self {
        Self { message_type: "notice", code: words.code, message: &words.text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, to_value};
    use siltstone_engine::fs::ProblemKind;

    fn path() -> EntryPath {
        EntryPath::new(*b"a/b\xff").expect("a valid path")
    }

    #[test]
    fn status_has_restics_fields_for_each_work() {
        let totals = Counts { files_total: 4, bytes_total: 100, is_total_known: true, ..Counts::default() };
        let counts = Counts { files_done: 1, bytes_done: 25, ..totals };
        let message =
            |work| to_value(StatusMessage::new(work, &counts, None, Duration::from_secs(3), None)).expect("plain data");
        assert_eq!(
            message(Work::Backup),
            json!({"message_type": "status", "seconds_elapsed": 3, "percent_done": 0.25, "total_files": 4,
                   "files_done": 1, "total_bytes": 100, "bytes_done": 25, "bytes_duplicate": 0, "error_count": 0})
        );
        let transferred = Counts { transfer: Transfer::new(3, 4), ..counts };
        let current = Path::from_bytes(b"/a");
        let sent = StatusMessage::new(Work::Backup, &transferred, Some(&current), Duration::ZERO, None);
        let sent = to_value(sent).expect("plain data");
        assert_eq!((&sent["bytes_sent"], &sent["current_files"]), (&json!(3), &json!(["/a"])));
        assert_eq!(message(Work::Restore)["files_restored"], 1);
        assert_eq!(message(Work::Restore)["bytes_restored"], 25);
    }

    #[test]
    fn entries_show_action_and_item() {
        let message = EntryMessage::new(Work::Backup, &path(), EntryAction::Changed, 2048);
        assert_eq!(message.text(), "modified  /a/b\\xff, 2.000 KiB");
        let json = to_value(&message).expect("plain data");
        assert_eq!(json["action"], "modified");
        assert_eq!(json["item_raw"], "2f612f62ff");
        assert_eq!(json["data_size"], 2048);
    }

    #[test]
    fn errors_name_phase_item_and_code() {
        let problem = Problem::entry(&path(), ProblemKind::Vanished, "no such file");
        let json = to_value(ErrorMessage::new(Work::Backup, &problem)).expect("plain data");
        assert_eq!(json["during"], "archival");
        assert_eq!(json["code"], "vanished");
        assert_eq!(json["error"]["message"], "vanished during the backup: no such file");
    }
}
