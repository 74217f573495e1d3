//! Tables as aligned Markdown, readable both on a terminal and in a record; and numbers as people read them.

use std::fmt;

/// A table under construction.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column names.
    pub fn new(columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { rows: vec![columns.into_iter().map(Into::into).collect()] }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has not a cell for every column.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.rows[0].len(), "a cell for every column");
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let numeric: Vec<bool> = (0..columns).map(|column| self.is_numeric(column)).collect();
        for (number, row) in self.rows.iter().enumerate() {
            for ((cell, &width), &numeric) in row.iter().zip(&widths).zip(&numeric) {
                if numeric {
                    write!(f, "| {cell:>width$} ")?;
                } else {
                    write!(f, "| {cell:<width$} ")?;
                }
            }
            writeln!(f, "|")?;
            if number == 0 {
                for (&width, &numeric) in widths.iter().zip(&numeric) {
                    write!(f, "|{}{}", "-".repeat(width + 1), if numeric { ":" } else { "-" })?;
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

impl Table {
    /// Tells whether all filled cells of a column are numbers: such columns stand to the right.
    fn is_numeric(&self, column: usize) -> bool {
        let mut cells =
            self.rows[1..].iter().map(|row| row[column].as_str()).filter(|cell| !cell.is_empty()).peekable();
        cells.peek().is_some()
            && cells.all(|cell| cell.trim_start_matches('-').starts_with(|first: char| first.is_ascii_digit()))
    }
}

/// Bytes in powers of ten, as rates and sizes of data are given: `1.23 GB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut value = as_float(count);
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 99.95 { 0 } else { 1 + usize::from(value < 9.995) };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// A count as a floating-point number; counts beyond 2^53 lose their last digits, which no table shows.
#[allow(clippy::cast_precision_loss)]
pub fn as_float(count: u64) -> f64 {
    count as f64
}

/// Millions of bytes per second.
pub fn mb_per_s(count: u64, seconds: f64) -> f64 {
    as_float(count) / 1e6 / seconds.max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["tool", "bytes"]);
        table.row(vec!["one".into(), "7".into()]);
        table.row(vec!["another".into(), "1234567".into()]);
        let expected = "\
| tool    |   bytes |
|---------|--------:|
| one     |       7 |
| another | 1234567 |
";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn sizes_keep_three_figures() {
        let shown: Vec<String> = [0, 999, 1000, 12_345, 123_456, 999_999, 1_234_567_890].map(bytes).into();
        assert_eq!(shown, ["0 B", "999 B", "1.00 kB", "12.3 kB", "123 kB", "1.00 MB", "1.23 GB"]);
    }
}
