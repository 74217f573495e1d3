//! The targets without a fuzzer: on their seeds, on those cut short and flipped, on the kept corpus, and on every input
//! that once failed.

use siltstone_fuzz::{TARGETS, corpus, seeds};
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
fn no_input_that_earlier_campaigns_kept_fails() {
    for target in TARGETS {
        for input in corpus::inputs(&root().join("fuzz/corpus"), target.name).expect("an archive") {
            (target.run)(&input);
        }
    }
}

#[test]
fn kept_inputs_come_back_as_they_were_and_the_largest_beyond_the_bound_are_left_out() {
    let (folder, archives) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let inputs = [&b""[..], b"an input", &[7; 100 << 10], &[8; 200 << 10]];
    for (number, input) in inputs.iter().enumerate() {
        fs::write(folder.path().join(number.to_string()), input).expect("written");
    }
    corpus::pack(folder.path(), archives.path(), "slot").expect("packed");
    let kept = corpus::inputs(archives.path(), "slot").expect("read");
    assert!(kept.iter().eq(&inputs[..3]), "{} inputs", kept.len());
    assert!(corpus::inputs(archives.path(), "tar").expect("none").is_empty());
}

#[test]
fn inputs_that_once_failed_belong_to_targets_that_are_there() {
    let folders = fs::read_dir(root().join("fuzz/regressions")).expect("a folder of regressions");
    for folder in folders {
        let name = folder.expect("a folder").file_name();
        assert!(TARGETS.iter().any(|target| name == target.name), "there is no target {}", name.display());
    }
}

#[test]
fn names_of_targets_are_one_word_each_and_in_order() {
    let names = TARGETS.map(|target| target.name);
    assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
}
