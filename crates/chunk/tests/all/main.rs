//! Tests of all chunkers: one file for each subject, all in one program, which is compiled and linked once, here and
//! for other processors. `cargo test -p siltstone-chunk --test all extremal::` runs those of one file.

mod averages;
mod common;
mod extremal;
mod fingerprints;
mod forms;
mod gear_nc2;
mod golden;
#[cfg(target_os = "linux")]
mod guarded;
mod hash_based;
#[cfg(feature = "std")]
mod stream;
mod windowed;
