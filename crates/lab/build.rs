//! Tells the program its version, with the commit it is built from where there is one to tell.

use std::process::Command;

fn main() {
    // Of whatever is measured, not of the lab alone; the log grows with every commit and every switch of branches.
    println!("cargo::rerun-if-changed=../../crates");
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    let version = env!("CARGO_PKG_VERSION");
    match git(&["describe", "--always", "--dirty=, changed", "--abbrev=12", "--exclude=*"]) {
        Some(commit) => println!("cargo::rustc-env=SILT_LAB_VERSION={version} ({commit})"),
        None => println!("cargo::rustc-env=SILT_LAB_VERSION={version}"),
    }
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok().filter(|output| output.status.success())?;
    let said = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!said.is_empty()).then_some(said)
}
