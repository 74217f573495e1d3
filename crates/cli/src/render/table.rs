//! Tables as restic prints them: columns two spaces apart, rules above and below, cells that may hold several lines.

use std::fmt;

/// Rows under headings, with a line below.
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Vec<String>>>,
    footer: String,
}

impl Table {
    /// An empty table. A heading padded with spaces gives its column that width at least.
    pub(crate) fn new(headings: Vec<&'static str>) -> Self {
        Self { headings, rows: Vec::new(), footer: String::new() }
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
        let width = |text: &str| text.chars().count();
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).flatten();
            cells.map(|line| width(line)).max().unwrap_or(0)
        };
        self.headings.iter().enumerate().map(|(column, heading)| width(heading).max(widest(column))).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        let rule = "-".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1));
        let line = |cells: Vec<&str>| {
            let padded = cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        writeln!(f, "{}\n{rule}", line(self.headings.clone()))?;
        for row in &self.rows {
            let lines = row.iter().map(Vec::len).max().unwrap_or(0).max(1);
            for at in 0..lines {
                writeln!(f, "{}", line(row.iter().map(|cell| cell.get(at).map_or("", String::as_str)).collect()))?;
            }
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
        let mut table = Table::new(vec!["ID", "Tags  ", "Paths"]);
        let lines = |text: &str| text.split(',').map(str::to_owned).collect();
        table.row(vec![lines("a1"), lines("x,yy"), lines("/one")]);
        table.row(vec![lines("b22"), lines(""), lines("/two,/three")]);
        table.footer("2 snapshots".into());
        let expected = "\
ID   Tags    Paths
-------------------
a1   x       /one
     yy
b22          /two
             /three
-------------------
2 snapshots";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn an_empty_table_has_its_headings() {
        assert_eq!(Table::new(vec!["ID"]).to_string(), "ID\n--\n--");
    }
}
