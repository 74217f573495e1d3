//! From what was seen to rows: medians over the rounds, and beside each stage what its work alone comes to.

use super::cases::{Case, Observed};
use super::threads::{MAIN, Times};
use super::works::{Alone, Work};
use serde_json::{Value, json};
use siltstone_testbed::bench::publish::{Row, rows_of, table_of};
use siltstone_testbed::statistics::{Spread, rounded};
use siltstone_testbed::table::mb_per_s;
use std::collections::BTreeSet;
use std::time::Duration;

/// Columns of the table of runs.
const RUNS: &str = "case read_bytes new_bytes packed_bytes seconds spread_percent cpu_seconds cores mb_per_s \
    peak_mib";
/// Columns of the table of stages.
const STAGES: &str = "case stage threads cpu_seconds queued_seconds disk_seconds share_of_wall bytes \
    mb_per_s work ceiling_mb_per_s to_ceiling";
/// Columns of the table of bounds.
const BOUNDS: &str = "case processor_seconds stage seconds mb_per_s cores";
/// Columns of the table of works.
const WORKS: &str = "case work bytes seconds mb_per_s";
/// The stages of a backup in the order in which data meets them.
const ORDER: [&str; 9] = [MAIN, "plan", "read", "hash", "select", "decode", "encode", "pack", "sync"];
/// Threads of any other name, unless some ran for this long.
const OTHERS: &str = "others";
const OTHERS_SECONDS_MAX: f64 = 0.01;
/// Time of threads after the last look at them.
const NOT_SEEN: &str = "not seen";
/// A thread that did so much of its stage's work did it alone: more threads would not share it.
const ALONE_SHARE: f64 = 0.9;
/// A stage that was busy for less has no speed: a few looks tell too little.
const BUSY_SECONDS_MIN: f64 = 0.02;

/// Which bytes a stage works on.
#[derive(Clone, Copy)]
enum Basis {
    Read,
    New,
    Packed,
    None,
}

/// Returns the works of a stage in this case, and which bytes they go over.
fn task_of(stage: &str, case: Case) -> (&'static [Work], Basis) {
    let is_plain = matches!(case, Case::First | Case::Next);
    match stage {
        "read" => (&[Work::Reading, Work::Cutting], Basis::Read),
        "hash" => (&[Work::Fingerprinting], Basis::Read),
        "silt" | "plan" if is_plain => (&[], Basis::Read),
        "encode" if is_plain => (&[Work::Compressing, Work::Checking], Basis::New),
        "encode" if case == Case::Maintain => (&[Work::Encoding], Basis::New),
        "pack" if is_plain => (&[Work::Sealing, Work::Writing], Basis::Packed),
        "sync" if case != Case::NextAndMigrate => (&[Work::Syncing], Basis::Packed),
        _ => (&[], Basis::None),
    }
}

/// The row of a case: medians over these rounds, at least one.
pub(super) fn run_row(data: &str, case: Case, rounds: &[Observed]) -> Row {
    let mut row = head("runs", data, case);
    let seconds = Spread::of(rounds.iter().map(|round| round.cost.wall.as_secs_f64()));
    let cpu = median(rounds, |round| round.cost.processor);
    let bytes = &rounds[rounds.len() - 1];
    let mut set = |key: &str, value: Value| row.insert(key.to_owned(), value);
    for (key, bytes) in
        [("read_bytes", bytes.read_bytes), ("new_bytes", bytes.new_bytes), ("packed_bytes", bytes.packed_bytes)]
    {
        set(key, json!((bytes > 0).then_some(bytes)));
    }
    set("seconds", json!(rounded(seconds.median, 3)));
    set("spread_percent", json!(rounded(seconds.percent(), 1)));
    set("cpu_seconds", json!(rounded(cpu, 3)));
    set("cores", json!(rounded(cpu / seconds.median, 2)));
    let rate = (bytes.read_bytes > 0).then(|| rounded(mb_per_s(bytes.read_bytes, seconds.median), 1));
    set("mb_per_s", json!(rate));
    let mib = rounds.iter().map(|round| round.cost.peak_bytes).max().unwrap_or_default() >> 20;
    set("peak_mib", json!(mib));
    row
}

/// The rows of a case's stages: medians over these rounds, beside what their works alone came to.
pub(super) fn stage_rows(data: &str, case: Case, rounds: &[Observed], alone: &[Alone]) -> Vec<Row> {
    let wall = median(rounds, |round| round.cost.wall);
    let names = names_of(rounds);
    let mut rows: Vec<Row> =
        names.iter().map(|stage| stage_row(head("stages", data, case), (stage, &names), case, rounds, alone)).collect();
    let mut rest = head("stages", data, case);
    let unseen = median(rounds, |round| {
        let seen = round.times.values().map(|times| times.run).sum();
        round.cost.processor.saturating_sub(seen)
    });
    rest.insert("stage".into(), json!(NOT_SEEN));
    rest.insert("cpu_seconds".into(), json!(rounded(unseen, 3)));
    rows.push(rest);
    for row in &mut rows {
        let share = row["cpu_seconds"].as_f64().map(|seconds| rounded(seconds / wall, 3));
        row.insert("share_of_wall".into(), json!(share));
    }
    rows
}

/// `stage` among all that have a row.
fn stage_row(mut row: Row, (stage, all): (&str, &[&str]), case: Case, rounds: &[Observed], alone: &[Alone]) -> Row {
    let times = |round: &Observed| times_of(round, stage, all);
    let of = |part: fn(Times) -> Duration| median(rounds, |round| part(times(round)));
    let (run, disk) = (of(|times| times.run), of(|times| times.disk));
    let (works, basis) = task_of(stage, case);
    let last = &rounds[rounds.len() - 1];
    let bytes = match basis {
        Basis::Read => last.read_bytes,
        Basis::New => last.new_bytes,
        Basis::Packed => last.packed_bytes,
        Basis::None => 0,
    };
    let is_told = bytes > 0 && run + disk >= BUSY_SECONDS_MIN;
    let rate = is_told.then(|| mb_per_s(bytes, run + disk));
    let ceiling = ceiling(works, alone);
    let names: Vec<&str> = works.iter().map(|work| work.name()).collect();
    let mut set = |key: &str, value: Value| row.insert(key.to_owned(), value);
    set("stage", json!(stage));
    set("threads", json!(rounds.iter().map(|round| times(round).threads).max()));
    set("cpu_seconds", json!(rounded(run, 3)));
    set("queued_seconds", json!(rounded(of(|times| times.queued), 3)));
    set("disk_seconds", json!(rounded(disk, 3)));
    set("bytes", json!((bytes > 0).then_some(bytes)));
    set("mb_per_s", json!(rate.map(|rate| rounded(rate, 1))));
    set("work", json!(names.join(", ")));
    set("ceiling_mb_per_s", json!(ceiling.map(|ceiling| rounded(ceiling, 1))));
    set("to_ceiling", json!(rate.zip(ceiling).map(|(rate, ceiling)| rounded(rate / ceiling, 3))));
    row
}

/// The stages that have a row.
fn names_of(rounds: &[Observed]) -> Vec<&str> {
    let is_known = |name: &str| ORDER.contains(&name);
    let seen: BTreeSet<&str> = rounds.iter().flat_map(|round| round.times.keys().map(String::as_str)).collect();
    let ran = |name: &str| rounds.iter().filter_map(|round| round.times.get(name)).map(|times| times.run).max();
    let is_long = |name: &str| ran(name).is_some_and(|run| run.as_secs_f64() > OTHERS_SECONDS_MAX);
    let mut names: Vec<&str> = ORDER.into_iter().filter(|name| seen.contains(name)).collect();
    names.extend(seen.iter().filter(|name| !is_known(name) && is_long(name)));
    if seen.iter().any(|name| !names.contains(name)) {
        names.push(OTHERS);
    }
    names
}

/// Returns the times of a stage, or of [`OTHERS`], which are not among `all`.
fn times_of(round: &Observed, stage: &str, all: &[&str]) -> Times {
    let is_of = |name: &str| name == stage || (stage == OTHERS && !all.contains(&name));
    let times = round.times.iter().filter(|(name, _)| is_of(name)).map(|(_, times)| *times);
    times.fold(Times::default(), Times::and)
}

/// Returns the speed of one thread that does these works one after another over the same bytes; `None` if one was not
/// measured.
fn ceiling(works: &[Work], alone: &[Alone]) -> Option<f64> {
    let seconds_per_mb = |work: &Work| {
        let alone = alone.iter().find(|alone| alone.work == *work && alone.bytes > 0)?;
        Some(1.0 / alone.mb_per_s())
    };
    let sum: f64 = works.iter().map(seconds_per_mb).collect::<Option<Vec<_>>>()?.iter().sum();
    (sum > 0.0).then(|| 1.0 / sum)
}

/// The row that tells how many cores a case can use: the stage of one thread that works longest sets the pace, however
/// many cores there are. What opening takes, as `opening` has it, is left out: it does not grow with the data. `None`
/// if no stage was busy for long enough.
pub(super) fn bound_row(data: &str, case: Case, rounds: &[Observed], opening: &[Observed]) -> Option<Row> {
    let of = |rounds: &[Observed], stage: &str, part: fn(Times) -> Duration| {
        median(rounds, |round| part(times_of(round, stage, &[])))
    };
    let alone = |stage: &str| {
        let seconds = of(rounds, stage, |times| times.longest);
        match stage {
            MAIN => Some(seconds - of(opening, stage, |times| times.longest)),
            _ => (seconds >= ALONE_SHARE * of(rounds, stage, |times| times.run)).then_some(seconds),
        }
    };
    let bounds = names_of(rounds).into_iter().filter(|stage| *stage != OTHERS);
    let bounds = bounds.filter_map(|stage| Some((stage, alone(stage)?)));
    let (stage, seconds) = bounds.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let of_data = median(rounds, |round| round.cost.processor) - median(opening, |round| round.cost.processor);
    let bytes = rounds[rounds.len() - 1].read_bytes;
    (seconds >= BUSY_SECONDS_MIN).then(|| {
        let mut row = head("bounds", data, case);
        let mut set = |key: &str, value: Value| row.insert(key.to_owned(), value);
        set("processor_seconds", json!(rounded(of_data, 3)));
        set("stage", json!(stage));
        set("seconds", json!(rounded(seconds, 3)));
        set("mb_per_s", json!((bytes > 0).then(|| rounded(mb_per_s(bytes, seconds), 1))));
        set("cores", json!(rounded(of_data / seconds, 1)));
        row
    })
}

/// The rows of works alone.
pub(super) fn work_rows(data: &str, case: Case, alone: &[Alone]) -> Vec<Row> {
    let row = |alone: &Alone| {
        let mut row = head("works", data, case);
        row.insert("work".into(), json!(alone.work.name()));
        row.insert("bytes".into(), json!(alone.bytes));
        row.insert("seconds".into(), json!(rounded(alone.time.as_secs_f64(), 4)));
        row.insert("mb_per_s".into(), json!(rounded(alone.mb_per_s(), 1)));
        row
    };
    alone.iter().filter(|alone| alone.bytes > 0).map(row).collect()
}

fn head(table: &str, data: &str, case: Case) -> Row {
    let mut row = Row::new();
    for (key, value) in [("table", table), ("data", data), ("case", case.name())] {
        row.insert(key.into(), json!(value));
    }
    row
}

fn median(rounds: &[Observed], of: impl Fn(&Observed) -> Duration) -> f64 {
    Spread::of(rounds.iter().map(|round| of(round).as_secs_f64())).median
}

/// The tables of one subject's rows.
pub(super) fn tables(data: &str, description: &str, rows: &[Row]) -> String {
    format!(
        "### {data}\n\n{description}\n\n{}\nThe stages of each:\n\n{}\n\
         The stage that sets the pace on many cores:\n\n{}\nThe work alone, on one thread:\n\n{}\n",
        table_of(RUNS, &rows_of(rows, "runs")),
        table_of(STAGES, &rows_of(rows, "stages")),
        table_of(BOUNDS, &rows_of(rows, "bounds")),
        table_of(WORKS, &rows_of(rows, "works"))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_testbed::program::Cost;
    use std::collections::BTreeMap;

    fn observed(read_run: u64) -> Observed {
        let ms = Duration::from_millis;
        let times = |run| Times { run: ms(run), queued: ms(10), disk: ms(100), threads: 2, longest: ms(run / 2) };
        Observed {
            cost: Cost { wall: ms(1000), processor: ms(3 * read_run + 59), peak_bytes: 3 << 20 },
            times: [("sync", read_run), ("read", read_run), ("new", read_run), ("ticker", 9)]
                .map(|(name, run)| (name.to_owned(), times(run)))
                .into(),
            read_bytes: 100_000_000,
            new_bytes: 10_000_000,
            packed_bytes: 0,
        }
    }

    fn alone(work: Work, rate: u64) -> Alone {
        Alone { work, bytes: rate * 1_000_000, time: Duration::from_secs(1) }
    }

    #[test]
    fn a_stage_stands_beside_the_sum_of_its_works() {
        let rounds = [observed(300), observed(100), observed(400)];
        let works = [alone(Work::Reading, 1000), alone(Work::Cutting, 1000), alone(Work::Syncing, 10)];
        let rows = stage_rows("d", Case::First, &rounds, &works);
        let names: Vec<&str> = rows.iter().filter_map(|row| row["stage"].as_str()).collect();
        assert_eq!(names, ["read", "sync", "new", OTHERS, NOT_SEEN]);
        let read = &rows[0];
        assert_eq!(
            (&read["cpu_seconds"], &read["share_of_wall"], &read["mb_per_s"]),
            (&json!(0.3), &json!(0.3), &json!(250.0))
        );
        assert_eq!((&read["ceiling_mb_per_s"], &read["to_ceiling"]), (&json!(500.0), &json!(0.5)));
        assert!(rows[1]["mb_per_s"].is_null() && rows[1]["to_ceiling"].is_null(), "nothing came to it");
        assert_eq!(rows[4]["cpu_seconds"], json!(0.05));
        let run = run_row("d", Case::First, &rounds);
        assert_eq!((&run["cores"], &run["peak_mib"], &run["packed_bytes"]), (&json!(0.96), &json!(3), &Value::Null));
        let short = stage_rows("d", Case::First, &[Observed { times: BTreeMap::new(), ..observed(1) }], &works);
        assert_eq!(short.len(), 1, "what was not seen has no row");
    }

    #[test]
    fn the_stage_of_one_thread_that_works_longest_sets_the_pace() {
        let ms = Duration::from_millis;
        let mut round = observed(1000);
        let one = |run| Times { run: ms(run), threads: 1, longest: ms(run), ..Times::default() };
        round.times.extend([("plan".to_owned(), one(400)), ("pack".to_owned(), one(300))]);
        round.times.insert(MAIN.into(), Times { longest: ms(450), ..one(900) });
        let mut opening = observed(0);
        assert!(bound_row("d", Case::Open, &[observed(0)], &[observed(0)]).is_none(), "nothing was busy");
        opening.times = [(MAIN.to_owned(), Times { longest: ms(100), ..one(200) })].into();
        let row = |round: &Observed| {
            let row = bound_row("d", Case::First, std::slice::from_ref(round), std::slice::from_ref(&opening)).unwrap();
            (row["stage"].clone(), row["seconds"].clone(), row["cores"].clone(), row["mb_per_s"].clone())
        };
        // Three times 1000 and 59 ms on cores, less the 59 of opening.
        assert_eq!(row(&round), (json!("plan"), json!(0.4), json!(7.5), json!(250.0)));
        round.times.insert(MAIN.into(), Times { longest: ms(600), ..one(900) });
        assert_eq!(row(&round), (json!(MAIN), json!(0.5), json!(6.0), json!(200.0)), "less its opening");
    }

    #[test]
    fn a_ceiling_needs_every_work() {
        assert_eq!(ceiling(&[Work::Reading, Work::Cutting], &[alone(Work::Reading, 9)]), None);
        assert_eq!(ceiling(&[], &[alone(Work::Reading, 9)]), None);
        assert_eq!(ceiling(&[Work::Reading], &[Alone { bytes: 0, ..alone(Work::Reading, 9) }]), None);
    }

    #[test]
    fn tables_hold_every_row_once() {
        let mut rows = stage_rows("d", Case::First, &[observed(100)], &[]);
        rows.push(run_row("d", Case::First, &[observed(100)]));
        rows.extend(work_rows("d", Case::First, &[alone(Work::Reading, 9)]));
        assert_eq!(tables("d", "what", &rows).matches("first backup").count(), 7);
    }
}
