//! Parts before and after the experiments: what was run, on what, what failed, what follows.

use super::table;
use crate::report::plot::text::shown;
use crate::report::{Plot, Report};
use crate::table::bytes;
use maud::{Markup, html};

/// The title of the page.
pub(super) fn title(report: &Report) -> String {
    let names: Vec<String> = report.inputs.iter().take(3).map(|input| shown(&input.name)).collect();
    let more = if report.inputs.len() > names.len() { " and more" } else { "" };
    if names.is_empty() { "silt-lab".to_owned() } else { format!("silt-lab on {}{more}", names.join(", ")) }
}

/// In a paragraph: when, by what, how much, whether all of it is right.
pub(super) fn lead(report: &Report) -> Markup {
    let failed = report.failures();
    let settings = &report.settings;
    html! {
        p {
            (shown(&report.day)) " · silt-lab " (shown(&report.version)) " · "
            (counted(report.experiments.len(), "experiment", "experiments")) ", " (counted(report.findings.len(), "result", "results")) ", "
            (counted(usize::try_from(settings.rounds).unwrap_or(usize::MAX), "round", "rounds")) @if settings.quick { ", quick" }
            " · " a href="#run" { "what was run" }
        }
        @if !report.is_whole { p.bad { strong { "This run did not come to its end." } " What is missing was not measured." } }
        @if failed > 0 {
            p.bad { strong { "✗ " (counted(failed, "result", "results")) " failed the check." } " They are marked, and no times are shown for them." }
        } @else if !report.findings.is_empty() {
            p.good { "✓ Every result was checked in the run that timed it, and is right." }
        }
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The first advice of each experiment that has no figure above.
pub(super) fn in_short(report: &Report, above: &[Opening]) -> Markup {
    let is_above = |name: &str| above.iter().any(|opening| opening.experiment == name);
    let first: Vec<(&str, &String)> = report
        .experiments
        .iter()
        .filter(|experiment| !is_above(experiment.name))
        .filter_map(|experiment| Some((experiment.name, report.advice_of(experiment.name).first()?)))
        .collect();
    html! {
        @if !first.is_empty() {
            section id="short" {
                h2 { "In short" }
                ul.advice {
                    @for (name, sentence) in first { li { (shown(sentence)) " " a href={ "#" (name) } { (name) } } }
                }
            }
        }
    }
}

/// A figure with which the page opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Opening {
    /// Experiment it belongs to.
    pub(super) experiment: &'static str,
    /// Its place among those of the experiment.
    pub(super) place: usize,
}

/// Charts that open the page, as far as it was measured: how much is saved, how fast it is cut, what deltas save beside
/// their speed, and what a store's versions cost.
pub(super) fn openings(report: &Report) -> Vec<Opening> {
    let first = |experiment, is_wanted: fn(&Plot) -> bool| {
        let place = report.figures_of(experiment).iter().position(|figure| is_wanted(&figure.plot))?;
        Some(Opening { experiment, place })
    };
    let is_any = |_: &Plot| true;
    let is_points = |plot: &Plot| matches!(plot, Plot::Points { .. });
    let wanted = [
        first("chunk-savings", is_any),
        first("chunk-throughput", is_any),
        first("sketch-detection", is_points),
        first("store-history", is_points),
    ];
    wanted.into_iter().flatten().collect()
}

/// The sentence beside such a figure: what follows from it for the user's data, or else how to read it.
pub(super) fn opening_sentence<'r>(report: &'r Report, opening: &Opening) -> &'r str {
    let advice = report.advice_of(opening.experiment).first().map(String::as_str);
    advice
        .or_else(|| report.figures_of(opening.experiment).get(opening.place).map(|figure| figure.caption.as_str()))
        .unwrap_or_default()
}

/// Inputs, machine and settings.
pub(super) fn what_was_run(report: &Report) -> Markup {
    html! {
        section id="run" {
            h2 { "What was run" }
            @if !report.inputs.is_empty() { (inputs(report)) }
            @if !report.skipped.is_empty() {
                h3 { "Left out" }
                ul { @for line in &report.skipped { li { (shown(line)) } } }
            }
            h3 { "Machine" }
            dl {
                @for line in &report.machine {
                    @let (name, value) = line.split_once(": ").unwrap_or(("", line));
                    dt { (shown(name)) } dd { (shown(value)) }
                }
            }
            h3 { "Settings" }
            p { "Saved as a file, these repeat the run." }
            @match toml::to_string(&report.settings) {
                Ok(settings) => pre tabindex="0" { @for line in settings.lines() { (shown(line)) "\n" } },
                Err(error) => p.bad { "They cannot be written: " (shown(&error.to_string())) },
            }
        }
    }
}

fn inputs(report: &Report) -> Markup {
    html! {
        (table::boxed("Data", &html! {
            table {
                caption { span { "Data that was measured on" } }
                thead { tr { th scope="col" { "name" } th scope="col" { "versions" } th scope="col" { "size" } th.l scope="col" { "what it is" } } }
                tbody {
                    @for input in &report.inputs {
                        tr {
                            th { (shown(&input.name)) }
                            td { (input.versions) }
                            td { (bytes(input.bytes)) }
                            td.l.long { (shown(&input.description)) }
                        }
                    }
                }
            }
        }))
    }
}
