//! Tables as restic prints them: columns two spaces apart, rules above and below, cells that may hold several lines.
//! Widths are those of a terminal, where a Chinese character takes two places and an accent none. Where a width is
//! given, the widest of the columns that may be wrapped are, until the table fits.

use super::{longest_part, wrapped};
use std::fmt;
use unicode_width::UnicodeWidthStr;

/// Rows under headings, with a line below.
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Vec<String>>>,
    footer: String,
    /// Columns that may be wrapped, by their headings, and the width in which the table is to fit.
    wraps: &'static [&'static str],
    fits: Option<usize>,
}

/// The least width to which a column is wrapped. Words of up to the second are kept together, where there is room.
const WRAPPED_MIN: usize = 5;
const TOGETHER_MAX: usize = 20;

impl Table {
    /// An empty table. A heading may have several lines.
    pub(crate) fn new(headings: Vec<&'static str>) -> Self {
        Self { headings, rows: Vec::new(), footer: String::new(), wraps: &[], fits: None }
    }

    /// Fits the table into this width, if one is given, by wrapping the cells of the columns with these headings.
    pub(crate) fn fit(mut self, width: Option<usize>, wraps: &'static [&'static str]) -> Self {
        (self.fits, self.wraps) = (width, wraps);
        self
    }

    /// Adds a row: for each column the lines of its cell.
    pub(crate) fn row(&mut self, cells: Vec<Vec<String>>) {
        self.rows.push(cells);
    }

    /// The line below the table.
    pub(crate) fn footer(&mut self, text: String) {
        self.footer = text;
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).flatten();
            cells.map(|line| line.width()).max().unwrap_or(0)
        };
        let natural = self.headings.iter().enumerate();
        let natural = natural.map(|(column, heading)| heading_width(heading).max(widest(column))).collect();
        self.fitted(natural)
    }

    /// The widths, with those of columns that may be wrapped made narrower until all fit, as far as they can be.
    fn fitted(&self, mut widths: Vec<usize>) -> Vec<usize> {
        let Some(most) = self.fits else { return widths };
        let gaps = 2 * widths.len().saturating_sub(1);
        for together in [TOGETHER_MAX, WRAPPED_MIN] {
            let least: Vec<usize> = (0..widths.len()).map(|column| self.least(column, together)).collect();
            while widths.iter().sum::<usize>() + gaps > most {
                let may_shrink = widths.iter_mut().zip(&least).filter(|(width, least)| **width > **least);
                match may_shrink.map(|(width, _)| width).max() {
                    Some(widest) => *widest -= 1,
                    None => break,
                }
            }
        }
        widths
    }

    /// The least width of a column, if words of up to so many characters are kept together.
    fn least(&self, column: usize, together: usize) -> usize {
        if !self.wraps.contains(&self.headings[column]) {
            return usize::MAX;
        }
        let lines = self.rows.iter().filter_map(|row| row.get(column)).flatten();
        let longest = lines.map(|line| longest_part(line)).max().unwrap_or(0).min(together);
        longest.max(WRAPPED_MIN).max(heading_width(self.headings[column]))
    }
}

fn heading_width(heading: &str) -> usize {
    heading.lines().map(UnicodeWidthStr::width).max().unwrap_or(0)
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        let rule = "-".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1));
        let line = |cells: Vec<&str>| {
            let padded = cells.iter().zip(&widths).map(|(cell, width)| {
                let padding = " ".repeat(width.saturating_sub(cell.width()));
                format!("{cell}{padding}")
            });
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let mut write_row = |row: Vec<Vec<String>>| {
            let lines = row.iter().map(Vec::len).max().unwrap_or(0).max(1);
            (0..lines).try_for_each(|at| {
                writeln!(f, "{}", line(row.iter().map(|cell| cell.get(at).map_or("", String::as_str)).collect()))
            })
        };
        write_row(self.headings.iter().map(|heading| heading.lines().map(str::to_owned).collect()).collect())?;
        write_row(vec![vec![rule.clone()]])?;
        for row in &self.rows {
            let fitted = |(cell, width): (&Vec<String>, &usize)| -> Vec<String> {
                cell.iter().flat_map(|line| wrapped(line, *width)).collect()
            };
            write_row(row.iter().zip(&widths).map(fitted).collect())?;
        }
        f.write_str(&rule)?;
        if self.footer.is_empty() { Ok(()) } else { write!(f, "\n{}", self.footer) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_several_lines_align() {
        let mut table = Table::new(vec!["ID", "Tags", "Paths"]);
        let lines = |text: &str| text.split(',').map(str::to_owned).collect();
        table.row(vec![lines("a1"), lines("x,yy"), lines("/one")]);
        table.row(vec![lines("b22"), lines(""), lines("/two,/three")]);
        table.footer("2 snapshots".into());
        let expected = "\
ID   Tags  Paths
-----------------
a1   x     /one
     yy
b22        /two
           /three
-----------------
2 snapshots";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn wide_and_combining_characters_align() {
        let mut table = Table::new(vec!["Host", "Tags"]);
        for host in ["\u{4e2d}\u{6587}", "e\u{301}t\u{e9}", "plain"] {
            table.row(vec![vec![host.to_owned()], vec!["t".to_owned()]]);
        }
        let text = table.to_string();
        let rows: Vec<&str> = text.lines().skip(2).take(3).collect();
        assert_eq!(rows, ["\u{4e2d}\u{6587}   t", "e\u{301}t\u{e9}    t", "plain  t"]);
        assert!(text.lines().nth(1).is_some_and(|rule| rule.len() == 11), "{text}");
    }

    #[test]
    fn a_table_fits_the_terminal_and_loses_nothing() {
        let mut table = Table::new(vec!["ID", "Paths", "Size"]).fit(Some(30), &["Paths"]);
        table.row(vec![vec!["a1".into()], vec!["/home/me/photos/of/2026".into(), "/srv".into()], vec!["1 B".into()]]);
        let expected = "\
ID  Paths                 Size
------------------------------
a1  /home/me/photos/of/   1 B
    2026
    /srv
------------------------------";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn an_empty_table_has_its_headings() {
        assert_eq!(Table::new(vec!["ID"]).to_string(), "ID\n--\n--");
    }
}
