//! Hosts that are alike, `cargo xtask bench clones`: files of this machine, and clones of them of which a few percent
//! are each one's own. Each clone is backed up as a host of its own into one repository, by `silt` with and without
//! sharing between hosts, and by the peers that are installed. Every restored tree is compared with its source.
//!
//! | file | holds |
//! |---|---|
//! | `sample.rs`, `source.rs` | files drawn from this machine; the folder that becomes one clone after another |
//! | `contender.rs` | the programs, with hosts |
//! | `course.rs`, `small.rs` | backups, restores and forgetting; four small backups |
//! | `table.rs` | rows and tables |

mod contender;
mod course;
mod sample;
mod small;
mod source;
mod table;

use anyhow::{Result, ensure};
use clap::Args;
use contender::{Contender, Kind};
use course::Amount;
use siltstone_testbed::bench::Rounds;
use siltstone_testbed::bench::publish::Output;
use siltstone_testbed::workspace;
use source::Source;
use std::path::PathBuf;
use table::Report;

/// Options: what is measured, and on what.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    output: Output,
    /// Your own folder to draw files from; by default /usr/bin, /usr/lib and /usr/share.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// MB of a clone; 300 by default, 30 with --quick.
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    size: Option<u64>,
    /// Number of clones; 20 by default, 4 with --quick.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(3..=1000))]
    clones: Option<u64>,
    /// Percent of a clone's bytes that are its own.
    #[arg(long, value_name = "PERCENT", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=50))]
    own: u64,
    /// Seed that files and clones are drawn by.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    rounds: Rounds,
    /// Which programs to measure; a peer that is not installed is left out.
    #[arg(long, value_delimiter = ',', default_value = "silt,silt-alone,restic,borg,kopia")]
    tools: Vec<Kind>,
    /// More words of each backup by `silt`; empty for a build that does not share.
    #[arg(long, value_name = "WORDS", default_value = "--borrow=auto", allow_hyphen_values = true)]
    silt_words: String,
    /// More words of each backup by `silt-alone`, whose hosts share nothing; empty for a build that does not share.
    #[arg(long, value_name = "WORDS", default_value = "--borrow=never", allow_hyphen_values = true)]
    alone_words: String,
    /// Leaves out the four small backups of /usr/include and /etc.
    #[arg(long)]
    no_small: bool,
}

impl Options {
    fn amount(&self) -> Amount {
        let clones = self.clones.unwrap_or(if self.output.quick { 4 } else { 20 });
        Amount { clones, rounds: self.rounds.number(&self.output, 3) }
    }

    fn words(&self, kind: Kind) -> Vec<String> {
        let words = match kind {
            Kind::Silt => self.silt_words.as_str(),
            Kind::SiltAlone => self.alone_words.as_str(),
            _ => "",
        };
        words.split_whitespace().map(str::to_owned).collect()
    }

    fn folders(&self) -> Vec<PathBuf> {
        self.data.as_ref().map_or_else(|| sample::USUAL.map(PathBuf::from).to_vec(), |folder| vec![folder.clone()])
    }

    /// The programs that are there, each once, and a line for each of them and of those that are not.
    fn contenders(&self) -> Result<(Vec<Contender>, Vec<String>)> {
        let (mut found, mut notes) = (Vec::<Contender>::new(), Vec::new());
        for &kind in &self.tools {
            if found.iter().any(|contender| contender.kind == kind) {
                continue;
            }
            let (name, words) = (kind.text(), self.words(kind));
            match Contender::found(kind, &words)? {
                Some(contender) => {
                    let more = if words.is_empty() { String::new() } else { format!(", backup {}", words.join(" ")) };
                    notes.push(format!("{name}: {}{more}", contender.tool.version));
                    found.push(contender);
                }
                None => {
                    eprintln!("{name} is not installed: it is left out");
                    notes.push(format!("{name}: not installed, left out"));
                }
            }
        }
        ensure!(!found.is_empty(), "none of the programs is installed");
        Ok((found, notes))
    }
}

/// Runs the benchmark and prints its tables.
pub(super) fn run(options: &Options) -> Result<()> {
    let (contenders, mut notes) = options.contenders()?;
    let work = tempfile::tempdir_in(workspace::target()?)?;
    let (base, place) = (work.path().join("base"), work.path().join("source"));
    let mb = options.size.unwrap_or(if options.output.quick { 30 } else { 300 });
    let sample = sample::take(&options.folders(), mb * 1_000_000, options.seed, &base)?;
    let (amount, percent, seed) = (options.amount(), options.own, options.seed);
    notes.push(format!(
        "{} clones of {} files, {} bytes; {percent} % of each its own, half of it in changed files, half in added ones",
        amount.clones, sample.files, sample.bytes
    ));
    let drawn: Vec<String> = options.folders().iter().map(|folder| folder.display().to_string()).collect();
    notes.push(format!("drawn from {}, seed {seed}", drawn.join(", ")));
    notes.push(format!(
        "each host has a cache of its own; the tools take turns; restores {} times; medians; spread is (slowest - \
         fastest) / median",
        amount.rounds
    ));
    notes.push("borg: zstd,3; kopia: zstd; all else by default, so restic and borg leave some unused bytes".to_owned());
    notes.push(
        "recompressed, after the restores: `silt maintain --recompress`; restic and kopia have nothing like it, borg's \
         `recreate --recompress` is not run"
            .to_owned(),
    );
    notes.push("restored trees are compared with their source; of kopia's without the times of folders".to_owned());

    let source = Source::of(&base, &place, percent, seed)?;
    let mut report = Report::default();
    let measured = course::run(&contenders, source, &place, amount, work.path())?;
    report.add_clones(&measured, &contenders.iter().map(|contender| contender.kind.text()).collect::<Vec<_>>());
    if !options.no_small {
        let folder = tempfile::tempdir_in(work.path())?;
        let tools: Vec<&str> = small::taking_part(&contenders).iter().map(|contender| contender.kind.text()).collect();
        report.add_small(&small::run(&contenders, folder.path())?, &tools);
    }
    options.output.publish("clones", &report.tables, &report.rows, &notes, work.path())
}
