//! From savings to sentences: what a chunker and an expected size would save on this data. Only what was measured is said.

use super::common::{kib, with};
use super::savings::{INDEX_BYTES, WHOLE_FILE};
use crate::experiment::Finding;
use crate::table;
use siltstone_chunk::{DEFAULT_NAME, Sizes};

/// Below this share nothing worth an index repeats.
const WORTH_PERCENT: f64 = 1.0;
/// Chunkers are as good as each other within so many points.
const NEAR_POINTS: f64 = 1.0;

/// A row of `chunk-savings`.
struct Choice {
    method: String,
    expected: u64,
    savings: f64,
    net: f64,
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
            stored_chunks: finding.median("stored_chunks")?,
            data_bytes: finding.median("data_bytes")?,
            gb_per_s: finding.median("gb_per_s")?,
        })
    }

    fn name(&self) -> String {
        format!("{} at {}", self.method, kib(self.expected))
    }

    fn index(&self) -> String {
        format!("{} of index", bytes(INDEX_BYTES * self.stored_chunks))
    }
}

/// What follows for one set of data.
pub(super) fn sentences(data: &str, found: &[&Finding]) -> Vec<String> {
    let choices: Vec<Choice> = found.iter().filter_map(|finding| Choice::of(finding)).collect();
    let Some(best) = choices.iter().max_by(|one, other| one.net.total_cmp(&other.net)) else {
        return Vec::new();
    };
    if choices.iter().all(|choice| choice.savings < WORTH_PERCENT) {
        return vec![format!(
            "{data}: hardly anything repeats. No chunker saves more than {:.2} % of {}; deduplication would cost an index for nothing.",
            choices.iter().map(|choice| choice.savings).fold(0.0, f64::max),
            bytes(best.data_bytes),
        )];
    }
    let default =
        |choice: &&Choice| choice.method == DEFAULT_NAME && choice.expected == Sizes::DEFAULT.expected() as u64;
    let chosen = choices.iter().find(default).unwrap_or(best);
    let mut said = vec![format!(
        "{data}: deduplication saves {:.1} % of {} with {}; counting {INDEX_BYTES} bytes of index for each of {} stored chunks ({}) it is {:.1} %.",
        chosen.savings,
        bytes(chosen.data_bytes),
        chosen.name(),
        chosen.stored_chunks,
        bytes(INDEX_BYTES * chosen.stored_chunks),
        chosen.net,
    )];
    said.push(if best.net - chosen.net > 0.05 {
        format!("Most is saved, that index counted, by {}: {:.1} % ({}).", best.name(), best.net, best.index())
    } else {
        "No other chunker and size that was measured saves more, that index counted.".into()
    });
    said.extend(other_sizes(chosen, &choices));
    said.extend(without_content(chosen, found, &choices));
    said.extend(fastest(chosen, &choices));
    said
}

/// The same chunker at half and at twice the size.
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

/// What can be had without looking at content.
fn without_content(chosen: &Choice, found: &[&Finding], choices: &[Choice]) -> Option<String> {
    let fixed = choices.iter().find(|choice| choice.method == "fixed" && choice.expected == chosen.expected);
    let files = with(found, "method", WHOLE_FILE).first().and_then(|finding| finding.median("savings_percent"));
    let fixed = fixed
        .map(|fixed| format!("chunks of a fixed size of {} would save {:.1} %", kib(fixed.expected), fixed.savings));
    let files = files.map(|files| format!("whole files {files:.1} %"));
    let said = [fixed, files].into_iter().flatten().collect::<Vec<_>>().join(", ");
    (!said.is_empty()).then(|| format!("For comparison: {said}."))
}

/// The fastest of those nearly as good at the same size.
fn fastest(chosen: &Choice, choices: &[Choice]) -> Option<String> {
    let same: Vec<&Choice> = choices.iter().filter(|choice| choice.expected == chosen.expected).collect();
    let most = same.iter().map(|choice| choice.savings).fold(0.0, f64::max);
    let near = same.iter().filter(|choice| choice.savings >= most - NEAR_POINTS);
    let fastest = near.max_by(|one, other| one.gb_per_s.total_cmp(&other.gb_per_s))?;
    Some(format!(
        "Of those at {} within {NEAR_POINTS} point of the best ({most:.1} %), {} cut fastest in the one pass made here: {:.1} GB/s, saving {:.1} %; {} made {:.1} GB/s.",
        kib(chosen.expected),
        fastest.method,
        fastest.gb_per_s,
        fastest.savings,
        chosen.method,
        chosen.gb_per_s,
    ))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn bytes(count: f64) -> String {
    table::bytes(count.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::common::row;
    use serde_json::json;

    fn finding(method: &str, expected: u32, savings: f64, stored_chunks: f64, gb_per_s: f64) -> Finding {
        let data_bytes = 1e9;
        let values = [
            ("savings_percent", savings),
            ("net_savings_percent", savings - 100.0 * INDEX_BYTES * stored_chunks / data_bytes),
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
            "ram cut fastest in the one pass made here: 12.0 GB/s",
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
    fn an_index_can_make_larger_chunks_the_better_choice() {
        let findings = [finding("lagged", 16 << 10, 30.0, 60_000.0, 8.0), finding("lagged", 4 << 10, 30.1, 2e6, 8.0)];
        assert!(said(&findings).contains("No other chunker and size"), "{}", said(&findings));
    }
}
