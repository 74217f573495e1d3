//! Cost and gain of parity, `cargo xtask bench parity`: repositories with no parity of data, 2, 5 and 10
//! percent are made of the same source, taking turns. Then one byte of every container of data is flipped, and the
//! newest snapshot is restored again: the files that do not come back stand beside the bytes and seconds.

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;
use siltstone_testbed::bench::publish::{Row, table_of};
use siltstone_testbed::bench::rounds::{Pile, flush, restored_and_compared, turns};
use siltstone_testbed::bench::{HistoryOptions, Rounds};
use siltstone_testbed::corpus::{Corpus, History};
use siltstone_testbed::edit;
use siltstone_testbed::program;
use siltstone_testbed::statistics::{Spread, rounded};
use siltstone_testbed::table::as_float;
use siltstone_testbed::tool::{Name, Reading, Repository, Settings, Tool, restored_place};
use siltstone_testbed::tree::{self, Listing};
use siltstone_testbed::workspace;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Options: what is measured, and on what.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    histories: HistoryOptions,
    #[command(flatten)]
    rounds: Rounds,
}

/// The shares that are compared, and how a repository gets them. The first is what the others are held against.
const SHARES: [(u32, &[&str]); 4] =
    [(0, &["--parity", "off"]), (2, &["--parity", "2%"]), (5, &["--parity", "5%"]), (10, &["--parity", "10%"])];
/// Phases that are timed, in this order.
const PHASES: [&str; 5] = ["first_s", "later_s", "check_s", "restore_s", "healing_s"];
const COLUMNS: &str = "data parity_percent stored_bytes stored_ratio first_s first_s_ratio first_s_spread \
    later_s later_s_ratio check_s check_s_ratio restore_s restore_s_ratio restore_s_spread healing_s \
    containers_flipped files files_lost";

/// Bytes of a corpus that are backed up: its newest versions that make so many bytes.
const SOURCE_BYTES: u64 = 300_000_000;
/// The label of the snapshot that is restored.
const NEWEST: &str = "later";
/// No restore takes longer.
const TIME_MAX: Duration = Duration::from_mins(30);

/// One share in one round.
struct Measured {
    seconds: [f64; PHASES.len()],
    stored_bytes: u64,
    flipped: usize,
    files: usize,
    files_lost: usize,
}

/// Runs the benchmark and prints its table.
pub(super) fn run(options: &Options) -> Result<()> {
    let rounds = options.rounds.number(&options.histories.output, 5);
    let work = tempfile::tempdir_in(workspace::target()?)?;
    let corpora = options.histories.corpora(&[History::Openssl, History::Redis])?;
    let tool = Tool::prepare(Name::Silt)?;
    let mut rows = Vec::new();
    let mut notes = vec![
        format!("silt: {}", tool.version),
        format!(
            "{rounds} rounds, taking turns; medians; ratios are to no parity; spread is (slowest - fastest) / median"
        ),
        "later: one percent changed; healing: the restore after one byte in each container of data was flipped".into(),
    ];
    for corpus in &corpora {
        let measured = one_corpus(corpus, &tool, rounds, work.path())?;
        rows.extend(rows_of(&corpus.name, &measured));
        notes.push(format!("{}: the newest of {}", corpus.name, corpus.description));
    }
    options.histories.output.publish("parity", &table_of(COLUMNS, &rows).to_string(), &rows, &notes, work.path())
}

/// All rounds on the newest versions of a corpus, side by side; a list for each share.
fn one_corpus(corpus: &Corpus, tool: &Tool, rounds: u64, work: &Path) -> Result<Vec<Vec<Measured>>> {
    let folder = tempfile::tempdir_in(work)?;
    for version in corpus.newest(SOURCE_BYTES)? {
        tree::copy(version, &folder.path().join(version.file_name().context("a version has a name")?))?;
    }
    let mut measured: Vec<Vec<Measured>> = SHARES.iter().map(|_| Vec::new()).collect();
    let mut pile = Pile::below(work)?;
    for round in 0..rounds {
        for turn in turns(SHARES.len(), round) {
            let (percent, init) = SHARES[turn];
            eprintln!("{}, round {round}: {percent} %", corpus.name);
            let tool = tool.with(Settings { init, ..Settings::default() });
            measured[turn].push(one(&tool, folder.path(), work, &mut pile)?);
        }
    }
    Ok(measured)
}

/// Everything with one share, in a repository of its own.
fn one(tool: &Tool, data: &Path, work: &Path, pile: &mut Pile) -> Result<Measured> {
    let folder = tempfile::tempdir_in(work)?;
    let source = folder.path().join("source");
    tree::copy(data, &source)?;
    let repository = tool.init(&folder.path().join("silt"))?;
    let backup = |label: &str| -> Result<f64> {
        flush()?;
        Ok(repository.backup(&source, label, Reading::Changed)?.wall.as_secs_f64())
    };
    let first = backup("first")?;
    edit::one_percent(&source, 1)?;
    let later = backup(NEWEST)?;
    let listing = Listing::of(&source)?;
    flush()?;
    let check = program::measured(repository.command().args(["check", "--read-data"]))?.wall.as_secs_f64();
    let (restore, _) = restored_and_compared(&repository, &source, NEWEST, &listing, pile)?;
    let stored_bytes = tree::bytes(&repository.path())?;
    let flipped = flip(&repository)?;
    let (healing, files_lost) = restored_with_damage(&repository, &source, &listing, pile)?;
    let seconds = [first, later, check, restore.wall.as_secs_f64(), healing];
    Ok(Measured { seconds, stored_bytes, flipped, files: listing.files(), files_lost })
}

/// Restores the newest snapshot of a damaged repository: seconds, and files that did not come back. No file may lie.
fn restored_with_damage(
    repository: &Repository,
    source: &Path,
    listing: &Listing,
    pile: &mut Pile,
) -> Result<(f64, usize)> {
    let target = pile.place(listing.bytes())?;
    let mut command = repository.restore_command(NEWEST, &target)?;
    flush()?;
    let ended = program::ended_within(&mut command, TIME_MAX)?;
    let found = Listing::of(&restored_place(source, &target)?)?;
    listing.expect_no_false_file(&found)?;
    let files_lost = listing.files() - listing.files_in(&found);
    ensure!((ended.code == Some(0)) == (files_lost == 0), "the restore ended with {:?}\n{}", ended.code, ended.said);
    Ok((ended.cost.wall.as_secs_f64(), files_lost))
}

/// Flips a byte in the middle of each container of data; tells how many there are.
fn flip(repository: &Repository) -> Result<usize> {
    let mut flipped = 0;
    for path in tree::files(&repository.path().join("data"))? {
        let mut bytes = fs::read(&path)?;
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        fs::write(&path, &bytes)?;
        flipped += 1;
    }
    ensure!(flipped > 0, "no container of data was found");
    Ok(flipped)
}

fn rows_of(data: &str, measured: &[Vec<Measured>]) -> Vec<Row> {
    let median = |share: &[Measured], phase: usize| Spread::of(share.iter().map(|one| one.seconds[phase]));
    let stored = |share: &[Measured]| share[0].stored_bytes;
    let base = &measured[0];
    let row = |(share, (percent, _)): (&Vec<Measured>, (u32, _))| {
        let mut row = Row::new();
        row.insert("data".into(), json!(data));
        row.insert("parity_percent".into(), json!(percent));
        row.insert("stored_bytes".into(), json!(stored(share)));
        let ratio = as_float(stored(share)) / as_float(stored(base));
        row.insert("stored_ratio".into(), json!(rounded(ratio, 3)));
        for (phase, name) in PHASES.into_iter().enumerate() {
            let (spread, to) = (median(share, phase), median(base, phase));
            row.insert(name.into(), json!(rounded(spread.median, 2)));
            row.insert(format!("{name}_ratio"), json!(rounded(spread.median / to.median, 2)));
            row.insert(format!("{name}_spread"), json!(format!("{:.0} %", spread.percent())));
        }
        row.insert("containers_flipped".into(), json!(share[0].flipped));
        row.insert("files".into(), json!(share[0].files));
        row.insert("files_lost".into(), json!(share.iter().map(|one| one.files_lost).max()));
        row
    };
    measured.iter().zip(SHARES).map(row).collect()
}
