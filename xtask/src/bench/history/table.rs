//! The tables of a history: what was measured, and how it stands against the others.

use serde_json::{Value, json};
use siltstone_testbed::bench::publish::{Row, table_of};
use siltstone_testbed::statistics::rounded;
use std::fmt;

/// Columns of the table of measurements, in the order of the question: how small, how fast in, how fast out, how fast
/// gone.
const MEASURED: &str = "config repository_bytes ratio backup_mb_per_s first_mb_per_s later_mb_per_s \
    restore_first_mb_per_s restore_middle_mb_per_s restore_last_mb_per_s restore_spread_percent forget_seconds \
    bytes_returned bytes_migrated peak_mib";
/// Columns of the table of comparisons.
const COMPARED: &str = "config bytes_to_chain bytes_to_restic bytes_to_borg bytes_to_peer first_to_restic \
    first_to_borg first_to_peer later_to_first restore_last_to_cp restore_last_to_peer";
/// Columns of the table of what was measured at rest.
const AT_REST: &str = "config repository_bytes at_rest_bytes at_rest_seconds at_rest_max_bytes at_rest_max_seconds \
    at_rest_peak_mib restore_last_mb_per_s restore_at_rest_mb_per_s restore_at_rest_max_mb_per_s at_rest_to_chain \
    at_rest_max_to_chain";
/// Name of the default configuration, which is held against what is wanted.
const DEFAULT: &str = "reverse";
const WANTED: [(&str, Wanted); 6] = [
    ("bytes_to_chain", Wanted::AtMost(1.5)),
    ("bytes_to_peer", Wanted::AtMost(0.5)),
    ("first_to_peer", Wanted::AtLeast(3.0)),
    ("restore_last_to_cp", Wanted::AtLeast(0.5)),
    ("restore_last_to_peer", Wanted::AtLeast(3.0)),
    ("forget_seconds", Wanted::AtMost(1.0)),
];
/// Archives of releases are more alike than anything else.
const WANTED_OF_TARS: (&str, Wanted) = ("bytes_to_peer", Wanted::AtMost(0.25));
/// Rows that are not a configuration of `silt`.
pub(super) const CHAIN: &str = "zstd --patch-from";
/// Name of the chain that repositories at rest are held against.
pub(super) const CHAIN_AT_REST: &str = "zstd -19 --patch-from";
/// Name of the copy that restores are held against.
pub(super) const COPY: &str = "cp -r";
const RESTIC: &str = "restic";
const BORG: &str = "borg";
/// All peers that may have been measured.
const PEERS: [&str; 5] = [RESTIC, "restic:auto", BORG, "kopia", "rustic"];
const TARS: &str = "tars";

#[derive(Clone, Copy)]
enum Wanted {
    AtMost(f64),
    AtLeast(f64),
}

impl Wanted {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "at most {most}"),
            Self::AtLeast(least) => write!(f, "at least {least}"),
        }
    }
}

/// Adds the columns of [`COMPARED`] to the rows of one history: above 1 is larger, or faster, than what it is held
/// against.
pub(super) fn compare(rows: &mut [Row]) {
    let all = rows.to_vec();
    let of = |name: &str, key: &str| all.iter().find(|row| row["config"] == name).and_then(|row| number(row, key));
    let peers =
        |key: &str, better: fn(f64, f64) -> f64| PEERS.into_iter().filter_map(|name| of(name, key)).reduce(better);
    let (bytes, first, later, last) = ("repository_bytes", "first_mb_per_s", "later_mb_per_s", "restore_last_mb_per_s");
    for row in rows.iter_mut().filter(|row| ![CHAIN, CHAIN_AT_REST, COPY].iter().any(|name| row["config"] == *name)) {
        let ratios = [
            ("bytes_to_chain", number(row, bytes), of(CHAIN, bytes)),
            ("at_rest_to_chain", number(row, "at_rest_bytes"), of(CHAIN_AT_REST, bytes)),
            ("at_rest_max_to_chain", number(row, "at_rest_max_bytes"), of(CHAIN_AT_REST, bytes)),
            ("bytes_to_restic", number(row, bytes), of(RESTIC, bytes)),
            ("bytes_to_borg", number(row, bytes), of(BORG, bytes)),
            ("bytes_to_peer", number(row, bytes), peers(bytes, f64::min)),
            ("first_to_restic", number(row, first), of(RESTIC, first)),
            ("first_to_borg", number(row, first), of(BORG, first)),
            ("first_to_peer", number(row, first), peers(first, f64::max)),
            ("later_to_first", number(row, later), number(row, first)),
            ("restore_last_to_peer", number(row, last), peers(last, f64::max)),
        ];
        for (key, own, other) in ratios {
            let ratio = own.zip(other).map(|(own, other)| rounded(own / other, 3));
            row.insert(key.to_owned(), json!(ratio));
        }
    }
}

fn number(row: &Row, key: &str) -> Option<f64> {
    row.get(key).and_then(Value::as_f64)
}

/// The tables of one history, under its name.
pub(super) fn tables(data: &str, description: &str, rows: &[Row]) -> String {
    let compared: Vec<Row> = rows.iter().filter(|row| row.contains_key("bytes_to_chain")).cloned().collect();
    format!(
        "### {data}\n\n{description}\n\n{}\nAgainst the others:\n\n{}\n{}{}\n",
        table_of(MEASURED, rows),
        table_of(COMPARED, &compared),
        at_rest(rows),
        verdict(data, rows)
    )
}

/// Returns the table of what was measured at rest; nothing if nothing was.
fn at_rest(rows: &[Row]) -> String {
    let is_told = |row: &&Row| number(row, "at_rest_bytes").is_some() || row["config"] == CHAIN_AT_REST;
    let told: Vec<Row> = rows.iter().filter(is_told).cloned().collect();
    if told.is_empty() { String::new() } else { format!("At rest:\n\n{}\n", table_of(AT_REST, &told)) }
}

/// Returns what is wanted of the default configuration, a line each; nothing if it took no part.
fn verdict(data: &str, rows: &[Row]) -> String {
    let Some(row) = rows.iter().find(|row| row["config"] == DEFAULT) else { return String::new() };
    let of_tars = (data == TARS).then_some(WANTED_OF_TARS);
    let line = |(key, wanted): (&str, Wanted)| {
        let wanted = of_tars.filter(|(of, _)| *of == key).map_or(wanted, |(_, wanted)| wanted);
        match number(row, key) {
            None => format!("- `{key}`: {wanted}; not measured\n"),
            Some(value) if wanted.is_met_by(value) => format!("- `{key}`: {wanted}; it is {value}\n"),
            Some(value) => format!("- `{key}`: {wanted}; **missed**: it is {value}\n"),
        }
    };
    let lines: String = WANTED.into_iter().map(line).collect();
    format!("Wanted of `{DEFAULT}`:\n\n{lines}")
}

#[cfg(test)]
mod tests {
    use super::super::outcome::head;
    use super::*;

    fn row(name: &str, bytes: u64, rate: f64) -> Row {
        let mut row = head("history", "d", name);
        row.insert("repository_bytes".into(), json!(bytes));
        for key in ["first_mb_per_s", "later_mb_per_s", "restore_last_mb_per_s"] {
            row.insert(key.into(), json!(rate));
        }
        row
    }

    #[test]
    fn ratios_stand_against_the_right_rows() {
        let mut rows = vec![row("reverse", 50, 300.0), row("restic", 100, 100.0), row("borg", 80, 60.0)];
        rows.extend([row(CHAIN, 40, 1.0), row(COPY, 0, 600.0)]);
        compare(&mut rows);
        let of = |key: &str| rows[0][key].as_f64().unwrap();
        assert_eq!((of("bytes_to_chain"), of("bytes_to_restic"), of("bytes_to_borg")), (1.25, 0.5, 0.625));
        assert_eq!((of("first_to_restic"), of("first_to_borg"), of("later_to_first")), (3.0, 5.0, 1.0));
        assert_eq!((of("bytes_to_peer"), of("first_to_peer"), of("restore_last_to_peer")), (0.625, 3.0, 3.0));
        assert!(!rows[3].contains_key("bytes_to_chain"));
        assert_eq!(tables("d", "what", &rows).matches("| reverse").count(), 2);
    }

    #[test]
    fn what_is_missed_is_said() {
        let mut rows = vec![row("reverse", 40, 300.0), row("restic", 100, 100.0), row("borg", 200, 60.0)];
        compare(&mut rows);
        rows[0].insert("forget_seconds".into(), json!(1.5));
        let said = verdict("openssl", &rows);
        assert_eq!(said.matches("missed").count(), 1, "{said}");
        assert!(said.contains("`bytes_to_peer`: at most 0.5; it is 0.4\n"), "{said}");
        assert!(said.contains("`bytes_to_chain`: at most 1.5; not measured"), "{said}");
        assert!(verdict(TARS, &rows).contains("`bytes_to_peer`: at most 0.25; **missed**: it is 0.4"));
        assert!(verdict("openssl", &rows[1..]).is_empty());
    }

    #[test]
    fn what_rests_stands_beside_the_deeper_chain() {
        let mut rows = vec![row("reverse", 50, 300.0), row("restic", 100, 100.0), row(CHAIN_AT_REST, 30, 1.0)];
        assert!(!tables("d", "what", &rows[..2]).contains("At rest"));
        rows[0].insert("at_rest_bytes".into(), json!(45));
        compare(&mut rows);
        assert_eq!(rows[0]["at_rest_to_chain"], 1.5);
        let rests = at_rest(&rows);
        assert!(rests.contains(CHAIN_AT_REST) && !rests.contains("restic"), "{rests}");
    }

    #[test]
    fn what_is_not_there_is_not_compared() {
        let mut rows = vec![row("off", 50, 300.0)];
        compare(&mut rows);
        assert!(rows[0]["bytes_to_chain"].is_null());
    }
}
