//! Tests of what several parts of the store do together, one file or folder for each subject, all in one program, which
//! is linked once. `cargo test -p siltstone-store --test all lease::` runs those of one file.

mod common;
mod container_reads;
mod interleavings;
mod keys_at_once;
mod large_manifest;
mod lease;
mod listed_and_missing;
mod renewals;
mod unknown_outcomes;
mod write_only;
