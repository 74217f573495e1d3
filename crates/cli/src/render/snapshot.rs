//! Snapshots: the table of `snapshots` and `forget`, one line of description, and JSON in restic's field names.

use super::{Path, StatisticsJson, Table, counted, local, rfc3339, size, visible};
use serde::Serialize;
use siltstone_engine::backup::default_series_name;
use siltstone_engine::snapshots::SnapshotView;
use std::collections::{BTreeMap, BTreeSet};

/// The most borrowers of the same lenders that are named.
const NAMED_MAX: usize = 3;

/// Columns of a table of snapshots that may be wrapped.
const WRAPS: &[&str] = &["Host", "Tags", "Series", "Reasons", "Paths"];

/// A table of snapshots; `reasons`, one list per snapshot, adds the column that says why each is kept. It fits into
/// `width`, if one is given.
pub(crate) fn snapshot_table(
    views: &[SnapshotView],
    reasons: Option<&[Vec<String>]>,
    compact: bool,
    width: Option<usize>,
) -> Table {
    let shows_series = views.iter().any(has_own_series);
    let shows_tags = views.iter().any(|view| !view.snapshot.tags.is_empty());
    let shows_state = views.iter().any(|view| state(view).is_some());
    let mut headings = vec!["ID", "Time"];
    headings.extend(shows_state.then_some("State"));
    headings.push("Host");
    headings.extend(shows_tags.then_some("Tags"));
    headings.extend(shows_series.then_some("Series"));
    headings.extend((!compact && reasons.is_some()).then_some("Reasons"));
    headings.extend((!compact).then_some("Paths"));
    headings.push("Size");
    let mut table = Table::new(headings);
    for (at, view) in views.iter().enumerate() {
        let snapshot = &view.snapshot;
        let tags = snapshot.tags.iter().map(|tag| visible(tag.as_bytes())).collect::<Vec<_>>();
        let mut cells = vec![vec![snapshot.id.short()], vec![local(snapshot.time)]];
        cells.extend(shows_state.then(|| vec![state(view).unwrap_or_default()]));
        cells.push(vec![visible(snapshot.host.as_bytes())]);
        cells.extend(shows_tags.then(|| if compact { tags } else { vec![tags.join(",")] }));
        cells.extend(shows_series.then(|| vec![visible(view.series_name.as_bytes())]));
        if !compact {
            cells.extend(reasons.map(|reasons| reasons.get(at).cloned().unwrap_or_default()));
            cells.push(snapshot.paths.iter().map(|path| visible(path)).collect());
        }
        cells.push(vec![size(snapshot.statistics.logical_bytes)]);
        table.row(cells);
    }
    table.footer(counted(views.len() as u64, "snapshot"));
    table.fit(width, WRAPS)
}

/// Lines that tell which of these snapshots' series borrow of which; `None` if none does.
pub(crate) fn borrowing_lines(views: &[SnapshotView]) -> Option<String> {
    let mut borrowers: BTreeMap<&[String], BTreeSet<&str>> = BTreeMap::new();
    for view in views.iter().filter(|view| !view.borrows_of.is_empty()) {
        borrowers.entry(&view.borrows_of).or_default().insert(&view.series_name);
    }
    let quoted = |name: &str| format!("'{}'", visible(name.as_bytes()));
    let line = |(lenders, series): (&&[String], &BTreeSet<&str>)| {
        let named: Vec<String> = series.iter().take(NAMED_MAX).map(|name| quoted(name)).collect();
        let others = series.len() - named.len();
        let more = if others > 0 { format!(" and {others} more") } else { String::new() };
        let lenders: Vec<String> = lenders.iter().map(|name| quoted(name)).collect();
        let verb = if series.len() == 1 { "borrows" } else { "borrow" };
        format!("Series {}{more} {verb} data of {}.", named.join(", "), lenders.join(", "))
    };
    let lines: Vec<String> = borrowers.iter().map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// State of a snapshot that is not whole; `None` for all others.
fn state(view: &SnapshotView) -> Option<String> {
    view.snapshot.partial.then(|| "partial".to_owned())
}

/// Tells whether the snapshot lies in a series that was named by the user.
fn has_own_series(view: &SnapshotView) -> bool {
    view.series_name != default_series_name(&view.snapshot.host, &view.snapshot.paths)
}

/// `40dc1520 of [/home/user/work] at 2015-05-08 21:38:30 by user@kasimir`.
pub(crate) fn describe(view: &SnapshotView) -> String {
    let snapshot = &view.snapshot;
    let paths = snapshot.paths.iter().map(|path| visible(path)).collect::<Vec<_>>().join(" ");
    let (id, time) = (snapshot.id.short(), local(snapshot.time));
    let (user, host) = (visible(snapshot.user.as_bytes()), visible(snapshot.host.as_bytes()));
    format!("{id} of [{paths}] at {time} by {user}@{host}")
}

/// A snapshot as JSON shows it.
#[derive(Serialize)]
pub(crate) struct SnapshotJson {
    time: String,
    made: String,
    tree: String,
    paths: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paths_raw: Option<Vec<Option<String>>>,
    hostname: String,
    username: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    program_version: String,
    series: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    borrows_of: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
    summary: StatisticsJson,
    id: String,
    short_id: String,
}

impl From<&SnapshotView> for SnapshotJson {
    fn from(view: &SnapshotView) -> Self {
        let snapshot = &view.snapshot;
        let paths: Vec<Path> = snapshot.paths.iter().map(|path| Path::from_bytes(path)).collect();
        let raw: Vec<Option<String>> = paths.iter().map(Path::raw).collect();
        Self {
            time: rfc3339(snapshot.time),
            made: rfc3339(snapshot.made),
            tree: snapshot.root.to_string(),
            paths: paths.iter().map(Path::lossy).collect(),
            paths_raw: raw.iter().any(Option::is_some).then_some(raw),
            hostname: snapshot.host.clone(),
            username: snapshot.user.clone(),
            tags: snapshot.tags.clone(),
            description: snapshot.description.clone(),
            program_version: snapshot.program.clone(),
            series: view.series_name.clone(),
            borrows_of: view.borrows_of.clone(),
            partial: snapshot.partial,
            summary: StatisticsJson::from(&snapshot.statistics),
            id: snapshot.id.to_string(),
            short_id: snapshot.id.short(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use siltstone_store::manifest::{Snapshot, SnapshotStatistics};
    use siltstone_store::{ChunkNumber, SeriesId, SnapshotId, Time};
    use unicode_width::UnicodeWidthStr;

    #[test]
    fn borrowers_of_the_same_lenders_share_a_line() {
        let view = |series: &str, lenders: &[&str]| {
            let mut view = view(1, &[], Some(series));
            view.borrows_of = lenders.iter().map(|&name| name.to_owned()).collect();
            view
        };
        assert_eq!(borrowing_lines(&[view("base", &[])]), None);
        let mut views = vec![view("base", &[]), view("web-2", &["base"]), view("web-2", &["base"])];
        assert_eq!(borrowing_lines(&views).as_deref(), Some("Series 'web-2' borrows data of 'base'."));
        views.extend(["a", "b", "c"].map(|name| view(name, &["base"])));
        views.push(view("z", &["base", "b"]));
        let expected = "Series 'a', 'b', 'c' and 1 more borrow data of 'base'.\n\
            Series 'z' borrows data of 'base', 'b'.";
        assert_eq!(borrowing_lines(&views).as_deref(), Some(expected));
    }

    /// A snapshot for tests of rendering.
    pub(crate) fn view(number: u8, tags: &[&str], series: Option<&str>) -> SnapshotView {
        let snapshot = Snapshot {
            id: SnapshotId([number; 32]),
            time: Time { seconds: 1_431_121_110, nanoseconds: 0 },
            made: Time { seconds: 1_431_121_110, nanoseconds: 0 },
            host: "kasimir".into(),
            user: "user".into(),
            paths: vec![b"/home/user".to_vec(), b"/s\xff".to_vec()],
            tags: tags.iter().map(|&tag| tag.into()).collect(),
            description: None,
            program: "silt 0.1.0".into(),
            root: ChunkNumber::METADATA_FIRST,
            record: ChunkNumber::METADATA_FIRST,
            statistics: SnapshotStatistics {
                files: 3,
                logical_bytes: 2048,
                deltas_skipped: 5,
                ..SnapshotStatistics::default()
            },
            partial: false,
            deleted: None,
        };
        let default = default_series_name(&snapshot.host, &snapshot.paths);
        let series_name = series.map_or(default, str::to_owned);
        SnapshotView { series: SeriesId([0; 16]), series_name, position: 0, borrows_of: Vec::new(), snapshot }
    }

    #[test]
    fn the_table_has_restics_columns() {
        let text = snapshot_table(&[view(0xab, &["x", "y"], None)], None, false, None).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "ID        Time                 Host     Tags  Paths       Size");
        assert!(lines[2].starts_with("abababab  2015-05-0"), "{text}");
        assert!(lines[2].ends_with("  kasimir  x,y   /home/user  2.000 KiB"), "{text}");
        assert_eq!(lines[3].trim(), "/s\\xff");
        assert_eq!(lines.last(), Some(&"1 snapshot"));
        assert!(!snapshot_table(&[view(1, &[], None)], None, false, None).to_string().contains("Tags"));
    }

    #[test]
    fn the_table_fits_a_terminal_of_80_columns() {
        let mut long = view(7, &["before-upgrade", "weekly"], Some("photos"));
        long.snapshot.host = "\u{4e2d}\u{6587}-workstation.example.com".into();
        long.snapshot.paths = vec![b"/home/somebody/Documents/photos/holidays/2026".to_vec()];
        let reasons = [vec!["weekly snapshot".to_owned(), "monthly snapshot".to_owned()]];
        let text = snapshot_table(&[long], Some(&reasons), false, Some(80)).to_string();
        assert!(text.lines().all(|line| line.width() <= 80), "{text}");
        let joined: String = text.split_whitespace().collect();
        assert!(joined.contains("holidays/"), "{text}");
    }

    #[test]
    fn reasons_and_named_series_have_columns_of_their_own() {
        let reasons = [vec!["last snapshot".to_owned(), "daily snapshot".to_owned()]];
        let text = snapshot_table(&[view(1, &[], Some("mail"))], Some(&reasons), false, None).to_string();
        assert!(text.contains("Host     Series  Reasons         Paths"), "{text}");
        let compact = snapshot_table(&[view(1, &["x", "y"], None)], Some(&reasons), true, None).to_string();
        assert!(!compact.contains("Reasons") && !compact.contains("Paths"), "{compact}");
        assert_eq!(compact.lines().count(), 6, "a line for each tag: {compact}");
    }

    #[test]
    fn a_partial_snapshot_is_marked() {
        let mut partial = view(2, &[], None);
        partial.snapshot.partial = true;
        let text = snapshot_table(&[view(1, &[], None), partial.clone()], None, false, None).to_string();
        assert!(text.lines().next().is_some_and(|line| line.contains("Time                 State    Host")), "{text}");
        assert_eq!(text.matches("  partial  ").count(), 1, "{text}");
        assert_eq!(serde_json::to_value(SnapshotJson::from(&partial)).expect("plain data")["partial"], true);
    }

    #[test]
    fn json_has_restics_names_and_loses_no_path() {
        let json = serde_json::to_value(SnapshotJson::from(&view(0xab, &[], None))).expect("plain data");
        assert_eq!(json["short_id"], "abababab");
        assert_eq!(json["hostname"], "kasimir");
        assert_eq!(json["paths"][0], "/home/user");
        assert_eq!(json["paths_raw"], serde_json::json!([null, "2f73ff"]));
        assert_eq!(json["summary"]["total_files_processed"], 3);
        assert_eq!(json["summary"]["deltas_skipped"], 5);
        assert!(json.get("tags").is_none());
    }

    #[test]
    fn a_description_names_paths_time_and_who() {
        let text = describe(&view(0xab, &[], None));
        assert!(text.starts_with("abababab of [/home/user /s\\xff] at 2015-05-0"), "{text}");
        assert!(text.ends_with(" by user@kasimir"), "{text}");
    }
}
