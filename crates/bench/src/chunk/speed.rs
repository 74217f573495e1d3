//! Speeds: every chunker in every form, the hashes, and the floors beneath them, on the same bytes in memory, one
//! thread. All rows once, then all again, so that a slow moment of the machine meets all of them. What every single run
//! found is compared with what the scalar form finds; a row that ever differs shows no time.

use anyhow::Result;
use serde_json::{Value, json};
use siltstone_chunk::Isa;
use siltstone_lab::chunk::cuts::{Cuts, Digest};
use siltstone_lab::chunk::fingerprints::{CHUNK_BYTES, Fingerprint};
use siltstone_lab::chunk::floor::Floor;
use siltstone_lab::chunk::forms::{gb_per_s, timed};
use siltstone_lab::chunk::method::Method;
use siltstone_testbed::bench::publish::{Row, shown, table_of};
use siltstone_testbed::data::Data;
use siltstone_testbed::statistics::{Spread, rounded};
use siltstone_testbed::table::Table;
use std::fmt::Write as _;

/// Expected size of a chunk, bytes.
const EXPECTED_BYTES: u32 = 8 << 10;
/// The row that the column `share_of_read` divides by.
const READ: &str = Floor::Read.name();
/// The row that the column `ratio_to_fastcdc` divides by.
const FASTCDC: Method = Method::Fastcdc;

/// Columns of the table of one set of data.
const COLUMNS: &str = "algorithm isa gb_per_s spread_percent share_of_read ratio_to_fastcdc expected_bytes \
    average_bytes deviation_bytes savings low_entropy_share";

/// Function that is timed: gets the data and as much memory to write to.
type Work = Box<dyn Fn(&[u8], &mut [u8]) -> Digest>;

/// A row while it is measured.
struct Runner {
    algorithm: &'static str,
    isa: &'static str,
    work: Work,
    /// Digest that every run must find.
    truth: Digest,
    /// Cuts, where it is a chunker.
    cuts: Option<Cuts>,
    expected_bytes: Option<u32>,
    seconds: Vec<f64>,
    is_wrong: bool,
}

/// The rows for this data, and the names of those that found something else than they should.
pub(super) fn measure(data: &Data, methods: &[Method], rounds: u64) -> Result<(Vec<Row>, Vec<String>)> {
    let bytes = &data.bytes;
    // Written to once, so that its pages are there.
    let mut scratch = vec![1; bytes.len()];
    let mut runners = Vec::from(floors(bytes));
    for method in methods {
        eprintln!("{}: what {} finds", data.name, method.name());
        runners.extend(chunkers(*method, bytes)?);
    }
    runners.extend(Fingerprint::all().map(|fingerprint| hasher(fingerprint, bytes)));
    for round in 0..rounds {
        eprintln!("{}: round {} of {rounds}, {} rows", data.name, round + 1, runners.len());
        for runner in &mut runners {
            runner.run(bytes, &mut scratch);
        }
    }
    let wrong = runners.iter().filter(|runner| runner.is_wrong);
    let wrong = wrong.map(|runner| format!("{} on {}, {}", runner.algorithm, runner.isa, data.name)).collect();
    Ok((rows(&data.name, bytes.len(), &runners), wrong))
}

/// Reading and copying.
fn floors(data: &[u8]) -> [Runner; 2] {
    Floor::ALL.map(|floor| {
        let work: Work = Box::new(move |data, scratch| floor.run(data, scratch));
        Runner::new(floor.name(), floor.isa_name(), work, floor.truth(data))
    })
}

/// A method in all its forms; the truth is what the first of them, the scalar one, finds.
fn chunkers(method: Method, data: &[u8]) -> Result<Vec<Runner>> {
    let cuts = Cuts::of(&*method.chunker(EXPECTED_BYTES, Isa::SCALAR)?, data);
    let form = |isa| {
        let chunker = method.chunker(EXPECTED_BYTES, isa)?;
        let work: Work = Box::new(move |data, _| Digest::of(&*chunker, data));
        let runner = Runner::new(method.name(), method.isa_name(isa), work, cuts.digest);
        Ok(Runner { cuts: Some(cuts), expected_bytes: Some(EXPECTED_BYTES), ..runner })
    };
    method.isas().into_iter().map(form).collect()
}

fn hasher(fingerprint: Fingerprint, data: &[u8]) -> Runner {
    let truth = fingerprint.truth().run(data);
    let work: Work = Box::new(move |data, _| fingerprint.run(data));
    let runner = Runner::new(fingerprint.name(), fingerprint.isa_name(), work, truth);
    Runner { expected_bytes: u32::try_from(CHUNK_BYTES).ok(), ..runner }
}

impl Runner {
    fn new(algorithm: &'static str, isa: &'static str, work: Work, truth: Digest) -> Self {
        let (cuts, expected_bytes, seconds, is_wrong) = (None, None, Vec::new(), false);
        Self { algorithm, isa, work, truth, cuts, expected_bytes, seconds, is_wrong }
    }

    /// Adds one measurement, taken as the lab takes it.
    fn run(&mut self, data: &[u8], scratch: &mut [u8]) {
        if self.is_wrong {
            return;
        }
        let (seconds, found) = timed(data, |data| (self.work)(data, scratch));
        self.is_wrong = found != self.truth;
        self.seconds.push(seconds);
    }

    /// Median speed over so many bytes of data; `None` if what it found was wrong.
    fn gb_per_s(&self, data_bytes: usize) -> Option<f64> {
        let seconds = Spread::of(self.seconds.iter().copied());
        (!self.is_wrong).then(|| gb_per_s(data_bytes, seconds.median))
    }
}

fn rows(data: &str, data_bytes: usize, runners: &[Runner]) -> Vec<Row> {
    let speed_of = |name: &str| runners.iter().find(|runner| runner.algorithm == name)?.gb_per_s(data_bytes);
    let (read, fastcdc) = (speed_of(READ), speed_of(FASTCDC.name()));
    let row = |runner: &Runner| {
        let speed = runner.gb_per_s(data_bytes);
        let against = |other: Option<f64>| number(speed.zip(other).map(|(speed, other)| speed / other), 3);
        let cut = |value: fn(&Cuts) -> f64, digits| number(runner.cuts.as_ref().map(value), digits);
        let mut row = Row::new();
        let mut set = |key: &str, value: Value| row.insert(key.to_owned(), value);
        set("table", json!("speed"));
        set("data", json!(data));
        set("algorithm", json!(runner.algorithm));
        set("isa", json!(runner.isa));
        set("gb_per_s", number(speed, 2));
        let spread = speed.map(|_| Spread::of(runner.seconds.iter().copied()).percent());
        set("spread_percent", number(spread, 1));
        set("share_of_read", against(read));
        set("ratio_to_fastcdc", against(fastcdc));
        set("expected_bytes", json!(runner.expected_bytes));
        set("average_bytes", cut(Cuts::average, 1));
        set("deviation_bytes", cut(Cuts::deviation, 1));
        set("savings", cut(Cuts::savings, 4));
        set("low_entropy_share", cut(Cuts::low_entropy_share, 4));
        set("is_right", json!(!runner.is_wrong));
        row
    };
    runners.iter().map(row).collect()
}

/// Returns a summary of all data, then each data with every form.
pub(super) fn tables(rows: &[Row]) -> String {
    let fields: Vec<&[Row]> = rows.chunk_by(|one, other| one["data"] == other["data"]).collect();
    let mut text = format!("### Speed: every algorithm in its highest form\n\n{}", overview(&fields));
    for field in fields {
        let _ =
            write!(text, "\n### Speed: every form, {}\n\n{}", shown(field[0].get("data")), table_of(COLUMNS, field));
    }
    text
}

/// A line for each algorithm: its last form, which is the highest, on each set of data.
fn overview(fields: &[&[Row]]) -> Table {
    const SHOWN: [(&str, &str); 3] =
        [("gb_per_s", "GB/s"), ("share_of_read", "of read"), ("ratio_to_fastcdc", "to fastcdc")];
    let heading = |(_, title): &(&str, &str)| -> Vec<String> {
        fields.iter().map(|field| format!("{title}, {}", shown(field[0].get("data")))).collect()
    };
    let columns = ["algorithm", "isa"].map(str::to_owned).into_iter();
    let mut table = Table::new(columns.chain(SHOWN.iter().flat_map(heading)));
    for forms in fields.first().into_iter().flat_map(|field| field.chunk_by(same_algorithm)) {
        let Some(last) = forms.last() else { continue };
        let on = |field: &[Row], key: &str| shown(same_form(field, last).and_then(|row| row.get(key)));
        let mut cells = vec![shown(last.get("algorithm")), shown(last.get("isa"))];
        cells.extend(SHOWN.iter().flat_map(|(key, _)| fields.iter().map(move |field| on(field, key))));
        table.row(cells);
    }
    table
}

fn same_algorithm(one: &Row, other: &Row) -> bool {
    one["algorithm"] == other["algorithm"]
}

fn same_form<'r>(field: &'r [Row], form: &Row) -> Option<&'r Row> {
    field.iter().find(|row| same_algorithm(row, form) && row["isa"] == form["isa"])
}

fn number(value: Option<f64>, digits: i32) -> Value {
    json!(value.map(|value| rounded(value, digits)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_testbed::deterministic::Sequence;

    fn runner(algorithm: &'static str, seconds: f64, finds: u64) -> Runner {
        let work: Work = Box::new(move |_, _| Digest::of_number(finds));
        let mut runner = Runner::new(algorithm, "scalar", work, Digest::of_number(7));
        runner.run(&[1, 2], &mut [0, 0]);
        runner.seconds = vec![seconds];
        runner
    }

    #[test]
    fn speeds_are_divided_by_those_of_reading_and_of_the_crate() {
        let runners = [runner(READ, 0.1, 7), runner("crate:fastcdc", 0.4, 7), runner("ours", 0.2, 7)];
        let rows = rows("d", 1_000_000_000, &runners);
        assert_eq!(rows[2]["gb_per_s"], 5.0);
        assert_eq!(rows[2]["share_of_read"], 0.5);
        assert_eq!(rows[2]["ratio_to_fastcdc"], 2.0);
        assert!(COLUMNS.split(' ').all(|column| rows[2].contains_key(column)));
    }

    #[test]
    fn the_overview_has_a_line_for_each_algorithm_and_columns_for_each_data() {
        let runners = [runner(READ, 0.1, 7), runner("ours", 0.2, 7), runner("ours", 0.1, 7)];
        let both = [rows("one", 1_000_000_000, &runners), rows("two", 1_000_000_000, &runners)].concat();
        let text = tables(&both);
        assert!(text.contains("GB/s, one | GB/s, two"), "{text}");
        assert_eq!(text.matches("| ours").count(), 1 + 2 * 2, "{text}");
    }

    #[test]
    fn what_finds_something_else_has_no_time() {
        let rows = rows("d", 1, &[runner("broken", 1.0, 8)]);
        assert_eq!(rows[0]["gb_per_s"], Value::Null);
        assert_eq!(rows[0]["spread_percent"], Value::Null);
        assert_eq!(rows[0]["is_right"], false);
    }

    #[test]
    fn all_rows_are_measured_and_right() {
        let bytes = Sequence::new(4).bytes(300_000);
        let data = Data::single("d", String::new(), bytes);
        let methods = [Method::chosen(&["ae-max".into()]).unwrap(), vec![Method::Gearhash]].concat();
        // Debug builds are slow: one round, and the repetition is not what is tested.
        let (rows, wrong) = measure(&data, &methods, 1).unwrap();
        assert_eq!(wrong, Vec::<String>::new());
        assert!(rows.iter().all(|row| row["gb_per_s"].is_number()));
        assert_eq!(rows.iter().filter(|row| row["algorithm"] == "ae-max").count(), Isa::available().count());
    }
}
