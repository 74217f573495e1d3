//! Running something once for every fault that can hit it at every one of its writes, and looking at each disk that is
//! found afterwards.

use siltstone_store::storage::{Damage, Failure, Fault, ObjectName, SimulatedDisk, SimulatedRemote, Trouble};
use std::fmt::Debug;

/// A disk as found after a run was hit.
pub struct Found<'f, T> {
    /// State that the next run finds.
    pub disk: SimulatedDisk,
    /// Result of the run that was hit.
    pub result: &'f T,
    /// Whether to try the next backup too: once for every fault, as the fates of pending writes differ in orphans only.
    pub recover: bool,
    /// Which fault and which end, for messages.
    pub story: String,
}

/// A copy of a disk with all its pending changes done.
pub fn copy(disk: &SimulatedDisk) -> SimulatedDisk {
    disk.crash(SimulatedDisk::ALL_REACHED)
}

/// A copy of the disk without any parity: what damage costs where nothing heals it.
pub fn without_parity(disk: &SimulatedDisk) -> SimulatedDisk {
    let bare = copy(disk);
    forget_parity(&bare);
    bare
}

/// Removes all parity, so that damage stays what it is.
pub fn forget_parity(disk: &SimulatedDisk) {
    for name in disk.names().into_iter().filter(|name| matches!(name, ObjectName::Parity(..))) {
        assert!(disk.damage(&name, Damage::Delete));
    }
}

/// How many changing calls an unhindered run makes.
pub fn writes_of<T>(before: &SimulatedDisk, run: impl Fn(&SimulatedDisk) -> T) -> u64 {
    let disk = copy(before);
    disk.set_fault(Fault::None);
    run(&disk);
    disk.writes()
}

/// Hits `run` at every write in every way, each time on a fresh copy of `before`, and gives every disk found to
/// `examine`.
///
/// A process that outlives its failed write may end in peace or with the power; what a power loss makes of pending
/// writes is drawn by several seeds, two of which are the extremes: nothing reached the disk, everything did. A write
/// finds a full disk or a broken one, the next write the other. Where all is asked for, as `cargo xtask test --full`
/// does, each finds both, and one more seed is drawn.
pub fn at_every_write<T: Debug>(
    before: &SimulatedDisk,
    run: impl Fn(&SimulatedDisk) -> T,
    mut examine: impl FnMut(&Found<'_, T>),
) {
    let before = copy(before);
    for nth in 0..writes_of(&before, &run) {
        let failures = match (is_full(), nth % 2) {
            (true, _) => vec![Failure::Full, Failure::Io, Failure::IoTooLate],
            (false, 0) => vec![Failure::Full, Failure::IoTooLate],
            (false, _) => vec![Failure::Io, Failure::IoTooLate],
        };
        let failures = failures.into_iter().map(|failure| Fault::FailWrite { nth, failure });
        let power_losses = [Fault::Torn { nth }, Fault::PowerLossAfter { writes: nth }];
        for fault in failures.chain(power_losses) {
            let disk = copy(&before).with_fault(fault);
            let result = run(&disk);
            for (at, (end, disk)) in ends(&disk, fault, nth).into_iter().enumerate() {
                let story = format!("{fault:?}, {end}; the run said {result:?}");
                examine(&Found { disk, result: &result, recover: at == 0, story });
            }
        }
    }
}

/// The ends of a run that this fault hit, each state once: where nothing was under way, all are one.
fn ends(disk: &SimulatedDisk, fault: Fault, nth: u64) -> Vec<(String, SimulatedDisk)> {
    let (nothing, all, some) = (SimulatedDisk::NOTHING_REACHED, SimulatedDisk::ALL_REACHED, 2 * nth + 10);
    let seeds = match fault {
        Fault::FailWrite { .. } => vec![nothing, some],
        _ if is_full() => vec![some, some + 1, nothing, all],
        _ => vec![some, nothing, all],
    };
    let mut found = Vec::new();
    if matches!(fault, Fault::FailWrite { .. }) {
        let next = disk.another_process();
        next.set_fault(Fault::None);
        found.push(("then the program ended".to_owned(), next));
    }
    for seed in seeds {
        let crashed = disk.crash(seed);
        if !found.iter().any(|(_, other)| crashed.is_found_as(other)) {
            found.push((format!("then the power went (seed {seed})"), crashed));
        }
    }
    found
}

/// Troubles that one request at a distance may meet.
fn troubles(nth: u64) -> [Trouble; 8] {
    [
        Trouble::AnswerLost { nth },
        Trouble::Late { nth, by: 3 },
        Trouble::Late { nth, by: u64::MAX >> 1 },
        Trouble::Conflict { nth },
        Trouble::Unknown { nth, is_done: false },
        Trouble::Unknown { nth, is_done: true },
        Trouble::Busy { nth, count: 2 },
        Trouble::ShortBody { nth },
    ]
}

/// Runs `deed` with trouble at each of its requests, each time at a copy of `before`, and gives what is found after all
/// that was late has come to `examine`, with what the run said. Every second trouble of a request is left out, other
/// ones at the next; where all is asked for, as `cargo xtask test --full` does, none is.
pub fn at_every_request<T: Debug>(
    before: &SimulatedRemote,
    deed: impl Fn(&SimulatedRemote) -> T,
    examine: impl Fn(&SimulatedRemote, &T, &str),
) {
    let unhindered = before.copy();
    deed(&unhindered);
    let requests = unhindered.requests();
    assert!(requests.len() > 10, "{requests:?}");
    let step = if is_full() { 1 } else { 2 };
    for (nth, request) in (0..).zip(&requests) {
        let met = troubles(nth).into_iter().filter(|trouble| concerns(*trouble, request));
        for trouble in met.skip(usize::from(step == 2 && nth % 2 == 1)).step_by(step) {
            let remote = before.copy();
            remote.set_trouble(trouble);
            let result = deed(&remote);
            remote.set_trouble(Trouble::None);
            remote.land();
            examine(&remote, &result, &format!("{trouble:?} at \"{request}\"; the run said {result:?}"));
        }
    }
}

/// Tells whether all is asked for, however long it takes.
pub fn is_full() -> bool {
    std::env::var_os("SILTSTONE_FULL").is_some()
}

/// Tells whether a request of this kind can meet the trouble.
fn concerns(trouble: Trouble, request: &str) -> bool {
    match trouble {
        Trouble::Conflict { .. } => request.starts_with("create "),
        Trouble::Unknown { .. } => request.starts_with("create ") || request.starts_with("put "),
        Trouble::ShortBody { .. } => request.starts_with("read "),
        Trouble::Late { by, .. } if by > 3 => !request.starts_with("read ") && !request.starts_with("list "),
        _ => true,
    }
}
