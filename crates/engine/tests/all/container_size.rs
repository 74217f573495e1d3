//! Containers larger than usual: a repository's setting, heeded by whoever writes, healed by parity.

use crate::common::{self, Sandbox, noise, resources};
use siltstone_engine::check::ReadData;
use siltstone_engine::{Command, EngineError, Session};
use siltstone_store::SnapshotId;
use siltstone_store::container::{ContainerKind, ContainerRecord};
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Damage, SimulatedDisk};
use std::sync::Arc;

const MIB: u64 = 1 << 20;
const CONTAINER_BYTES: u64 = 64 * MIB;

/// A sandbox whose containers of data are filled to [`CONTAINER_BYTES`], with parity.
fn sandbox() -> (Sandbox, SimulatedDisk) {
    let disk = SimulatedDisk::new();
    let sandbox = Sandbox::on(Arc::new(disk.clone()));
    let amended = sandbox.repository().amend(|config| {
        config.parity.data_percent = 2;
        config.set_container_bytes(CONTAINER_BYTES)
    });
    amended.expect("an amended config");
    (sandbox, disk)
}

fn back_up(sandbox: &Sandbox, memory_bytes: u64) -> Result<SnapshotId, EngineError> {
    let resources = sandbox.resources().with_memory_bytes(memory_bytes);
    let made = sandbox.try_backup_within(&sandbox.options().with_force(true), &resources)?;
    Ok(made.snapshot.expect("a snapshot"))
}

fn data_containers(repository: &Repository) -> Vec<ContainerRecord> {
    let series = repository.series().expect("a list")[0];
    let manifest = repository.manifest(series).expect("a manifest").expect("a series");
    manifest.containers.into_iter().filter(|record| record.kind == ContainerKind::Data).collect()
}

#[test]
fn large_containers_are_filled_restored_forgotten_checked_and_healed() {
    let (sandbox, disk) = sandbox();
    let content = noise(1, 70 << 20);
    sandbox.write("large", &content);
    let first = back_up(&sandbox, 512 * MIB).expect("a backup");
    let repository = sandbox.repository();
    let records = data_containers(&repository);
    assert_eq!(records.iter().map(|record| record.object_bytes).max(), Some(CONTAINER_BYTES));
    assert_eq!(sandbox.check(ReadData::All).findings, []);

    // A bit in the middle of each is flipped: parity has it.
    let series = repository.series().expect("a list")[0];
    for record in &records {
        assert!(disk.damage(&record.object_name(series), Damage::Flip { offset: record.object_bytes / 2, mask: 8 }));
    }
    assert!(sandbox.restored(first) == common::tree::read(&sandbox.source()), "parity heals them");
    assert_eq!(sandbox.check(ReadData::All).findings.len(), records.len());

    // What is left of the first is laid into a container of the same size.
    sandbox.write("large", &content[..30 << 20]);
    let second = back_up(&sandbox, 512 * MIB).expect("a backup");
    sandbox.forget(&[first], false);
    assert!(sandbox.restored(second) == common::tree::read(&sandbox.source()));
    let left = data_containers(&sandbox.repository());
    assert!(left.iter().map(|record| record.object_bytes).sum::<u64>() < 40 * MIB, "{left:?}");
    assert!(left.iter().any(|record| record.object_bytes > 20 * MIB), "{left:?}");
}

#[test]
fn memory_that_is_too_little_for_large_containers_is_refused() {
    let (sandbox, _disk) = sandbox();
    sandbox.write("file", b"content");
    let least = Command::Backup.memory_bytes_min(CONTAINER_BYTES);
    assert!(least > Command::Backup.memory_bytes_min(16 * MIB) + CONTAINER_BYTES);
    let refused = back_up(&sandbox, least - 1).expect_err("too little");
    assert!(matches!(refused, EngineError::MemoryTooSmall { .. }), "{refused}");
    back_up(&sandbox, least).expect("enough");
    let session = Session::new(sandbox.repository(), resources().with_memory_bytes(200 * MIB));
    let refused = session.maintain(&sandbox.migrate_options()).expect_err("too little");
    assert!(refused.to_string().contains(&format!("{} MiB", least / MIB)), "{refused}");
}
