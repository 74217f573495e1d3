//! A backup that cannot go on ends, with the error that stopped it: no stage waits for ever for one that has gone.

use crate::common::{Sandbox, noise};
use siltstone_engine::backup::{self, Source};
use siltstone_engine::{EngineError, Observer};
use siltstone_store::storage::SimulatedDisk;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Far more than any of these runs takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// Files that keep every reader and every queue between the stages full.
fn large_files(sandbox: &Sandbox) {
    for number in 0..24 {
        sandbox.write(&format!("large-{number}"), &noise(number, 12 << 20));
    }
}

fn in_time<R: Send + 'static>(run: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, outcome) = mpsc::channel();
    std::thread::spawn(move || done.send(run()));
    outcome.recv_timeout(PATIENCE).expect("it ends in time")
}

/// The story: the disk was full, so the assembling stage ended; the readers of large files waited for room in queues
/// whose other end lay, unreachable, in the queue of steps, and the planner waited for the readers.
#[test]
fn a_disk_full_while_large_files_are_read_ends_the_backup() {
    let disk = SimulatedDisk::new();
    let sandbox = Sandbox::on(Arc::new(disk.clone()));
    large_files(&sandbox);
    disk.set_capacity(Some(disk.used_bytes() + (20 << 20)));
    let options = sandbox.options();
    let result = in_time(move || sandbox.try_backup(&options).map(drop));
    assert!(matches!(&result, Err(EngineError::Store(error)) if error.is_full()), "{result:?}");
}

/// Asks to stop after so many bytes.
struct StopsAfter(u64, AtomicU64);

impl Observer for StopsAfter {
    fn advance(&self, _: u64, bytes: u64) {
        self.1.fetch_add(bytes, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.1.load(Ordering::Relaxed) >= self.0
    }
}

#[test]
fn an_interrupt_while_large_files_are_read_ends_the_backup() {
    for bytes in [0, 1 << 20, 15 << 20, 40 << 20] {
        let sandbox = Sandbox::new();
        large_files(&sandbox);
        let result = in_time(move || {
            let source = Source::Paths(vec![sandbox.source()]);
            let observer = StopsAfter(bytes, AtomicU64::new(0));
            backup::backup(
                &sandbox.repository(),
                source,
                &sandbox.options(),
                &sandbox.resources().with_observer(Arc::new(observer)),
            )
            .map(drop)
        });
        assert!(matches!(result, Err(EngineError::Interrupted)), "after {bytes} bytes: {result:?}");
    }
}
