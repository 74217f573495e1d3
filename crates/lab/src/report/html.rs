//! The report as one page of HTML: nothing is loaded from elsewhere, nothing runs in it, and all text from outside is
//! escaped.
//!
//! Head (what was run, on what), four figures with a sentence each, what follows for the user's data, the papers'
//! claims, then each experiment with its figures and tables. It can be read on a phone, in the dark and on paper;
//! what a figure shows stands in a table too.

mod claims;
mod head;
mod table;

use super::plot::{self, Colours, text::shown};
use super::{Figure, Report};
use crate::experiment::{Finding, Head};
use head::Opening;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("html/style.css");

/// Series of a figure that can be pointed at.
const HIGHLIGHTS: usize = 16;

/// Nothing but the page's own style: should a name ever get through as markup, it can still neither run nor load
/// anything.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// The page.
pub fn page(report: &Report) -> String {
    let title = head::title(report);
    let mut figures_before = 0;
    let openings = head::openings(report);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) (PreEscaped(highlights())) }
            }
            body {
                (plot::hatches())
                header { h1 { (title) } (head::lead(report)) }
                (contents(report))
                main {
                    (opened(report, &openings, &mut figures_before))
                    (head::in_short(report, &openings))
                    (claims::section(report))
                    @for experiment in &report.experiments {
                        (section(report, experiment, &openings, &mut figures_before))
                    }
                    (head::what_was_run(report))
                }
            }
        }
    };
    lean(&page.into_string())
}

/// Returns a page in fewer bytes: without the tags and attributes that HTML does without. Text from outside has no `<`
/// and no `"` any more.
fn lean(page: &str) -> String {
    const LEFT_OUT: [&str; 8] =
        ["</td>", "</th>", "</tr>", "</thead>", "</tbody>", "</li>", "</dd>", " xmlns=\"http://www.w3.org/2000/svg\""];
    // After an attribute, so of elements without content.
    const CLOSED: [&str; 4] = ["\"></path>", "\"></use>", "\"></rect>", "\"></circle>"];
    let page = LEFT_OUT.iter().fold(page.to_owned(), |page, tag| page.replace(tag, ""));
    CLOSED.iter().fold(page, |page, tag| page.replace(tag, "\"/>"))
}

/// Rules by which the other series of a figure fade while one is pointed at in the key.
fn highlights() -> String {
    let rule = |number: usize| {
        format!("figure:has(.keys li:nth-child({number}):hover)>svg>g:not(:nth-of-type({number})){{opacity:.12}}")
    };
    (1..=HIGHLIGHTS).map(rule).collect::<Vec<_>>().join("\n")
}

/// The room of an experiment: `chunk` of `chunk-throughput`.
fn room(experiment: &Head) -> &str {
    experiment.name.split('-').next().unwrap_or(experiment.name)
}

fn contents(report: &Report) -> Markup {
    html! {
        nav aria-label="Contents" {
            h2 { "Contents" }
            @if !report.claims().is_empty() { ul { li { a href="#claims" { "What the papers say" } } } }
            @for rooms in report.experiments.chunk_by(|one, other| room(one) == room(other)) {
                h3 { (room(&rooms[0])) }
                ul {
                    @for experiment in rooms {
                        li { a href={ "#" (experiment.name) } { (experiment.title) } }
                    }
                }
            }
            ul { li { a href="#run" { "What was run" } } }
        }
    }
}

/// The figures with which the page opens, and a sentence below each.
fn opened(report: &Report, openings: &[Opening], figures_before: &mut usize) -> Markup {
    html! {
        @if !openings.is_empty() {
            section id="opening" {
                div.figures {
                    @for opening in openings {
                        @let figures = report.figures_of(opening.experiment);
                        @let () = *figures_before += 1;
                        div {
                            @let figure = &figures[opening.place];
                            (drawn(figure, *figures_before, &Colours::of(figure, figures)))
                            p {
                                strong { (shown(head::opening_sentence(report, opening))) } " "
                                a href={ "#" (opening.experiment) } { (opening.experiment) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Figures of an experiment in the page of a quick run, beside those it opens with.
const QUICK_FIGURES: usize = 2;

/// Tells whether a figure is in the page: of a quick run only those that redraw a paper's, on the first data. Beside
/// the page all results stand in files.
fn is_drawn(report: &Report, figure: &Figure) -> bool {
    let is_of = |name: &str| [", ", ": "].iter().any(|before| figure.title.contains(&format!("{before}{name}")));
    let is_of_other = report.inputs.iter().skip(1).any(|input| is_of(&input.name));
    !report.settings.quick || !figure.redraws.is_empty() && !is_of_other
}

fn section(report: &Report, experiment: &Head, openings: &[Opening], figures_before: &mut usize) -> Markup {
    let figures = report.figures_of(experiment.name);
    // What the page opened with is not drawn again.
    let is_above = |place: usize| openings.contains(&Opening { experiment: experiment.name, place });
    let is_below = |(place, figure): &(usize, &Figure)| !is_above(*place) && is_drawn(report, figure);
    let most = if report.settings.quick { QUICK_FIGURES } else { usize::MAX };
    let below: Vec<&Figure> =
        figures.iter().enumerate().filter(is_below).map(|(_, figure)| figure).take(most).collect();
    let has_above = (0..figures.len()).any(is_above);
    let advice = report.advice_of(experiment.name);
    html! {
        section id=(experiment.name) {
            h2 { (experiment.title) }
            p.about {
                code { (experiment.name) }
                @if !experiment.reproduces.is_empty() { " · repeats " (experiment.reproduces.join("; ")) }
            }
            @if !advice.is_empty() {
                ul.advice { @for sentence in advice { li { (shown(sentence)) } } }
            }
            (failed(report, experiment))
            @if has_above {
                p.about { "One of its figures stands at the " a href="#opening" { "top of the page" } "." }
            }
            @if !below.is_empty() {
                div.figures {
                    @for figure in below {
                        @let () = *figures_before += 1;
                        (drawn(figure, *figures_before, &Colours::of(figure, figures)))
                    }
                }
            }
            (table::tables(report, experiment))
        }
    }
}

fn failed(report: &Report, experiment: &Head) -> Markup {
    let failed: Vec<&Finding> = report
        .findings
        .iter()
        .filter(|finding| finding.experiment == experiment.name && finding.wrong.is_some())
        .collect();
    html! {
        @if !failed.is_empty() {
            div.bad {
                p { strong { "✗ " (failed.len()) @if failed.len() == 1 { " result" } @else { " results" } " failed the check; no times are shown for them" } }
                ul {
                    @for finding in failed {
                        li {
                            @if !finding.data.is_empty() { (shown(&finding.data)) ": " }
                            (table::parameters(finding)) ": " (shown(finding.wrong.as_deref().unwrap_or_default()))
                        }
                    }
                }
            }
        }
    }
}

fn drawn(figure: &Figure, number: usize, colours: &Colours) -> Markup {
    let id = format!("figure-{number}");
    let drawing = plot::drawn(figure, &id, colours);
    html! {
        figure id=(id) class=[drawing.as_ref().filter(|drawing| drawing.times_usual > 1).map(|drawing| format!("high{}", drawing.times_usual))] {
            figcaption {
                strong { span { "Figure " (number) ". " } (shown(&figure.title)) }
                @if !figure.redraws.is_empty() { " " small { "redraws " (shown(&figure.redraws)) } }
            }
            @match drawing {
                Some(drawing) => {
                    @if !drawing.keys.is_empty() {
                        ul.keys { @for key in &drawing.keys { li { (key.html()) } } }
                    }
                    (drawing.svg)
                }
                None => p.empty { "No values to draw." }
            }
            @if !figure.caption.is_empty() { p { (shown(&figure.caption)) } }
        }
    }
}

#[cfg(test)]
mod tests;
