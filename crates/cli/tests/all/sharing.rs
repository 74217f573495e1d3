//! Series that share, by the real program: what is borrowed, what is said of it, and what outlives the lender.

use crate::common::{Sandbox, noise, ran};
use serde_json::Value;

/// A sandbox with some megabytes, backed up by one host.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    for file in 0..16 {
        sandbox.write(&format!("file{file}"), noise(file, 400_000));
    }
    sandbox.backup(&["--host", "one"]);
    sandbox
}

fn backed_up(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    let source = sandbox.source();
    let ran = ran(sandbox.silt().args(["backup", "--json", source.as_str()]).args(arguments)).ok();
    let last = ran.stdout.lines().last().expect("a summary");
    serde_json::from_str(last).expect("a summary")
}

#[test]
fn a_second_host_borrows_and_says_so() {
    let sandbox = sandbox();
    let second = backed_up(&sandbox, &["--host", "two"]);
    assert!(second["bytes_borrowed"].as_u64().expect("a number") > 5_000_000, "{second}");
    assert!(second["data_added"].as_u64().expect("a number") < 1_500_000, "{second}");
    let alone = backed_up(&sandbox, &["--host", "three", "--borrow", "never"]);
    assert_eq!(alone["chunks_borrowed"], 0);

    let told = ran(sandbox.silt().args(["backup", "--host", "four", sandbox.source().as_str()])).ok();
    assert!(told.stdout.contains("chunks of other series"), "{}", told.stdout);
    let begins = format!("this begins the series 'four:{}', beside '", sandbox.source());
    assert!(told.stderr.contains(&begins), "{}", told.stderr);
    let listed = ran(sandbox.silt().arg("snapshots")).ok().stdout;
    let source = sandbox.source();
    let borrowing = format!("Series 'four:{source}', 'two:{source}' borrow data of 'one:{source}'.");
    assert!(listed.ends_with(&format!("{borrowing}\n")), "{listed}");
    let json: Value =
        serde_json::from_str(&ran(sandbox.silt().args(["snapshots", "--json"])).ok().stdout).expect("JSON");
    let lenders: Vec<usize> =
        json.as_array().expect("a list").iter().map(|of| of["borrows_of"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(lenders, [0, 1, 0, 1], "{json}");

    let stats = ran(sandbox.silt().arg("stats")).ok();
    let lender = format!("of 'one:{}'", sandbox.source());
    assert!(stats.stdout.contains(&lender), "{}", stats.stdout);
    let json: Value = serde_json::from_str(&ran(sandbox.silt().args(["stats", "--json"])).ok().stdout).expect("JSON");
    let pairs = json["borrowed"].as_array().expect("a list");
    assert_eq!(pairs.len(), 2, "{json}");
    assert!(pairs.iter().all(|pair| pair["bytes"].as_u64().expect("a number") > 5_000_000), "{json}");
}

#[test]
fn what_is_borrowed_outlives_the_lender() {
    let sandbox = sandbox();
    backed_up(&sandbox, &["--host", "two"]);
    ran(sandbox.silt().args(["forget", "--host", "one", "--unsafe-allow-remove-all"])).ok();
    let target = sandbox.path("target");
    ran(sandbox.silt().args(["restore", "latest", "--host", "two", "--target"]).arg(&target)).ok();
    let restored = target.join(sandbox.source().trim_start_matches('/'));
    (0..16).for_each(|file| {
        let content = std::fs::read(restored.join(format!("file{file}"))).expect("a file");
        assert_eq!(content, noise(file, 400_000));
    });
    ran(sandbox.silt().args(["maintain", "--own"])).ok();
    let stats = ran(sandbox.silt().args(["stats", "--json"])).ok();
    let json: Value = serde_json::from_str(&stats.stdout).expect("JSON");
    assert_eq!(json["borrowed"].as_array().map(Vec::len), Some(0), "{json}");
    ran(sandbox.silt().args(["check", "--read-data"])).ok();
}

#[test]
fn a_series_that_is_not_there_lends_nothing() {
    let sandbox = sandbox();
    let source = sandbox.source();
    let refused = ran(sandbox.silt().args(["backup", "--host", "two", "--borrow", "nobody", source.as_str()]));
    assert_eq!(refused.status, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("'nobody' lends nothing"), "{}", refused.stderr);
}
