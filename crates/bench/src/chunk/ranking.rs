//! From savings to the question which chunker should be the default: tables per data, and a summary over all of them.

use super::savings::{Point, TARGETS};
use serde_json::{Value, json};
use siltstone_chunk::Isa;
use siltstone_lab::chunk::cuts::Cuts;
use siltstone_lab::chunk::method::YARDSTICKS;
use siltstone_testbed::bench::publish::{Row, table_of};
use siltstone_testbed::statistics::{geometric_mean, rounded};
use siltstone_testbed::table::{Table, as_float};
use std::fmt::Write as _;

/// All that was measured.
#[derive(Default)]
pub(super) struct Ranking {
    fields: Vec<Field>,
}

/// The methods on one set of data at one target.
struct Field {
    data: String,
    target_bytes: u32,
    points: Vec<Point>,
}

impl Ranking {
    /// Adds what was measured on one set of data.
    pub(super) fn add(&mut self, data: &str, points: &[Point]) {
        for target_bytes in TARGETS {
            let points = points.iter().copied().filter(|point| point.target_bytes == target_bytes).collect();
            self.fields.push(Field { data: data.to_owned(), target_bytes, points });
        }
    }

    /// One flat object for each method, data and target; then one for each method.
    pub(super) fn rows(&self) -> Vec<Row> {
        let points = self.fields.iter().flat_map(|field| field.points.iter().map(|point| field.row(point)));
        points.chain(self.summary_rows()).collect()
    }

    /// The tables, with headings.
    pub(super) fn tables(&self) -> String {
        let mut text = String::new();
        for fields in self.fields.chunks(TARGETS.len()) {
            let _ = write!(text, "\n### {}: savings at equal real averages\n\n{}", fields[0].data, of_data(fields));
        }
        let _ = write!(
            text,
            "\n### All data and averages together\n\n{}",
            table_of(Summary::COLUMNS, &self.summary_rows())
        );
        text
    }

    /// One for each method, those that store least first.
    fn summary_rows(&self) -> Vec<Row> {
        let points = self.fields.first().map_or(&[][..], |field| &field.points);
        let mut summaries: Vec<Summary> = points.iter().map(|point| self.summary(point.method.name())).collect();
        summaries.sort_by(|one, other| one.order().total_cmp(&other.order()));
        summaries.iter().map(Summary::row).collect()
    }

    fn summary(&self, algorithm: &'static str) -> Summary {
        let of_each = |value: &dyn Fn(&Field, &Point) -> Option<f64>| -> Vec<f64> {
            let point = |field: &Field| field.point(algorithm).and_then(|point| value(field, point));
            self.fields.iter().filter_map(point).collect()
        };
        let stored = of_each(&Field::stored);
        let against = YARDSTICKS.map(|name| of_each(&|field, point| field.against(name, point)));
        let ranks = of_each(&|field, point| field.rank(point).map(|rank| as_float(rank as u64)));
        Summary {
            algorithm,
            fields: self.fields.len(),
            mean_rank: ranks.iter().sum::<f64>() / as_float(ranks.len().max(1) as u64),
            stored,
            against,
        }
    }
}

impl Field {
    fn point(&self, algorithm: &str) -> Option<&Point> {
        self.points.iter().find(|point| point.method.name() == algorithm)
    }

    /// Those that can be compared, for they reached the average.
    fn reached(&self) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(|point| point.is_reached)
    }

    /// Bytes stored, against those of the method that stores least.
    fn stored(&self, point: &Point) -> Option<f64> {
        let least = self.reached().map(|other| stored_share(&other.cuts)).min_by(f64::total_cmp)?;
        point.is_reached.then(|| stored_share(&point.cuts) / least)
    }

    /// Bytes stored, against those of a yardstick: above 1 is worse.
    fn against(&self, yardstick: &str, point: &Point) -> Option<f64> {
        let yardstick = self.point(yardstick).filter(|other| other.is_reached)?;
        point.is_reached.then(|| stored_share(&point.cuts) / stored_share(&yardstick.cuts))
    }

    /// 1 for the one that stores least. Methods with the same cuts count once: several rows are the same algorithm,
    /// found in another way.
    fn rank(&self, point: &Point) -> Option<usize> {
        let own = stored_share(&point.cuts);
        let mut better: Vec<f64> =
            self.reached().map(|other| stored_share(&other.cuts)).filter(|other| *other < own).collect();
        better.sort_by(f64::total_cmp);
        better.dedup();
        point.is_reached.then_some(better.len() + 1)
    }

    fn row(&self, point: &Point) -> Row {
        let mut row = Row::new();
        let mut set = |key: &str, value: Value| row.insert(key.to_owned(), value);
        let optional = |value: Option<f64>| json!(value.map(|value| rounded(value, 4)));
        set("table", json!("savings"));
        set("data", json!(self.data));
        set("target_bytes", json!(self.target_bytes));
        set("algorithm", json!(point.method.name()));
        set("isa", json!(point.method.isa_name(Isa::best())));
        set("expected_bytes", json!(point.expected_bytes));
        set("average_bytes", json!(rounded(point.cuts.average(), 1)));
        set("average_reached", json!(point.is_reached));
        set("savings", json!(rounded(point.cuts.savings(), 5)));
        set("keys", json!(point.keys));
        set("key_spread", optional(point.key_spread));
        set("unique_bytes", json!(point.cuts.unique_bytes / point.keys));
        set("logical_bytes", json!(point.cuts.bytes / point.keys));
        set("rank", json!(self.rank(point)));
        set("stored_to_best", optional(self.stored(point)));
        set("stored_to_fastcdc", optional(self.against(YARDSTICKS[0], point)));
        set("stored_to_crate", optional(self.against(YARDSTICKS[1], point)));
        set("deviation_bytes", json!(rounded(point.cuts.deviation(), 1)));
        set("low_entropy_share", json!(rounded(point.cuts.low_entropy_share(), 5)));
        row
    }

    /// Savings; the best marked with a star, and with its average where that is not the wanted one.
    fn savings_cell(&self, point: &Point) -> String {
        let savings = format!("{:.4}", point.cuts.savings());
        match self.rank(point) {
            Some(1) => savings + " *",
            Some(_) => savings,
            None => format!("{savings} at {:.0}", point.cuts.average()),
        }
    }
}

/// One set of data at all targets.
fn of_data(fields: &[Field]) -> Table {
    let mut table = Table::new([
        "algorithm",
        "saved, 4 KiB",
        "8 KiB",
        "16 KiB",
        "stored to best, 4 KiB",
        "8 KiB",
        "16 KiB",
        "deviation / average, 8 KiB",
        "low-entropy share, 8 KiB",
        "key spread, 8 KiB",
    ]);
    for point in &fields[0].points {
        let name = point.method.name();
        let cells = |cell: &dyn Fn(&Field, &Point) -> String| -> Vec<String> {
            fields.iter().map(|field| field.point(name).map_or(String::new(), |point| cell(field, point))).collect()
        };
        let mut row = vec![name.to_owned()];
        row.extend(cells(&Field::savings_cell));
        row.extend(cells(&|field, point| field.stored(point).map_or(String::new(), |stored| format!("{stored:.3}"))));
        let middle = fields[fields.len() / 2].point(name);
        let of_middle = |value: &dyn Fn(&Cuts) -> f64, digits: usize| {
            middle.map_or(String::new(), |point| format!("{:.digits$}", value(&point.cuts)))
        };
        row.push(of_middle(&|cuts| cuts.deviation() / cuts.average(), 2));
        row.push(of_middle(&Cuts::low_entropy_share, 4));
        let key_spread = middle.and_then(|point| point.key_spread);
        row.push(key_spread.map_or(String::new(), |spread| format!("{spread:.4}")));
        table.row(row);
    }
    table
}

/// One method over all data and targets, as far as it reached the averages.
struct Summary {
    algorithm: &'static str,
    fields: usize,
    mean_rank: f64,
    /// Bytes stored against those of the best, of each field.
    stored: Vec<f64>,
    /// Ratios to the yardsticks.
    against: [Vec<f64>; 2],
}

impl Summary {
    const COLUMNS: &'static str = "algorithm compared mean_rank stored_to_best_mean stored_to_best_worst \
        stored_to_fastcdc_mean stored_to_fastcdc_worst stored_to_crate_mean stored_to_crate_worst";

    /// The less is stored the earlier; what was never compared comes last.
    fn order(&self) -> f64 {
        if self.stored.is_empty() { f64::INFINITY } else { geometric_mean(&self.stored) }
    }

    fn row(&self) -> Row {
        let mut row = Row::new();
        let mut set = |key: &str, value: Value| row.insert(key.to_owned(), value);
        let compared = self.stored.len();
        set("table", json!("summary"));
        set("algorithm", json!(self.algorithm));
        set("compared", json!(format!("{compared} of {}", self.fields)));
        set("mean_rank", json!((compared > 0).then(|| rounded(self.mean_rank, 2))));
        for (name, ratios) in
            ["best", "fastcdc", "crate"].iter().zip([&self.stored, &self.against[0], &self.against[1]])
        {
            let some = (!ratios.is_empty()).then_some(ratios);
            set(&format!("stored_to_{name}_mean"), json!(some.map(|ratios| rounded(geometric_mean(ratios), 4))));
            set(&format!("stored_to_{name}_worst"), json!(some.map(|ratios| rounded(largest(ratios), 4))));
        }
        row
    }
}

/// The share of the data that is stored.
fn stored_share(cuts: &Cuts) -> f64 {
    1.0 - cuts.savings()
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_lab::chunk::method::Method;

    fn point(method: Method, target_bytes: u32, unique_bytes: u64, is_reached: bool) -> Point {
        let cuts = Cuts { bytes: 1000, unique_bytes, ..Cuts::default() };
        Point { method, target_bytes, expected_bytes: target_bytes, cuts, keys: 1, key_spread: None, is_reached }
    }

    fn ranking() -> Ranking {
        let own = Method::all().next().unwrap();
        let mut ranking = Ranking::default();
        for (data, unique) in [("one", 100), ("two", 400)] {
            let points: Vec<Point> = TARGETS
                .into_iter()
                .flat_map(|target| {
                    [
                        point(own, target, unique, true),
                        point(Method::Fastcdc, target, 200, true),
                        point(Method::Gearhash, target, 50, false),
                    ]
                })
                .collect();
            ranking.add(data, &points);
        }
        ranking
    }

    #[test]
    fn ranks_only_what_reached_the_average() {
        let rows = ranking().rows();
        let of = |data: &str, algorithm: &str| {
            let same = |row: &&Row| row["data"] == data && row["algorithm"] == algorithm && row["target_bytes"] == 8192;
            rows.iter().filter(|row| row["table"] == "savings").find(same).unwrap()
        };
        let own = Method::all().next().unwrap().name();
        assert_eq!((&of("one", own)["rank"], &of("one", own)["stored_to_crate"]), (&json!(1), &json!(0.5)));
        assert_eq!((&of("two", own)["rank"], &of("two", own)["stored_to_best"]), (&json!(2), &json!(2.0)));
        assert_eq!(of("one", "crate:gearhash")["rank"], Value::Null);
        assert_eq!(of("one", own)["savings"], 0.9);
    }

    #[test]
    fn the_summary_weighs_all_data_alike() {
        let ranking = ranking();
        let own = ranking.summary(Method::all().next().unwrap().name());
        assert!((own.order() - 2_f64.sqrt()).abs() < 1e-9 && (own.mean_rank - 1.5).abs() < 1e-9);
        let row = own.row();
        assert_eq!((&row["compared"], &row["stored_to_crate_worst"]), (&json!("6 of 6"), &json!(2.0)));
        assert!(Summary::COLUMNS.split(' ').all(|column| row.contains_key(column)));
        assert!(ranking.tables().contains("| 0.9500 at 1000 |"), "{}", ranking.tables());
    }
}
