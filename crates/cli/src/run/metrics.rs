//! Metrics of the last run as text of Prometheus, for node_exporter's textfile collector: a file for each profile and
//! command.

use super::record::{Record, plain, replace};
use std::fmt::Write;
use std::io;
use std::path::Path;

/// Names of figures, those of the metrics, and what they count.
const FIGURES: [(&str, &str, &str); 12] = [
    ("files_new", "silt_last_run_new_files", "Files that the snapshot before did not have."),
    ("files_changed", "silt_last_run_changed_files", "Files that changed since the snapshot before."),
    ("files_unmodified", "silt_last_run_unmodified_files", "Files that did not change."),
    ("processed_bytes", "silt_last_run_processed_bytes", "Size of the sources."),
    ("added_bytes", "silt_last_run_added_bytes", "Bytes that were new to the repository."),
    ("stored_bytes", "silt_last_run_stored_bytes", "Size of these as they are stored."),
    ("sent_bytes", "silt_last_run_sent_bytes", "Bytes sent over the network."),
    ("received_bytes", "silt_last_run_received_bytes", "Bytes received over the network."),
    ("problems", "silt_last_run_problems", "What could not be read, or is damaged."),
    ("snapshots_made", "silt_last_run_made_snapshots", "Snapshots that were made."),
    ("snapshots_removed", "silt_last_run_removed_snapshots", "Snapshots that were removed."),
    ("freed_bytes", "silt_last_run_freed_bytes", "Bytes that came back."),
];

/// Writes the metrics of a run into a folder.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write(record: &Record, folder: &Path) -> io::Result<()> {
    let name = match &record.profile {
        Some(profile) => format!("silt_{}_{}.prom", plain(Some(profile)), record.command),
        None => format!("silt_{}.prom", record.command),
    };
    replace(&folder.join(name), text(record), 0o644)
}

fn text(record: &Record) -> String {
    let profile = record.profile.as_deref().unwrap_or_default();
    let labels = format!("{{profile=\"{}\",command=\"{}\"}}", escaped(profile), escaped(&record.command));
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, value: String| {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name}{labels} {value}");
    };
    gauge("silt_last_run_timestamp_seconds", "When the last run ended.", record.ended.0.as_second().to_string());
    gauge("silt_last_run_exit_code", "How it ended: 0 is success.", record.exit_code.to_string());
    gauge("silt_last_run_duration_seconds", "How long it took.", record.duration_seconds.to_string());
    if let Some(moment) = record.last_success {
        gauge(
            "silt_last_success_timestamp_seconds",
            "When a run ended with success.",
            moment.0.as_second().to_string(),
        );
    }
    for (figure, name, help) in FIGURES {
        if let Some(count) = record.figures.get(figure) {
            gauge(name, help, count.to_string());
        }
    }
    text
}

/// The value of a label as the format wants it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::super::record::{Begun, Stamp};
    use super::*;
    use crate::run::figures::Counted;
    use std::time::Duration;

    #[test]
    fn metrics_have_units_labels_and_help() {
        let begun = Begun { profile: Some("a\"b".into()), command: "backup".into(), started: Stamp::now() };
        let counted = Counted { numbers: [("files_new", 3), ("added_bytes", 17)].into(), snapshots: Vec::new() };
        let record = begun.ended(Duration::from_millis(1500), 3, None, &counted);
        let text = text(&record);
        for line in [
            "# TYPE silt_last_run_exit_code gauge",
            "silt_last_run_exit_code{profile=\"a\\\"b\",command=\"backup\"} 3",
            "silt_last_run_duration_seconds{profile=\"a\\\"b\",command=\"backup\"} 1.5",
            "silt_last_run_new_files{profile=\"a\\\"b\",command=\"backup\"} 3",
            "silt_last_run_added_bytes{profile=\"a\\\"b\",command=\"backup\"} 17",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
        assert!(!text.contains("last_success"), "it was no success, and none is known: {text}");
        assert!(text.lines().filter(|line| line.starts_with("# HELP")).count() == 5, "{text}");
    }

    #[test]
    fn the_file_is_replaced_whole_and_can_be_read_by_all() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let begun = Begun { profile: Some("home".into()), command: "check".into(), started: Stamp::now() };
        let record = begun.ended(Duration::ZERO, 0, None, &Counted::default());
        write(&record, folder.path()).expect("written");
        write(&record, folder.path()).expect("written");
        let names: Vec<_> =
            std::fs::read_dir(folder.path()).expect("read").map(|entry| entry.unwrap().path()).collect();
        assert_eq!(names, [folder.path().join("silt_home_check.prom")]);
        assert_eq!(std::fs::metadata(&names[0]).expect("status").permissions().mode() & 0o777, 0o644);
        assert!(std::fs::read_to_string(&names[0]).expect("read").contains("silt_last_success_timestamp_seconds"));
    }
}
