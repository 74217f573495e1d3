//! `silt-import`: brings the snapshots of a restic repository into one of silt.
//!
//! ```text
//! main    the program: options, words and exit codes are those of `silt`
//! restic  a restic repository, and its snapshots as they are to be here     (rustic_core)
//! walk    the trees of a snapshot as entries in catalog order, beside those of the one imported before
//! file    content of a file: its blobs, one after the other, each held against its hash
//! node    what restic says of a file as silt says it
//! folder  the files of a repository, in a folder that is only read
//! ```
//! Each uses those below it. It is a program of its own because restic's format takes eighty crates that nobody needs
//! who has nothing to bring along.

mod file;
mod folder;
mod node;
mod restic;
mod walk;

use std::process::ExitCode;

fn main() -> ExitCode {
    siltstone::import_main(restic::open)
}
