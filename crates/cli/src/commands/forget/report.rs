//! Report of `forget` when it is done: what went, what is marked as deleted, and what that holds.

use crate::render::{counted, exact, local, size};
use siltstone_engine::forget::{ForgetSummary, Held};
use siltstone_store::Time;

/// The report; `until` is for when snapshots were marked.
pub(super) fn text(summary: &ForgetSummary, until: Option<Time>, dry_run: bool) -> String {
    let mut lines = Vec::new();
    let (gone, marked) = (summary.snapshots_removed + summary.snapshots_ended, summary.snapshots_marked);
    if gone + marked == 0 {
        lines.push("no snapshots were removed".to_owned());
    } else {
        let parts = [
            (gone > 0).then(|| removed(summary, dry_run)),
            (marked > 0).then(|| self::marked(summary, until, dry_run)),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        // A mark takes a little space, and frees none.
        let returned = (gone > 0 || summary.bytes_returned() > 0).then(|| came_back(summary, dry_run));
        lines.push([Some(parts.join(", ")), returned].into_iter().flatten().collect::<Vec<_>>().join(": "));
    }
    lines.extend(later(summary));
    lines.extend(held(&summary.held, dry_run));
    lines.join("\n")
}

/// The line about what comes back later.
pub(in crate::commands) fn later(summary: &ForgetSummary) -> Option<String> {
    let bytes = Some(summary.ghost_bytes).filter(|bytes| *bytes > 0).map(size)?;
    Some(format!("about {bytes} more can come back once 'silt maintain' or the next backup has run"))
}

fn removed(summary: &ForgetSummary, dry_run: bool) -> String {
    let verb = if dry_run { "would remove" } else { "removed" };
    let all = counted(summary.snapshots_removed + summary.snapshots_ended, "snapshot");
    match summary.snapshots_ended {
        0 => format!("{verb} {all}"),
        ended => format!("{verb} {all} ({ended} marked as deleted before)"),
    }
}

fn marked(summary: &ForgetSummary, until: Option<Time>, dry_run: bool) -> String {
    let verb = if dry_run { "would mark" } else { "marked" };
    let until = until.map(|until| format!(" until {}", local(until))).unwrap_or_default();
    format!("{verb} {} as deleted{until}", counted(summary.snapshots_marked, "snapshot"))
}

/// Words for what came back.
pub(in crate::commands) fn came_back(summary: &ForgetSummary, dry_run: bool) -> String {
    let returned = if dry_run { "would come back" } else { "came back" };
    let deleted = counted(summary.containers_deleted, "container");
    let containers = format!("{deleted} deleted, {} rewritten", summary.containers_rewritten);
    format!("{} {returned} ({containers})", exact(summary.bytes_returned()))
}

/// Lines about the bytes that deleted snapshots hold, and how to have them now.
pub(in crate::commands) fn held(held: &Held, dry_run: bool) -> Vec<String> {
    let Some((first, last)) = held.first_until.zip(held.last_until) else { return Vec::new() };
    let until = if first == last {
        format!("until {}", local(last))
    } else {
        format!("the first until {}, the last until {}", local(first), local(last))
    };
    let hold = match (dry_run, held.snapshots) {
        (true, _) => "would hold",
        (false, 1) => "holds",
        (false, _) => "hold",
    };
    let bytes = held.bytes.map_or_else(|| "space".to_owned(), exact);
    vec![
        format!("{} {hold} {bytes}, {until}", counted(held.snapshots, "deleted snapshot")),
        "'silt undelete ID' brings one back, 'silt forget --end-deleted' frees what they hold now".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> ForgetSummary {
        ForgetSummary {
            snapshots_removed: 3,
            containers_deleted: 2,
            containers_rewritten: 1,
            bytes_before: 5000,
            bytes_after: 1904,
            ..ForgetSummary::default()
        }
    }

    #[test]
    fn the_report_states_the_exact_bytes() {
        let expected =
            "would remove 3 snapshots: 3.023 KiB (3096 bytes) would come back (2 containers deleted, 1 rewritten)";
        assert_eq!(text(&some(), None, true), expected);
        let later = "about 2.000 KiB more can come back once 'silt maintain' or the next backup has run";
        let with_ghosts = ForgetSummary { ghost_bytes: 2048, ..some() };
        assert_eq!(text(&with_ghosts, None, true), format!("{expected}\n{later}"));
        assert_eq!(text(&ForgetSummary::default(), None, false), "no snapshots were removed");
    }

    #[test]
    fn the_report_states_what_deleted_snapshots_hold_and_until_when() {
        let (first, last) = (Time { seconds: 86_400, nanoseconds: 0 }, Time { seconds: 2 * 86_400, nanoseconds: 0 });
        let held = Held { snapshots: 4, bytes: Some(2048), first_until: Some(first), last_until: Some(last) };
        let summary = ForgetSummary { snapshots_ended: 1, snapshots_marked: 2, held, ..some() };
        let told = text(&summary, Some(last), false);
        let head = format!(
            "removed 4 snapshots (1 marked as deleted before), marked 2 snapshots as deleted until {}: ",
            local(last)
        );
        assert!(told.starts_with(&head), "{told}");
        let held_line = format!(
            "4 deleted snapshots hold 2.000 KiB (2048 bytes), the first until {}, the last until {}",
            local(first),
            local(last)
        );
        assert!(told.lines().any(|line| line == held_line) && told.contains("--end-deleted"), "{told}");
        let one = Held { snapshots: 1, bytes: None, first_until: Some(last), last_until: Some(last) };
        let told = text(&ForgetSummary { held: one, ..ForgetSummary::default() }, None, true);
        let expected = format!("no snapshots were removed\n1 deleted snapshot would hold space, until {}", local(last));
        assert!(told.starts_with(&expected), "{told}");
    }
}
