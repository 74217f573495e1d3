//! Every parser of outside bytes as a function of bytes, for a fuzzer that is guided by coverage (`cargo xtask fuzz`)
//! and for plain tests.
//!
//! Most of what lies in a repository is sealed, and a flipped bit never passes a seal. So each target takes *plain*
//! bytes, seals them with keys of its own where the parser wants a sealed object, and hands that over: what a hostile
//! holder of the key could write. A target may refuse its input as often as it likes. It must not panic, hang, or take
//! memory that the input did not pay for.
//!
//! [`seeds`] gives inputs to begin with, taken from a repository, and [`corpus`] those that earlier campaigns found;
//! inputs that once failed are kept in `fuzz/regressions/<target>/`.

mod catalog;
mod config;
mod container;
pub mod corpus;
mod keys;
mod loan;
mod local;
mod manifest;
mod names;
mod parity;
mod region;
mod repository;
mod sealing;
pub mod seeds;

use std::path::Path;
use std::sync::OnceLock;

/// A parser and the name it is asked for by.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, also that of its folders of inputs.
    pub name: &'static str,
    /// Runs it; says whether the input was taken for sound.
    pub run: fn(&[u8]) -> bool,
}

/// All targets, by name.
pub const TARGETS: [Target; 19] = [
    Target { name: "acl", run: local::acl },
    Target { name: "cache", run: local::cache },
    Target { name: "catalog", run: catalog::catalog },
    Target { name: "changed_list", run: local::changed_list },
    Target { name: "config", run: config::config },
    Target { name: "container", run: container::container },
    Target { name: "delta", run: region::delta },
    Target { name: "loan", run: loan::loan },
    Target { name: "manifest", run: manifest::manifest },
    Target { name: "names", run: names::names },
    Target { name: "parity", run: parity::parity },
    Target { name: "patterns", run: local::patterns },
    Target { name: "recipe", run: catalog::recipe },
    Target { name: "record", run: catalog::record },
    Target { name: "recovery_key", run: keys::recovery_key },
    Target { name: "region", run: region::region },
    Target { name: "repository", run: repository::repository },
    Target { name: "slot", run: keys::slot },
    Target { name: "tar", run: local::tar },
];

/// Runs the target of this name on an input.
///
/// # Panics
/// If there is no such target; and whenever the parser is at fault.
pub fn run(name: &str, input: &[u8]) -> bool {
    (named(name).expect("a target of this name").run)(input)
}

fn named(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}

/// Word of the command line that makes the program of the fuzzer print the names of all targets instead.
const LIST: &str = "--list";
/// Variable of the environment that names the target of a run of the fuzzer.
const VARIABLE: &str = "SILTSTONE_FUZZ_TARGET";
/// The target that was chosen when the program began.
static CHOSEN: OnceLock<Target> = OnceLock::new();

/// Begins the program of the fuzzer: all targets are in one, and the environment chooses
/// (`SILTSTONE_FUZZ_TARGET=region`). With one of these words it does something else, and ends:
/// - `--list` prints the names of the targets, a line each;
/// - `--commit` prints `commit`, that of which it was built;
/// - `--plant REPOSITORY CORPUS` writes the seeds of all targets below the folder `CORPUS`, with those from the golden
///   repository in the folder `REPOSITORY`; `--plant REPOSITORY CORPUS ARCHIVES` also the kept inputs;
/// - `--pack FOLDER ARCHIVES TARGET` packs the inputs in `FOLDER` as the kept ones of `TARGET`.
pub fn begin(commit: Option<&str>) {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let done = match &words[..] {
        [first] if first == LIST => {
            for target in TARGETS {
                println!("{}", target.name);
            }
            Ok(())
        }
        [first] if first == "--commit" => {
            println!("{}", commit.unwrap_or("unknown"));
            Ok(())
        }
        [first, repository, corpus, archives @ ..] if first == "--plant" && archives.len() < 2 => {
            seeds::plant(repository.as_ref(), archives.first().map(Path::new), corpus.as_ref())
        }
        [first, folder, archives, target] if first == "--pack" => {
            corpus::pack(folder.as_ref(), archives.as_ref(), &target.to_string_lossy())
        }
        _ => return choose(),
    };
    if let Err(error) = &done {
        eprintln!("{error:#}");
    }
    std::process::exit(i32::from(done.is_err()));
}

/// Takes the target that the environment names, or ends the program.
fn choose() {
    let name = std::env::var(VARIABLE).unwrap_or_default();
    let Some(target) = named(&name) else {
        eprintln!("{VARIABLE} names no target: \"{name}\"; the word {LIST} lists them");
        std::process::exit(1);
    };
    CHOSEN.get_or_init(|| target);
}

/// Runs the target that was chosen on an input.
///
/// # Panics
/// Before [`begin`]; and whenever the parser is at fault.
pub fn run_chosen(input: &[u8]) -> bool {
    (CHOSEN.get().expect("begin chose a target").run)(input)
}

/// Parts of an input: each has its length, two bytes, in front; the last one takes what is left.
fn parts(mut data: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    while let Some((length, rest)) = data.split_first_chunk() {
        let (part, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
        parts.push(part);
        data = rest;
    }
    parts
}

/// Joins parts as [`parts`] takes them apart; `None` if one is too long for that.
fn join<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    for part in parts {
        let part = part.as_ref();
        data.extend_from_slice(&u16::try_from(part.len()).ok()?.to_le_bytes());
        data.extend_from_slice(part);
    }
    Some(data)
}

/// Returns so many of the first bytes, zeros where there are fewer.
fn filled(bytes: &[u8], length: usize) -> Vec<u8> {
    let mut filled = bytes.to_vec();
    filled.resize(length, 0);
    filled
}
