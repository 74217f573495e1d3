//! The command line. What is measured is the library's; this parses, shows progress, and prints.

mod args;
mod estimate;
mod interrupt;
mod list;
mod measure;
mod progress;
mod size;

use anyhow::Context;
use args::{Cli, Command};
use clap::Parser;
use siltstone_lab::claims::{self, Page};
use siltstone_lab::experiments;
use siltstone_lab::report::Report;
use siltstone_testbed::corpus;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// Something failed, or a method did.
const EXIT_FAILED: u8 = 1;
/// Exit code where what was asked for makes no sense.
const EXIT_USAGE: u8 = 2;
/// Stopped by the user; it can go on.
const EXIT_INTERRUPTED: u8 = 130;

/// Why the program ends without having done its work.
enum Failure {
    /// The command line or the settings make no sense.
    Usage(anyhow::Error),
    /// Anything else.
    Failed(anyhow::Error),
    /// The user asked to stop; what was said is how to go on.
    Interrupted(String),
    /// Methods failed their check, so many; all was told already.
    Methods(usize),
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

pub(crate) fn main() -> ExitCode {
    interrupt::listen();
    let Err(failure) = run(Cli::parse().command) else { return ExitCode::SUCCESS };
    let status = match failure {
        Failure::Failed(error) if is_closed_pipe(&error) => EXIT_FAILED,
        Failure::Failed(error) if interrupt::is_asked() => {
            told(format_args!("interrupted: {error:#}"), EXIT_INTERRUPTED)
        }
        Failure::Failed(error) => told(format_args!("error: {error:#}"), EXIT_FAILED),
        Failure::Usage(error) => told(format_args!("error: {error:#}"), EXIT_USAGE),
        Failure::Interrupted(hint) => told(format_args!("interrupted; {hint}"), EXIT_INTERRUPTED),
        Failure::Methods(count) => {
            told(format_args!("error: without result, and marked WRONG above: {count}"), EXIT_FAILED)
        }
    };
    ExitCode::from(status)
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Estimate(wanted) => estimate::run(&wanted),
        Command::Chunk { wanted, full } => measure::chunk(&wanted, full),
        Command::Sketch(wanted) => measure::command(&["sketch"], &wanted),
        Command::Pipeline(wanted) => measure::command(&["pipeline"], &wanted),
        Command::Store(wanted) => measure::command(&["store"], &wanted),
        Command::All(wanted) => measure::command(&[], &wanted),
        Command::Run(wanted) => measure::file(&wanted),
        Command::Corpus(options) => print(&corpus::command::run(&options)?),
        Command::List => print(&list::text(&experiments())),
        Command::Report { folder } => report(&folder),
        Command::Claims { folder, reasons, beside } => claims(&folder, reasons.as_deref(), beside.as_deref()),
    }
}

/// Shows what was measured into this folder, and writes the files made from it.
fn report(folder: &Path) -> Result<(), Failure> {
    let report = Report::read(&experiments(), folder)?;
    let written = report.write(folder)?;
    print(&report.text())?;
    for path in written {
        eprintln!("wrote {}", path.display());
    }
    match report.failures() {
        0 => Ok(()),
        count => Err(Failure::Methods(count)),
    }
}

/// Prints how many of the papers' claims hold in the run of this folder, and the tables of them, with the reasons of a
/// page; and beside it what another run says of times.
fn claims(folder: &Path, reasons: Option<&Path>, beside: Option<&Path>) -> Result<(), Failure> {
    let page = match reasons {
        Some(path) => {
            Page::read(&fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?)
        }
        None => Page::default(),
    };
    let report = Report::read(&experiments(), folder)?;
    let judged = claims::judge(&report.findings);
    print(&format!("{}\n\n{}", claims::tally(&judged), claims::tables(&judged, &page)))?;
    if let Some(other) = beside {
        let other = Report::read(&experiments(), other)?;
        let processors = [report.processor(), other.processor()];
        let table = claims::side_by_side(processors, [&judged, &claims::judge(&other.findings)]);
        print(&format!("\n## Side by side\n\n{table}"))?;
    }
    for line in page.to_look_at(&judged) {
        eprintln!("look at: {line}");
    }
    Ok(())
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn told(message: std::fmt::Arguments, status: u8) -> u8 {
    eprintln!("silt-lab: {message}");
    status
}

/// Tells whether the reader of our output went away: there is nobody left to tell.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
