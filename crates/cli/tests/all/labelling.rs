//! `silt tag` and `silt describe` by the real program.

use crate::common::{Sandbox, ran};
use serde_json::Value;

fn listed(sandbox: &Sandbox) -> Vec<Value> {
    let told = sandbox.run(&["snapshots", "--json"]).ok().json();
    told.as_array().expect("an array").clone()
}

#[test]
fn tags_and_descriptions_change_and_ids_do_not() {
    let sandbox = Sandbox::of_files(1);
    sandbox.backup(&["--tag", "old"]);
    let before = listed(&sandbox);
    let told = sandbox.run(&["tag", "--add", "a,b"]).ok().stdout;
    assert_eq!(told, "changed 2 snapshots\n");
    assert_eq!(sandbox.run(&["tag", "--remove", "old", "--tag", "old"]).ok().stdout, "changed 1 snapshot\n");
    assert_eq!(sandbox.run(&["tag", "--set", "only", "latest"]).ok().stdout, "changed 1 snapshot\n");
    sandbox.run(&["describe", "latest", "before the move"]).ok();
    let after = listed(&sandbox);
    assert_eq!((&after[0]["tags"], &after[1]["tags"]), (&["a", "b"].as_slice().into(), &["only"].as_slice().into()));
    assert_eq!(after[1]["description"], "before the move");
    assert!(before.iter().zip(&after).all(|(before, after)| before["id"] == after["id"]));
    let summary = sandbox.run(&["tag", "--json", "--set", "", "latest"]).ok().message("summary");
    assert_eq!(summary["changed_snapshots"], 1);
    assert_eq!(sandbox.run(&["check", "--read-data"]).ok().status, 0);
}

#[test]
fn a_change_has_to_be_asked_for() {
    let sandbox = Sandbox::of_files(1);
    let refused = ran(sandbox.silt().args(["tag", "latest"])).exits(1);
    assert!(refused.stderr.contains("--add") && refused.stderr.contains("--set"), "{}", refused.stderr);
    let refused = ran(sandbox.silt().args(["tag", "--set", "a", "--add", "b"])).exits(1);
    assert!(refused.stderr.contains("cannot be used with"), "{}", refused.stderr);
}
