//! The write path's profile, `cargo xtask bench stages`: where the time of a backup goes, stage by stage, and what each
//! stage's work takes alone in the same run on the same bytes: its ceiling.
//!
//! | file | what |
//! |---|---|
//! | `subject.rs` | what is backed up, before and after a change |
//! | `cases.rs` | the runs: first backup, the next, migration |
//! | `threads.rs` | a program watched, thread by thread |
//! | `content.rs`, `works.rs` | the work of each stage alone |
//! | `table.rs` | from these to rows and tables |

mod cases;
mod content;
mod subject;
mod table;
mod threads;
mod works;

use anyhow::Result;
use cases::{CASES, Case, Observed};
use content::{ByFile, Content};
use siltstone_testbed::bench::options::StagesOptions;
use siltstone_testbed::bench::publish::Row;
use siltstone_testbed::tool::{Name, Settings, Tool};
use siltstone_testbed::workspace;
use std::path::Path;
use subject::Subject;
use works::Alone;

/// A region of what dies: as in `siltstone-engine`.
const DELTA_REGION_BYTES: usize = 512 << 10;

/// Runs the benchmark and prints its tables.
pub(super) fn run(options: &StagesOptions) -> Result<()> {
    let output = &options.histories.output;
    let rounds = options.rounds.number(output, 3);
    let subjects = Subject::chosen(&options.histories.data, output.quick)?;
    let work = tempfile::tempdir_in(workspace::target()?)?;
    let tool = Tool::prepare(Name::Silt)?.with(Settings { says_json: true, ..Settings::default() });
    let (mut tables, mut rows) = (String::new(), Vec::new());
    let mut notes = vec![
        format!("silt: {}", tool.version),
        format!("rounds: {rounds}; shown is the median, spread is (slowest - fastest) / median"),
    ];
    // All programs first: what this process holds in memory would be told as theirs.
    let observed: Vec<_> =
        subjects.iter().map(|subject| observed(subject, &tool, rounds, work.path())).collect::<Result<_>>()?;
    for (subject, observed) in subjects.iter().zip(observed) {
        let of_subject = measured(subject, observed, work.path())?;
        tables += &table::tables(&subject.name, &subject.description, &of_subject);
        rows.extend(of_subject);
        notes.push(format!("{}: {}", subject.name, subject.description));
    }
    output.publish("stages", &tables, &rows, &notes, work.path())
}

/// Observations of every case, one a round.
type Rounds = Vec<(Case, Vec<Observed>)>;

fn observed(subject: &Subject, tool: &Tool, rounds: u64, work: &Path) -> Result<Rounds> {
    let mut observed: Rounds = CASES.map(|case| (case, Vec::new())).into();
    for number in 0..rounds {
        eprintln!("{}, round {}", subject.name, number + 1);
        for ((_, all), (_, one)) in observed.iter_mut().zip(cases::round(subject, tool, work)?) {
            all.push(one);
        }
    }
    Ok(observed)
}

fn measured(subject: &Subject, observed: Rounds, work: &Path) -> Result<Vec<Row>> {
    let alone = works_alone(subject, work)?;
    let opening = observed.iter().find(|(case, _)| *case == Case::Open).map_or_else(Vec::new, |(_, all)| all.clone());
    let mut rows = Vec::new();
    for (case, mut rounds) in observed {
        let works: &[Alone] = alone.iter().find(|(of, _)| *of == case).map_or(&[], |(_, alone)| alone);
        if case == Case::Maintain {
            // What died is not told: it is what the works went over.
            let dying = works.first().map_or(0, |encoding| encoding.bytes);
            for round in &mut rounds {
                round.new_bytes = dying;
            }
        }
        rows.push(table::run_row(&subject.name, case, &rounds));
        rows.extend(table::stage_rows(&subject.name, case, &rounds, works));
        if case != Case::Open {
            rows.extend(table::bound_row(&subject.name, case, &rounds, &opening));
        }
        rows.extend(table::work_rows(&subject.name, case, works));
    }
    Ok(rows)
}

/// Measures the stages' works alone, by the case whose bytes they go over.
fn works_alone(subject: &Subject, work: &Path) -> Result<Vec<(Case, Vec<Alone>)>> {
    eprintln!("{}: the works alone", subject.name);
    let folder = tempfile::tempdir_in(work)?;
    let source = folder.path().join("source");
    subject.make(&source)?;
    let of_backup = |whole: &Content, new: &ByFile<'_>| -> Result<Vec<Alone>> {
        let mut works = works::of_source(whole)?;
        works.extend(works::of_new(&content::regions(new), folder.path())?);
        Ok(works)
    };
    let before = Content::of(&source)?;
    let first = of_backup(&before, &before.chunks_beyond(None)?)?;
    subject.change(&source)?;
    let after = Content::of(&source)?;
    let new = after.chunks_beyond(Some(&before))?;
    let next = of_backup(&after, &new)?;
    let dying = before.chunks_beyond(Some(&after))?;
    let maintain = works::of_dying(&content::pairs(&dying, &new, DELTA_REGION_BYTES), folder.path())?;
    // Of the backup that migrates too, only what comes before its regions is the same work.
    let reading = next.iter().take(3).copied().collect();
    Ok(vec![(Case::First, first), (Case::Next, next), (Case::Maintain, maintain), (Case::NextAndMigrate, reading)])
}
