//! Tests of what a recorder counts.

use super::*;
use crate::storage::{Listing, NameKind, ReadRequest, Recorder, StorageCalls};
use std::ops::ControlFlow;

#[test]
fn a_recorder_counts_calls_and_bytes() {
    let storage = Recorder::new(SimulatedDisk::new());
    storage.put(&container(1), &[0; 100]).unwrap();
    storage.put(&container(2), &[0; 50]).unwrap();
    storage.barrier().unwrap();
    storage.create(&manifest(1), &[0; 7]).unwrap();
    storage.create(&manifest(1), &[0; 7]).unwrap_err();
    storage.read_range(&container(1), 10, 20).unwrap();
    storage.read(&container(2), u64::MAX).unwrap();
    storage.read(&container(3), u64::MAX).unwrap_err();
    storage.delete(&container(2)).unwrap();
    storage.list(Listing::All).unwrap();
    storage.list_after(Listing::All, &manifest(1)).unwrap();
    let requests = [ReadRequest::whole(container(1), 100), ReadRequest::range(container(1), 90, 10)];
    storage.read_many(&requests, &mut |_, _| ControlFlow::Continue(()));
    storage.size_of(&container(1)).unwrap();
    storage.delete_many(&[container(4), container(5)]).unwrap();

    let calls = storage.reset();
    let containers = calls.of_kind(NameKind::Container);
    assert_eq!((containers.puts, containers.bytes_written, containers.deletes), (2, 150, 3));
    assert_eq!((containers.reads, containers.range_reads, containers.bytes_read), (3, 2, 180));
    assert_eq!((containers.sizes, calls.read_batches, calls.delete_batches), (1, 1, 1));
    assert_eq!((calls.of(&manifest(1)).creates, calls.of(&manifest(1)).bytes_written), (2, 7));
    assert_eq!((calls.barriers, calls.lists, calls.total().bytes_written), (1, 2, 157));
    assert_eq!(storage.calls(), StorageCalls::default());
}
