//! All samples as one document, with what was measured and with what.

use super::Report;
use crate::claims::{Found, Judged};
use crate::experiment::Finding;
use anyhow::Result;
use serde_json::{Map, Value, json};

/// The file. Each finding has its parameters, and each measure one value per round.
pub(super) fn text(report: &Report) -> Result<String> {
    let experiments: Vec<Value> = report
        .experiments
        .iter()
        .map(|experiment| {
            json!({
                "name": experiment.name,
                "title": experiment.title,
                "reproduces": experiment.reproduces,
                "columns": experiment.columns().collect::<Vec<_>>(),
            })
        })
        .collect();
    let advice: Map<String, Value> = report.advice.iter().map(|(name, said)| (name.clone(), json!(said))).collect();
    let document = json!({
        "program": report.version,
        "day": report.day,
        "machine": report.machine,
        "settings": report.settings,
        "inputs": report.inputs,
        "experiments": experiments,
        "is_whole": report.is_whole,
        "skipped": report.skipped,
        "advice": advice,
        "claims": report.claims().iter().map(claim).collect::<Vec<_>>(),
        "findings": report.findings.iter().map(|found| finding(found, report)).collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// Returns a claim: what the paper says, and what was found on all data together and on each.
fn claim(judged: &Judged) -> Value {
    let by_data: Map<String, Value> = judged.by_data.iter().map(|(data, ours)| (data.clone(), found(ours))).collect();
    json!({
        "paper": judged.claim.paper,
        "where": judged.claim.place,
        "claim": judged.claim.says,
        "compared": judged.claim.compared(),
        "figure": judged.claim.figure,
        "ours": found(&judged.ours),
        "by_data": by_data,
    })
}

/// A ratio to 0 is the text `infinite`: JSON has no such number.
fn found(found: &Found) -> Value {
    let number = |value: f64| if value.is_finite() { json!(value) } else { json!("infinite") };
    json!({
        "low": found.ends.map(|ends| number(ends.low)),
        "middle": found.ends.map(|ends| number(ends.median)),
        "high": found.ends.map(|ends| number(ends.high)),
        "rounds": found.rounds.map(|(low, high)| [number(low), number(high)]),
        "judged": found.judged,
        "without_either": found.empty,
        "verdict": found.verdict.text(),
    })
}

fn finding(finding: &Finding, report: &Report) -> Value {
    let values: Map<String, Value> =
        finding.values.iter().map(|(name, values)| (name.clone(), json!(values))).collect();
    json!({
        "experiment": finding.experiment,
        "data": finding.data,
        "parameters": finding.parameters,
        "values": values,
        "wrong": finding.wrong,
        "program": report.version,
        "day": report.day,
        "machine": report.machine.join("; "),
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn every_sample_is_in_the_document() {
        let report = sample::report();
        let document: Value = serde_json::from_str(&text(&report).unwrap()).unwrap();
        let findings = document["findings"].as_array().unwrap();
        assert_eq!(findings.len(), report.findings.len());
        for (found, finding) in findings.iter().zip(&report.findings) {
            assert_eq!(found["parameters"], Value::Object(finding.parameters.clone()));
            for (name, values) in &finding.values {
                assert_eq!(found["values"][name], json!(values));
            }
            assert_eq!(found["wrong"].as_str(), finding.wrong.as_deref());
            assert_eq!(found["program"], "1 (abc)");
        }
        assert_eq!(document["settings"]["rounds"], 3);
        assert_eq!(document["inputs"][0]["name"], "two");
    }
}
