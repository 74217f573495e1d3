//! Real input, in numbers: every release of a source tree and every state of a growing database becomes one snapshot.
//! All restore identically; half are forgotten; the space that comes back is what `forget --dry-run` said, to the byte;
//! what is kept still restores identically.

use anyhow::Result;
use clap::Args;
use siltstone_testbed::bench::rounds;
use siltstone_testbed::corpus::{self, Amount, Corpus};
use siltstone_testbed::program::{self, Cost};
use siltstone_testbed::table::{self, Table};
use siltstone_testbed::tool::{Reading, Repository, Tool};
use siltstone_testbed::tree::{self, Listing};
use siltstone_testbed::workspace::{self, Build};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Options: how much is done.
#[derive(Args)]
pub(crate) struct Options {
    /// A few small versions only.
    #[arg(long)]
    quick: bool,
    /// Your own versions: a folder with one file or folder per version, in the order of their names.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Runs it on each kind of data and prints a table.
pub(crate) fn run(options: &Options) -> Result<()> {
    let amount = if options.quick { Amount::Little } else { Amount::Full };
    let corpora = match &options.data {
        Some(folder) => vec![corpus::given(folder)?],
        None => workspace::corpora()?.standard(amount)?,
    };
    let silt = Tool::silt(Build::Release)?;
    let mut table = Table::new([
        "data",
        "snapshots",
        "source",
        "repository",
        "ratio",
        "backup MB/s",
        "restore MB/s",
        "forgotten",
        "came back, bytes",
        "as said",
        "forget s",
    ]);
    for corpus in &corpora {
        table.row(one_corpus(&silt, corpus)?);
    }
    println!("\n{table}");
    for corpus in &corpora {
        println!("{}: {}.", corpus.name, corpus.description);
    }
    println!("Every snapshot was restored and compared before half were forgotten; the rest again after.");
    Ok(())
}

fn one_corpus(silt: &Tool, corpus: &Corpus) -> Result<Vec<String>> {
    let folder = tempfile::tempdir_in(workspace::target()?)?;
    let source = folder.path().join("source");
    let repository = silt.init(&folder.path().join("silt"))?;
    let target = folder.path().join("restored");
    let (mut versions, backup) = back_up_all(&repository, corpus, &source)?;
    let source_bytes = versions.values().map(Listing::bytes).sum::<u64>();
    let repository_bytes = tree::bytes(&repository.path())?;
    let restore = repository.expect_restored(&versions, &source, &target)?;

    let labels: Vec<String> = versions.keys().cloned().collect();
    let forgotten = rounds::half(&labels);
    versions.retain(|label, _| !forgotten.contains(label));
    let (returned, forget) = repository.forget_as_promised(&forgotten)?;
    repository.expect_restored(&versions, &source, &target)?;
    program::quietly(repository.command().args(["check", "--read-data"]))?;

    Ok(vec![
        corpus.name.clone(),
        labels.len().to_string(),
        table::bytes(source_bytes),
        table::bytes(repository_bytes),
        format!("{:.2}", table::as_float(source_bytes) / table::as_float(repository_bytes)),
        format!("{:.0}", table::mb_per_s(source_bytes, backup.wall.as_secs_f64())),
        format!("{:.0}", table::mb_per_s(source_bytes, restore.wall.as_secs_f64())),
        forgotten.len().to_string(),
        returned.to_string(),
        "yes".into(),
        format!("{:.2}", forget.wall.as_secs_f64()),
    ])
}

fn back_up_all(repository: &Repository, corpus: &Corpus, source: &Path) -> Result<(BTreeMap<String, Listing>, Cost)> {
    let mut versions = BTreeMap::new();
    let mut total = Cost::default();
    for (number, version) in corpus.versions.iter().enumerate() {
        eprintln!("{}: backing up version {} of {}", corpus.name, number + 1, corpus.versions.len());
        tree::make_equal(source, version)?;
        let label = format!("v{number:03}");
        total = total.then(repository.backup(source, &label, Reading::Changed)?);
        versions.insert(label, Listing::of(source)?);
    }
    Ok((versions, total))
}
