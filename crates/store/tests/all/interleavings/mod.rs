//! Every order of the calls of two programs on one repository, within bounds on how often they change over, and some of
//! them killed on the way; and every request of one program to a place at a distance, with an answer that is lost, late
//! or wrong. Whatever happens: what was acknowledged can be read, a listed key opens the repository, and who loses a
//! race is told so.

mod keys;
mod remote;
mod series;
mod sharing;

use siltstone_store::config::Config;
use siltstone_store::repository::Repository;
use siltstone_store::storage::SimulatedDisk;
use siltstone_store::storage::scheduled::{Bounds, Schedule};

/// All orders with at most two changes from a program that could have gone on.
const ALIVE: Bounds = Bounds { preemptions: 2, stops: 0 };
/// Bounds with one change, and one of the programs killed.
const KILLED: Bounds = Bounds { preemptions: 1, stops: 1 };

/// Has the manifests of a repository cut into the smallest parts.
fn cut_into_parts(repository: &Repository) {
    let change = |config: &mut Config| {
        config.set_part_bytes(0);
        Ok(())
    };
    repository.amend(change).expect("a setting");
}

/// The disk as another process finds it, and as it is found after its power went: each state once.
fn found(disk: &SimulatedDisk) -> Vec<SimulatedDisk> {
    let crash = |seed| disk.crash(seed);
    let crashes = [crash(SimulatedDisk::NOTHING_REACHED), crash(SimulatedDisk::ALL_REACHED), crash(7)];
    let mut found = vec![disk.another_process()];
    for crashed in crashes {
        if !found.iter().any(|other| crashed.is_found_as(other)) {
            found.push(crashed);
        }
    }
    found
}

/// Tells the order of calls beside what went wrong under it.
fn assert_under(schedule: &Schedule, holds: bool, what: &str) {
    assert!(holds, "{what}, under this schedule:\n{}", schedule.story());
}
