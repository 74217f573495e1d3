//! From savings to sentences: what a chunker and an expected size would save on this data. Only what was measured is
//! said.

use super::common::{kib, with};
use super::savings::{INDEX_BYTES, WHOLE_FILE};
use super::throughput::FIXED;
use crate::experiment::Finding;
use crate::table;
use siltstone_chunk::{DEFAULT_NAME, Sizes};

/// Below this share nothing worth an index repeats.
const WORTH_PERCENT: f64 = 1.0;
/// Chunkers are as good as each other within so many points.
const NEAR_POINTS: f64 = 1.0;
/// Data of fewer chunks says nothing of more.
const FEW_CHUNKS: f64 = 64.0;

/// A row of `chunk-savings`.
struct Choice {
    method: String,
    expected: u64,
    savings: f64,
    net: f64,
    average: f64,
    stored_chunks: f64,
    data_bytes: f64,
    gb_per_s: f64,
}

impl Choice {
    fn of(finding: &Finding) -> Option<Self> {
        Some(Self {
            method: finding.parameter("method"),
            expected: finding.parameter("expected_bytes").parse().ok()?,
            savings: finding.median("savings_percent")?,
            net: finding.median("net_savings_percent")?,
            average: finding.median("average_bytes")?,
            stored_chunks: finding.median("stored_chunks")?,
            data_bytes: finding.median("data_bytes")?,
            gb_per_s: finding.median("gb_per_s").unwrap_or(0.0),
        })
    }

    fn name(&self) -> String {
        format!("{} at {}", self.method, kib(self.expected))
    }

    fn index(&self) -> String {
        format!("{} of index", bytes(INDEX_BYTES * self.stored_chunks))
    }
}

/// Returns advice for one set of data.
pub(super) fn sentences(data: &str, found: &[&Finding]) -> Vec<String> {
    let choices: Vec<Choice> = found.iter().filter_map(|finding| Choice::of(finding)).collect();
    let Some(best) = choices.iter().max_by(|one, other| one.net.total_cmp(&other.net)) else {
        return Vec::new();
    };
    let is_default =
        |choice: &&Choice| choice.method == DEFAULT_NAME && choice.expected == Sizes::DEFAULT.expected() as u64;
    let chosen = choices.iter().find(is_default).unwrap_or(best);
    let files = with(found, "method", WHOLE_FILE).first().and_then(|finding| finding.median("savings_percent"));
    let most = choices.iter().map(|choice| choice.savings).chain(files).fold(0.0, f64::max);
    let whole = bytes(chosen.data_bytes);
    if chosen.data_bytes < FEW_CHUNKS * chosen.average {
        return vec![format!(
            "{data}: {whole} are too little to tell: {:.0} chunks with {}. Point it at more, such as several versions of it.",
            chosen.data_bytes / chosen.average.max(1.0),
            chosen.name(),
        )];
    }
    let mut said = if most < WORTH_PERCENT {
        vec![format!(
            "{data}: hardly anything repeats. Nothing saves more than {most:.2} % of {whole}; deduplication would cost an index for nothing."
        )]
    } else {
        let mut said = vec![format!(
            "{data}: deduplication saves {:.1} % of {whole} with {}, in chunks of {} on average. Counting {INDEX_BYTES} bytes of index for each of {} stored chunks ({}) it is {:.1} %.",
            chosen.savings,
            chosen.name(),
            bytes(chosen.average),
            chosen.stored_chunks,
            bytes(INDEX_BYTES * chosen.stored_chunks),
            chosen.net,
        )];
        said.push(most_saved(chosen, best));
        said.extend(other_sizes(chosen, &choices));
        said.extend(without_content(chosen, files, &choices));
        said.extend(fastest(chosen, &choices));
        said
    };
    let has_one_version = found.iter().any(|finding| finding.median("versions").is_some_and(|count| count < 1.5));
    said.extend(has_one_version.then(|| {
        format!("{data} is one version: what a later backup of it would share with this one is not in these figures. With --versions every entry of a folder is a version.")
    }));
    said
}

fn most_saved(chosen: &Choice, best: &Choice) -> String {
    if best.net - chosen.net > 0.05 {
        let (name, average) = (best.name(), bytes(best.average));
        format!(
            "Most is saved, that index counted, by {name}: {:.1} % in chunks of {average} on average ({}).",
            best.net,
            best.index()
        )
    } else {
        "No other chunker and size that was measured saves more, that index counted.".into()
    }
}

/// Says what the chosen chunker would save at half and at twice the size.
fn other_sizes(chosen: &Choice, choices: &[Choice]) -> Vec<String> {
    let at =
        |expected: u64| choices.iter().find(|choice| choice.method == chosen.method && choice.expected == expected);
    let sizes = [("Halving", at(chosen.expected / 2)), ("Doubling", at(chosen.expected * 2))];
    let say = |(how, other): (&str, Option<&Choice>)| {
        let other = other?;
        Some(format!(
            "{how} the size would make it {:.1} %, {:+.2} points, and store {:.1} times as many chunks ({}).",
            other.savings,
            other.savings - chosen.savings,
            other.stored_chunks / chosen.stored_chunks.max(1.0),
            other.index(),
        ))
    };
    sizes.into_iter().filter_map(say).collect()
}

/// Says what can be had without looking at content.
fn without_content(chosen: &Choice, files: Option<f64>, choices: &[Choice]) -> Option<String> {
    let fixed = choices.iter().find(|choice| choice.method == FIXED && choice.expected == chosen.expected);
    let fixed = fixed
        .map(|fixed| format!("chunks of a fixed size of {} would save {:.1} %", kib(fixed.expected), fixed.savings));
    let is_more = files.is_some_and(|files| files > chosen.savings);
    let why =
        if is_more { ", which is more: chunks cut from all files in a row hold several small ones each" } else { "" };
    let files = files.map(|files| format!("storing equal files once {files:.1} %{why}"));
    let said = [fixed, files].into_iter().flatten().collect::<Vec<_>>().join(", ");
    (!said.is_empty()).then(|| format!("For comparison: {said}."))
}

/// The fastest of those that save as much.
fn fastest(chosen: &Choice, choices: &[Choice]) -> Option<String> {
    let is_as_good = |choice: &&Choice| choice.net >= chosen.net - NEAR_POINTS && choice.method != FIXED;
    let fastest = choices.iter().filter(is_as_good).max_by(|one, other| one.gb_per_s.total_cmp(&other.gb_per_s))?;
    (fastest.method != chosen.method).then(|| {
        format!(
            "If cutting must be fast: of all that save at most {NEAR_POINTS} point less, {} cut fastest in the one pass made here, {:.1} GB/s, and saves {:.1} %, that index counted; {} made {:.1} GB/s.",
            fastest.name(),
            fastest.gb_per_s,
            fastest.net,
            chosen.name(),
            chosen.gb_per_s,
        )
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn bytes(count: f64) -> String {
    table::bytes(count.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::row;
    use serde_json::json;

    fn finding(method: &str, expected: u32, savings: f64, stored_chunks: f64, gb_per_s: f64) -> Finding {
        let data_bytes = 1e9;
        let values = [
            ("savings_percent", savings),
            ("net_savings_percent", savings - 100.0 * INDEX_BYTES * stored_chunks / data_bytes),
            ("average_bytes", f64::from(expected)),
            ("stored_chunks", stored_chunks),
            ("data_bytes", data_bytes),
            ("gb_per_s", gb_per_s),
        ];
        Finding {
            experiment: "chunk-savings".into(),
            data: "d".into(),
            parameters: row([("method", json!(method)), ("expected_bytes", json!(expected))]),
            values: values.map(|(name, value)| (name.to_owned(), vec![value])).into(),
            wrong: None,
        }
    }

    fn said(findings: &[Finding]) -> String {
        sentences("d", &findings.iter().collect::<Vec<_>>()).join(" ")
    }

    #[test]
    fn says_what_was_measured() {
        let findings = [
            finding("lagged", 16 << 10, 37.2, 40_000.0, 8.0),
            finding("lagged", 8 << 10, 38.3, 78_000.0, 8.0),
            finding("ram", 16 << 10, 36.9, 41_000.0, 12.0),
            finding("maxp", 16 << 10, 30.0, 41_000.0, 20.0),
            finding("fixed", 16 << 10, 5.0, 58_000.0, 30.0),
        ];
        let said = said(&findings);
        for part in [
            "saves 37.2 % of 1.00 GB with lagged at 16 KiB",
            "Most is saved, that index counted, by lagged at 8 KiB",
            "Halving the size would make it 38.3 %, +1.10 points, and store 1.9 times",
            "fixed size of 16 KiB would save 5.0 %",
            "ram at 16 KiB cut fastest in the one pass made here, 12.0 GB/s, and saves 36.8 %",
        ] {
            assert!(said.contains(part), "{part:?} in {said}");
        }
        assert!(!said.contains("Doubling"));
    }

    #[test]
    fn says_so_if_nothing_repeats() {
        let said = said(&[finding("lagged", 16 << 10, 0.2, 60_000.0, 8.0), finding("ram", 16 << 10, 0.4, 6e4, 8.0)]);
        assert!(said.contains("hardly anything repeats") && said.contains("0.40 % of 1.00 GB"), "{said}");
        assert!(sentences("d", &[]).is_empty());
    }

    #[test]
    fn says_so_if_there_is_too_little_to_tell() {
        let mut finding = finding("lagged", 16 << 10, 12.0, 40.0, 8.0);
        finding.values.retain(|(name, _)| name != "data_bytes");
        finding.values.push(("data_bytes".into(), vec![1e6]));
        let said = said(&[finding]);
        assert!(said.contains("1.00 MB are too little to tell: 61 chunks"), "{said}");
    }

    #[test]
    fn equal_files_can_be_worth_more_than_chunks() {
        let mut files = finding(WHOLE_FILE, 0, 40.5, 5000.0, 0.0);
        files.parameters.remove("expected_bytes");
        let said = said(&[files, finding("lagged", 16 << 10, 20.7, 40_000.0, 8.0)]);
        assert!(said.contains("storing equal files once 40.5 %, which is more"), "{said}");
    }

    #[test]
    fn an_index_can_make_larger_chunks_the_better_choice() {
        let findings = [finding("lagged", 16 << 10, 30.0, 60_000.0, 8.0), finding("lagged", 4 << 10, 30.1, 2e6, 8.0)];
        assert!(said(&findings).contains("No other chunker and size"), "{}", said(&findings));
    }
}
