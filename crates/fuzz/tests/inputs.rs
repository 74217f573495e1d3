//! The targets without a fuzzer: on their seeds, on those cut short and flipped, and on every input that once failed.

use siltstone_fuzz::{TARGETS, seeds};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn all_seeds() -> seeds::Seeds {
    let golden = root().join("crates/engine/tests/golden/v1/repository");
    seeds::all(&golden, seeds::GOLDEN_PASSWORD).expect("seeds of the golden repository")
}

/// A target whose seals no longer fit the format would refuse everything, and find nothing.
#[test]
fn every_target_takes_some_of_its_seeds_for_sound() {
    let seeds = all_seeds();
    for target in TARGETS {
        let inputs = seeds.get(target.name).unwrap_or_else(|| panic!("{} has no seeds", target.name));
        let sound = inputs.iter().filter(|input| (target.run)(input)).count();
        assert!(sound > 0, "{}: none of {} seeds", target.name, inputs.len());
    }
}

#[test]
fn seeds_cut_short_or_flipped_are_refused_or_taken_but_fail_nothing() {
    for (name, inputs) in all_seeds() {
        for input in inputs.iter().filter(|input| input.len() < 4096).take(4) {
            for at in (0..input.len()).step_by(1 + input.len() / 64) {
                siltstone_fuzz::run(name, &input[..at]);
                let mut flipped = input.clone();
                flipped[at] ^= 1 << (at % 8);
                siltstone_fuzz::run(name, &flipped);
            }
        }
    }
}

#[test]
fn no_input_that_once_failed_fails_again() {
    for folder in fs::read_dir(root().join("fuzz/regressions")).expect("a folder of regressions") {
        let folder = folder.expect("a folder").path();
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        for input in fs::read_dir(&folder).expect("inputs") {
            siltstone_fuzz::run(&name, &fs::read(input.expect("an input").path()).expect("its bytes"));
        }
    }
}

#[test]
fn every_target_is_a_program_of_the_fuzzer() {
    let names = |folder: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(root().join(folder)).expect("a folder");
        let stem = |path: PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
        entries.map(|entry| stem(entry.expect("a file").path())).collect()
    };
    let targets: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(names("fuzz/fuzz_targets"), targets);
    let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).expect("a manifest");
    for name in &targets {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name} is not in fuzz/Cargo.toml");
        let program = fs::read_to_string(root().join(format!("fuzz/fuzz_targets/{name}.rs"))).expect("a program");
        assert!(program.contains(&format!("run(\"{name}\", data)")), "{name} runs another target");
    }
    assert!(names("fuzz/regressions").is_subset(&targets), "inputs of a target that is not there");
}
