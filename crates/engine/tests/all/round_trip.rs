//! A backup is restored as it was, through the whole engine on a simulated disk.

use crate::common::{self, Sandbox, tree};
use siltstone_engine::check::ReadData;

#[test]
fn what_is_backed_up_is_restored_and_checks_clean() {
    let sandbox = Sandbox::new();
    sandbox.write("a/one", b"one");
    sandbox.write("a/two", &common::noise(1, 300_000));
    sandbox.write("b/empty", b"");
    sandbox.symlink("b/link", "../a/one");
    let first = sandbox.backup();
    let before = tree::read(&sandbox.source());

    sandbox.write("a/two", &common::noise(2, 400_000));
    sandbox.remove("b/empty");
    let second = sandbox.backup();
    let after = tree::read(&sandbox.source());

    assert_eq!(sandbox.restored(first), before);
    assert_eq!(sandbox.restored(second), after);
    let report = sandbox.check(ReadData::All);
    assert_eq!(report.findings, []);
    assert_eq!(report.snapshots, 2);

    let dry = sandbox.forget(&[first], true);
    let real = sandbox.forget(&[first], false);
    assert_eq!(dry.bytes_after, real.bytes_after);
    assert_eq!(sandbox.restored(second), after);
    assert_eq!(sandbox.check(ReadData::All).findings, []);
}
