//! Four small backups of folders that every machine has, on two hosts: `/usr/include`, then `/usr/include` and `/etc`.
//! The second backup of a host belongs to another series than its first one, and the second host has what the first one
//! had.

use super::contender::{Contender, Kind, Shared};
use anyhow::Result;
use siltstone_testbed::bench::rounds::Pile;
use siltstone_testbed::tree::{self, Listing};
use std::path::Path;

const INCLUDE: &str = "/usr/include";
const ETC: &str = "/etc";
const HOSTS: [&str; 2] = ["host01", "host02"];

/// The repositories after one of the backups.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) host: &'static str,
    pub(super) paths: String,
    pub(super) source_bytes: u64,
    /// Bytes of the repository of each contender in [`taking_part`].
    pub(super) repository_bytes: Vec<u64>,
}

/// The contenders that make one snapshot of several folders by a command, and are compared here.
pub(super) fn taking_part(contenders: &[Contender]) -> Vec<&Contender> {
    let takes_part = |contender: &&Contender| [Kind::Silt, Kind::SiltAlone, Kind::Restic].contains(&contender.kind);
    contenders.iter().filter(takes_part).collect()
}

/// Makes the four backups with each contender, and compares what the last one restores; nothing where the folders are
/// not there.
pub(super) fn run(contenders: &[Contender], work: &Path) -> Result<Vec<Step>> {
    let (include, etc) = (Path::new(INCLUDE), Path::new(ETC));
    if !include.is_dir() || !etc.is_dir() {
        eprintln!("the small backups are left out: {INCLUDE} or {ETC} is not there");
        return Ok(Vec::new());
    }
    let init = |contender: &&Contender| contender.init(&work.join(contender.kind.text()));
    let repositories = taking_part(contenders).iter().map(init).collect::<Result<Vec<Shared>>>()?;
    let mut steps = Vec::new();
    for host in HOSTS {
        repositories.iter().try_for_each(|repository| repository.join(host))?;
        for (label, paths) in [("one", &[include][..]), ("two", &[include, etc])] {
            for repository in &repositories {
                repository.backup(host, label, paths)?;
            }
            let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            steps.push(Step {
                host,
                paths: names.join(" "),
                source_bytes: paths.iter().map(|path| tree::bytes(path)).sum::<Result<u64>>()?,
                repository_bytes: repositories.iter().map(Shared::bytes).collect::<Result<_>>()?,
            });
        }
    }
    let expected = Listing::of(include)?;
    let mut pile = Pile::below(work)?;
    for repository in &repositories {
        let target = pile.place(expected.bytes())?;
        repository.restore(HOSTS[1], &target)?;
        repository.compare(include, &target, &expected)?;
    }
    Ok(steps)
}
