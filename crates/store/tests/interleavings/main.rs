//! Every order of the calls of two programs on one repository, within bounds on how often they change over, and some of
//! them killed on the way; and every request of one program to a place at a distance, with an answer that is lost, late
//! or wrong. Whatever happens: what was acknowledged can be read, a listed key opens the repository, and who loses a
//! race is told so.

mod keys;
mod remote;
mod series;

use siltstone_store::config::{ChunkerSettings, Config};
use siltstone_store::keys::{Argon2Cost, KeyLabel};
use siltstone_store::repository::Repository;
use siltstone_store::storage::scheduled::{Bounds, Schedule};
use siltstone_store::storage::{SimulatedDisk, Storage};
use siltstone_store::{StoreError, Time};
use std::sync::Arc;

const PASSWORD: &[u8] = b"password";

/// All orders with at most two changes from a program that could have gone on.
const ALIVE: Bounds = Bounds { preemptions: 2, stops: 0 };
/// Bounds with one change, and one of the programs killed.
const KILLED: Bounds = Bounds { preemptions: 1, stops: 1 };

fn label() -> KeyLabel {
    KeyLabel { created: Time::default(), host: "host".into(), user: "user".into() }
}

fn init(storage: Arc<dyn Storage>, password: &[u8]) -> Result<Repository, StoreError> {
    let chunker = ChunkerSettings { name: "gear-nc2".into(), min_bytes: 8192, average_bytes: 16384, max_bytes: 65536 };
    Repository::init(storage, password, &label(), Argon2Cost::TEST, chunker)
}

/// Has the manifests of a repository cut into the smallest parts.
fn cut_into_parts(repository: &Repository) {
    let change = |config: &mut Config| {
        config.set_part_bytes(0);
        Ok(())
    };
    repository.amend(change).expect("a setting");
}

fn open(storage: Arc<dyn Storage>) -> Repository {
    Repository::open(storage, PASSWORD).expect("the repository opens")
}

/// The disk as another process finds it, and as it is found after its power went.
fn found(disk: &SimulatedDisk) -> [SimulatedDisk; 4] {
    let crash = |seed| disk.crash(seed);
    [disk.another_process(), crash(SimulatedDisk::NOTHING_REACHED), crash(SimulatedDisk::ALL_REACHED), crash(7)]
}

/// Tells the order of calls beside what went wrong under it.
fn assert_under(schedule: &Schedule, holds: bool, what: &str) {
    assert!(holds, "{what}, under this schedule:\n{}", schedule.story());
}
