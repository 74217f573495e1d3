//! The claims as Markdown, a table per paper; and a page of such tables read again, for the reasons that people wrote
//! beside what differs.
//!
//! ```text
//! | claim | where | compared | paper | ours | | why not |
//! ```

use super::{Judged, Verdict};
use std::fmt::Write as _;

/// Headings of the columns; the one without is the verdict.
const COLUMNS: &str = "| claim | where | compared | paper | ours | | why not |\n|---|---|---|---|---|---|---|\n";

/// Verdicts and reasons in the tables of a page.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Page {
    rows: Vec<Row>,
}

/// A claim as it stands in a page.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Row {
    paper: String,
    says: String,
    place: String,
    compared: String,
    figure: String,
    verdict: String,
    why: String,
}

impl Page {
    /// Reads the tables below headings that name papers; all else is passed over.
    pub fn read(text: &str) -> Self {
        let mut rows = Vec::new();
        let mut paper = "";
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                paper = heading.trim();
            }
            let [says, place, compared, figure, _, verdict, why] = cells(line)[..] else { continue };
            let is_head = says == "claim" || says.starts_with("---");
            if !is_head {
                let [paper, says, place, compared, figure, verdict, why] =
                    [paper, says, place, compared, figure, verdict, why].map(str::to_owned);
                rows.push(Row { paper, says, place, compared, figure, verdict, why });
            }
        }
        Self { rows }
    }

    fn row(&self, judged: &Judged) -> Option<&Row> {
        self.rows.iter().find(|row| row.paper == judged.claim.paper && row.says == cell(judged.claim.says))
    }

    fn why(&self, judged: &Judged) -> &str {
        self.row(judged).map_or("", |row| &row.why)
    }

    /// Returns what to look at when this page is made anew from a run: verdicts that are others than before, and what
    /// differs without a reason.
    pub fn to_look_at(&self, judged: &[Judged]) -> Vec<String> {
        let told = |judged: &Judged| {
            let (claim, verdict) = (judged.claim, judged.verdict());
            let before = self.row(judged).map(|row| row.verdict.as_str()).filter(|before| *before != verdict.text());
            let changed = before.map(|before| format!("was '{before}', is '{}'", verdict.text()));
            let needs_reason = verdict == Verdict::Differs && self.why(judged).is_empty();
            let missing = needs_reason.then(|| "differs, and no reason is given".to_owned());
            let told: Vec<String> = changed.into_iter().chain(missing).collect();
            (!told.is_empty()).then(|| format!("{}, '{}': {}", claim.paper, claim.says, told.join("; ")))
        };
        judged.iter().filter_map(told).collect()
    }
}

/// Cells of a row of a table; none if the line is not one.
fn cells(line: &str) -> Vec<&str> {
    let row = line.trim().strip_prefix('|').and_then(|row| row.strip_suffix('|'));
    let Some(row) = row else { return Vec::new() };
    let mut cells = Vec::new();
    let mut begin = 0;
    for (at, _) in row.match_indices('|').filter(|(at, _)| !row[..*at].ends_with('\\')) {
        cells.push(row[begin..at].trim());
        begin = at + 1;
    }
    cells.push(row[begin..].trim());
    cells
}

/// Text that stays one cell, and text.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace(['\n', '\r'], " ")
}

/// Says how many claims hold: `Of 50 claims 34 agree; 7 have the same order, 3 by more and 4 by less than the papers; 7
/// differ; 2 are not decided.`
pub fn tally(judged: &[Judged]) -> String {
    tally_of(Verdict::ALL.map(|verdict| judged.iter().filter(|judged| judged.verdict() == verdict).count()))
}

fn tally_of(counts: [usize; 6]) -> String {
    let [agree, more, less, differ, open, left] = counts;
    let left = if left > 0 { format!("; {left} could not be judged") } else { String::new() };
    format!(
        "Of {} claims {agree} agree; {} have the same order, {more} by more and {less} by less than the papers; {differ} differ; {open} are not decided{left}.",
        counts.iter().sum::<usize>(),
        more + less
    )
}

/// A table for each paper below its name, with the reasons that stand in `page`.
pub fn tables(judged: &[Judged], page: &Page) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    for of_paper in judged.chunk_by(|one, other| one.claim.paper == other.claim.paper) {
        let between = if text.is_empty() { "" } else { "\n" };
        let _ = write!(text, "{between}## {}\n\n{COLUMNS}", of_paper[0].claim.paper);
        for judged in of_paper {
            let [says, place, figure] = [judged.claim.says, judged.claim.place, judged.claim.figure].map(cell);
            let compared = judged.claim.compared();
            let by_data = judged.by_data_text();
            let by_data = if by_data.is_empty() { by_data } else { format!("<br>{}", cell(&by_data)) };
            let (ours, verdict, why) = (judged.ours.text(), judged.verdict().text(), page.why(judged));
            let _ =
                writeln!(text, "| {says} | {place} | {compared} | {figure} | {ours}{by_data} | {verdict} | {why} |");
        }
    }
    text
}

/// Claims about times in two runs, whose processors have these names.
pub fn side_by_side(processors: [String; 2], judged: [&[Judged]; 2]) -> String {
    let [one, other] = processors.map(|name| cell(&name));
    let mut text = format!("| claim | paper | {one} | | {other} | |\n|---|---|---|---|---|---|\n");
    let [ones, others] = judged;
    for (one, other) in ones.iter().zip(others).filter(|(one, _)| one.claim.measured.is_timed()) {
        let [paper, says, figure] = [one.claim.paper, one.claim.says, one.claim.figure].map(cell);
        let _ = write!(text, "| {paper}: {says} | {figure} |");
        for judged in [one, other] {
            let _ = write!(text, " {} | {} |", judged.ours.text(), judged.verdict().mark());
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::{all, judge};
    use super::*;

    /// The page, read when the test runs: words in it are no reason to compile anew.
    const REPRODUCTION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lab/README.md");

    #[test]
    fn the_page_has_every_claim_as_it_is_here_and_a_reason_where_it_differs() {
        let text = std::fs::read_to_string(REPRODUCTION).unwrap();
        let page = Page::read(&text);
        let known = Verdict::ALL.map(Verdict::text);
        let mut judged = judge(&[]).into_iter();
        for row in &page.rows {
            let claim = judged.next().unwrap_or_else(|| panic!("no claim of the program: {row:?}")).claim;
            let expected = [claim.paper, claim.says, claim.place, claim.figure];
            assert_eq!([&row.paper, &row.says, &row.place, &row.figure], expected);
            assert_eq!(row.compared, claim.compared());
            assert!(known.contains(&row.verdict.as_str()), "{row:?}");
            assert!(row.verdict != Verdict::Differs.text() || !row.why.is_empty(), "no reason: {row:?}");
        }
        assert!(judged.next().is_none(), "{} of {} claims stand in the page", page.rows.len(), all().count());
        let count = |verdict: &str| page.rows.iter().filter(|row| row.verdict == verdict).count();
        let tally = tally_of(known.map(count));
        assert!(text.contains(&tally), "the tally is: {tally}");
    }

    #[test]
    fn a_claim_is_known_by_its_words() {
        let mut words: Vec<(&str, &str)> = all().map(|claim| (claim.paper, claim.says)).collect();
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
    }

    #[test]
    fn reasons_outlast_a_page_made_anew() {
        let judged = judge(&[]);
        let first = tables(&judged, &Page::default());
        assert_eq!(Page::read(&first).rows.len(), judged.len());
        let reason = "Because of a \\| b.";
        let written = first.replace("| not judged |  |", &format!("| not judged | {reason} |"));
        let page = Page::read(&written);
        assert_eq!(page.rows[0].why, reason);
        let again = tables(&judged, &page);
        assert!(again == written && Page::read(&again) == page, "{again}");
        assert!(tally(&judged).ends_with(&format!("; {} could not be judged.", judged.len())));
    }

    #[test]
    fn claims_about_times_stand_side_by_side_and_are_no_rows_of_a_page() {
        let judged = judge(&[]);
        let text = side_by_side(["a | b".into(), "c".into()], [&judged, &judged]);
        let timed = judged.iter().filter(|judged| judged.claim.measured.is_timed()).count();
        assert!(timed > 0 && text.lines().count() == 2 + timed, "{text}");
        assert!(text.starts_with("| claim | paper | a \\| b | | c | |\n"), "{text}");
        assert_eq!(text.matches(" – |").count(), 2 * timed);
        assert_eq!(Page::read(&text), Page::default());
    }

    #[test]
    fn what_changed_is_told() {
        let judged = judge(&[]);
        let agreed = tables(&judged, &Page::default()).replace(Verdict::NotJudged.text(), Verdict::Agrees.text());
        let told = Page::read(&agreed).to_look_at(&judged);
        assert_eq!(told.len(), judged.len());
        assert!(told[0].ends_with("was 'agrees', is 'not judged'"), "{}", told[0]);
        assert!(Page::default().to_look_at(&judged).is_empty());
    }
}
