//! MeGA's figures (ATC 2022, Figures 1, 4 and 11 to 17) from what was found, one of each for every history.

use super::maintenance::Retention;
use crate::experiment::Finding;
use crate::report::{Axis, Bars, Figure, Line, Plot, Point};
use crate::statistics::Spread;
use crate::table::as_float;
use std::collections::BTreeSet;

/// An overall view is of the last versions (section 5.5).
const LAST_VERSIONS: usize = 10;

const ON_DISK: &str = "Every container was read from the disk, never from the page cache; counts of containers carry over to other disks, times do not. \
    All methods had the same CPUs and read containers ahead.";

const ALIKE: &str = "All methods had Siltstone's containers and regions, its memory for bases, as many CPUs, and after the \
    first version as many syncs. Containers were read from the disk.";

/// The figures of `store-history`.
pub(super) fn of_history(findings: &[Finding]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for data in histories(findings) {
        let of = |methods: &[&str]| series(findings, data, methods);
        let (all, with_bases) = (of(&[]), of(&["Greedy", "FGD", "MeGA", "silt"]));
        let lines = |figure: &str, title: &str, y: Axis, measure: &str, series: &[Series<'_>]| Figure {
            title: format!("{title}: {data}"),
            redraws: format!("MeGA, Fig. {figure}"),
            caption: ON_DISK.into(),
            plot: per_version(y, measure, series),
        };
        let (mb_per_s, containers) = (Axis::linear("MB/s"), Axis::linear("containers"));
        figures.push(lines("11", "Backup speed", mb_per_s.clone(), "backup_mb_per_s", &all));
        figures.push(lines("12", "Containers read for bases", containers.clone(), "base_containers_read", &with_bases));
        figures.push(lines("12", "Time to read bases", Axis::linear("seconds"), "base_read_seconds", &with_bases));
        figures.push(lines("13", "Restore speed", mb_per_s, "restore_mb_per_s", &all));
        figures.push(modelled(data, "a backup", "backup_disk_seconds", &all));
        figures.push(modelled(data, "a restore", "restore_disk_seconds", &all));
        figures.push(lines("14", "Containers a restore involves", containers.clone(), "containers_involved", &all));
        figures.push(lines("14", "Containers a restore reads", containers, "containers_read", &all));
        figures.push(lines("15", "Bytes a restore reads", Axis::linear("MB"), "restore_read_mb", &all));
        if let Some(restored) = figures.last_mut() {
            restored.redraws = String::new();
        }
        figures.extend(overheads(data, &all));
        figures.push(ratios(data, &all));
        figures.push(overview(data, &all));
    }
    figures
}

/// Parts of what a backup and a restore of the last version read and write, where containers lie in the order of
/// arrival or by lifecycles.
fn overheads(data: &str, all: &[Series<'_>]) -> [Figure; 2] {
    let known: Vec<&Series<'_>> = all.iter().filter(|series| last(series, "needed_mb").is_some()).collect();
    let bars = |(name, measure): (&str, &str)| Bars {
        name: name.into(),
        values: known.iter().map(|series| last(series, measure)).collect(),
    };
    let figure = |what: &str, parts: &[(&str, &str)], caption: &str| Figure {
        title: format!("What a {what} of the last version reads and writes: {data}"),
        redraws: "MeGA, Fig. 4".into(),
        caption: caption.into(),
        plot: Plot::Bars {
            y: Axis::linear("MB"),
            groups: known.iter().map(|series| series.name.clone()).collect(),
            series: parts.iter().copied().map(bars).collect(),
        },
    };
    [
        figure(
            "backup",
            &[("written, deduplicated", "backup_written_mb"), ("read for bases", "base_read_mb")],
            "Bytes of containers.",
        ),
        figure(
            "restore",
            &[("of needed chunks", "needed_mb"), ("beside them", "fragments_mb"), ("read again", "read_again_mb")],
            "Bytes of containers: of chunks that are needed, of what lies beside them, and of containers read again.",
        ),
    ]
}

/// A measure of the last version.
fn last(series: &Series<'_>, measure: &str) -> Option<Spread> {
    series.points.last()?.spread(measure)
}

/// Seconds that a hard disk would take, by the model.
fn modelled(data: &str, what: &str, measure: &str, series: &[Series<'_>]) -> Figure {
    Figure {
        title: format!("Seconds of {what} on a hard disk: {data}"),
        redraws: String::new(),
        caption:
            "A model, from the recorded reads and writes: 12.7 ms for each container, 150 MB/s. Computing comes on top."
                .into(),
        plot: per_version(Axis::linear("seconds"), measure, series),
    }
}

/// The figures of `store-alike`.
pub(super) fn of_alike(findings: &[Finding]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for data in histories(findings) {
        let all = series(findings, data, &[]);
        let figure = |title: &str, y: &str, measure: &str| Figure {
            title: format!("{title}, all with Siltstone's sizes: {data}"),
            redraws: String::new(),
            caption: ALIKE.into(),
            plot: per_version(Axis::linear(y), measure, &all),
        };
        figures.push(figure("Backup speed", "MB/s", "backup_mb_per_s"));
        figures.push(figure("Restore speed", "MB/s", "restore_mb_per_s"));
        figures.push(figure("Bytes a restore reads", "MB", "restore_read_mb"));
        figures.push(ratios(data, &all));
        if let Some(ratios) = figures.last_mut() {
            ratios.title = format!("Deduplication ratio, all with Siltstone's sizes: {data}");
            ratios.redraws = String::new();
        }
    }
    figures
}

/// The figures of `store-maintenance`, or of `store-thinning`.
pub(super) fn of_maintenance(findings: &[Finding], retention: Retention) -> Vec<Figure> {
    let mut figures = Vec::new();
    let (redraws, old, thinned) = match retention {
        Retention::Last => ("MeGA, Fig. 17", "Old versions go once enough are retained.", ""),
        Retention::Thinned => ("", "Of versions that are not the last one in four is retained.", ", versions thinned"),
    };
    for data in histories(findings) {
        let all = series(findings, data, &[]);
        figures.push(Figure {
            title: format!("Time to keep the store in order{thinned}: {data}"),
            redraws: redraws.into(),
            caption: format!("After each backup: migration and deletion, or garbage collection. {old}"),
            plot: per_version(Axis::linear("seconds"), "maintenance_seconds", &all),
        });
        figures.push(Figure {
            title: format!("Time to keep the store in order{thinned}, up to a version: {data}"),
            redraws: redraws.into(),
            caption: "The sum so far: migration works at every version, collection when there is enough to collect."
                .into(),
            plot: per_version(Axis::linear("seconds"), "total_seconds", &all),
        });
        let total = |series: &Series<'_>, measure: &str| {
            let values: Vec<f64> = series.points.iter().filter_map(|finding| finding.median(measure)).collect();
            (!values.is_empty()).then(|| Spread::of([values.iter().sum()]))
        };
        let bars = |name: &str, measure: &str| Bars {
            name: name.into(),
            values: all.iter().map(|series| total(series, measure)).collect(),
        };
        figures.push(Figure {
            title: format!("Bytes moved to keep the store in order{thinned}: {data}"),
            redraws: String::new(),
            caption: "Over the whole history.".into(),
            plot: Plot::Bars {
                y: Axis::linear("MB"),
                groups: all.iter().map(|series| series.name.clone()).collect(),
                series: vec![bars("read", "read_mb"), bars("written", "written_mb")],
            },
        });
    }
    figures
}

/// Returns advice for the user's data.
pub(super) fn advice(findings: &[Finding]) -> Vec<String> {
    let mut sentences = Vec::new();
    for data in histories(findings) {
        let all = series(findings, data, &["silt"]);
        let best = |measure: fn(&Series<'_>) -> Option<f64>| {
            let measured = all.iter().filter_map(|series| Some((series, measure(series)?)));
            measured.max_by(|one, other| one.1.total_cmp(&other.1))
        };
        let smallest = best(|series| series.points.last()?.median("deduplication_ratio"));
        let fastest = best(|series| mean_of_last(series, "restore_mb_per_s"));
        if let (Some((smallest, ratio)), Some((fastest, speed))) = (smallest, fastest) {
            sentences.push(format!(
                "{data}: {} stores the least of Siltstone's policies, one byte for {ratio:.1}; {} restores the last versions fastest, at {speed:.0} MB/s",
                smallest.name, fastest.name
            ));
        }
    }
    sentences
}

/// The findings of one method on one history, by ascending version.
struct Series<'f> {
    name: String,
    points: Vec<&'f Finding>,
}

/// Names of the histories, in alphabetical order.
pub(super) fn histories(findings: &[Finding]) -> BTreeSet<&str> {
    findings.iter().map(|finding| finding.data.as_str()).collect()
}

/// Those of these methods, all if none is named, in the order in which they were measured.
fn series<'f>(findings: &'f [Finding], data: &str, methods: &[&str]) -> Vec<Series<'f>> {
    let mut all: Vec<Series<'f>> = Vec::new();
    for finding in findings.iter().filter(|finding| finding.data == data && finding.wrong.is_none()) {
        let method = finding.parameter("method");
        if !methods.is_empty() && !methods.contains(&method.as_str()) {
            continue;
        }
        let name = label(&method, &finding.parameter("parameter"), &finding.parameter("gc_percent"));
        match all.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(finding),
            None => all.push(Series { name, points: vec![finding] }),
        }
    }
    for series in &mut all {
        series.points.sort_by_key(|finding| version(finding));
    }
    all
}

/// As the paper has it: `FGD10`, `MeGA2`, `FGD10, GC 25 %`.
fn label(method: &str, parameter: &str, gc_percent: &str) -> String {
    let space = if method == "silt" { " " } else { "" };
    let collected = if gc_percent.is_empty() { String::new() } else { format!(", GC {gc_percent} %") };
    format!("{method}{space}{parameter}{collected}")
}

fn version(finding: &Finding) -> u64 {
    finding.parameters.get("version").and_then(serde_json::Value::as_u64).unwrap_or_default()
}

fn per_version(y: Axis, measure: &str, series: &[Series<'_>]) -> Plot {
    let line = |series: &Series<'_>| {
        let point = |finding: &&Finding| Some((as_float(version(finding)), finding.median(measure)?));
        let points: Vec<_> = series.points.iter().filter_map(point).collect();
        (!points.is_empty()).then(|| Line { name: series.name.clone(), is_theory: false, points })
    };
    Plot::Lines { x: Axis::linear("version"), y, series: series.iter().filter_map(line).collect() }
}

fn ratios(data: &str, all: &[Series<'_>]) -> Figure {
    let ratio = |series: &Series<'_>| last(series, "deduplication_ratio");
    Figure {
        title: format!("Deduplication ratio: {data}"),
        redraws: "MeGA, Fig. 15".into(),
        caption: "Bytes of all versions over all bytes on disk, metadata included.".into(),
        plot: Plot::Bars {
            y: Axis::linear("ratio"),
            groups: all.iter().map(|series| series.name.clone()).collect(),
            series: vec![Bars { name: "after the last version".into(), values: all.iter().map(ratio).collect() }],
        },
    }
}

fn overview(data: &str, all: &[Series<'_>]) -> Figure {
    let ratio = |series: &Series<'_>| series.points.last()?.median("deduplication_ratio");
    let largest = all.iter().filter_map(ratio).fold(f64::MIN_POSITIVE, f64::max);
    let point = |series: &Series<'_>| {
        Some(Point {
            name: series.name.clone(),
            x: mean_of_last(series, "restore_mb_per_s")?,
            y: mean_of_last(series, "backup_mb_per_s")?,
            size: ratio(series)? / largest,
        })
    };
    Figure {
        title: format!("Restore speed, backup speed and deduplication ratio: {data}"),
        redraws: "MeGA, Figs. 1, 16".into(),
        caption: format!("Means of the last {LAST_VERSIONS} versions; larger points deduplicate better. {ON_DISK}"),
        plot: Plot::Points {
            x: Axis::logarithmic("restore, MB/s"),
            y: Axis::logarithmic("backup, MB/s"),
            points: all.iter().filter_map(point).collect(),
        },
    }
}

fn mean_of_last(series: &Series<'_>, measure: &str) -> Option<f64> {
    let values: Vec<f64> =
        series.points.iter().rev().take(LAST_VERSIONS).filter_map(|one| one.median(measure)).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / as_float(values.len() as u64))
}
