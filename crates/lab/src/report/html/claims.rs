//! Claims of the papers, beside what was found.

use super::table;
use crate::claims::Judged;
use crate::report::Report;
use crate::report::plot::text::shown;
use maud::{Markup, html};

/// All claims that the run could judge.
pub(super) fn section(report: &Report) -> Markup {
    let claims = report.claims();
    html! {
        @if !claims.is_empty() {
            section id="claims" {
                h2 { "What the papers say" }
                p.about {
                    "Ratios of medians of this run; of several, their geometric mean and ends, then on each data set; where one of them is 0 or infinite, "
                    "the lower median. ✓ agrees: within 25 % of the paper's range; ≈ same order, by more or less than that; ✗ differs; ? not decided: not "
                    "every round alone comes to the same. Data and machine are others than the papers'."
                }
                @for of_paper in claims.chunk_by(|one, other| one.claim.paper == other.claim.paper) {
                    @if let Some(first) = of_paper.first() {
                        h3 { (first.claim.paper) }
                        (table::boxed(first.claim.paper, &rows(of_paper)))
                    }
                }
            }
        }
    }
}

fn rows(claims: &[Judged]) -> Markup {
    html! {
        table {
            thead { tr { th scope="col" { "Claim" } th.l scope="col" { "Paper" } th.l scope="col" { "Here" } } }
            tbody {
                @for judged in claims {
                    tr {
                        th.long { (judged.claim.says) br; small { (judged.claim.place) ": " (shown(&judged.claim.compared().replace('`', ""))) } }
                        td.wrap { (judged.claim.figure) }
                        td.wrap {
                            (judged.verdict().mark()) " " (judged.verdict().text()) br; (judged.ours.text())
                            @if judged.by_data.len() > 1 { br; small { (shown(&judged.by_data_text())) } }
                        }
                    }
                }
            }
        }
    }
}
