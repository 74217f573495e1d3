//! Tests of sketches, deltas and regions: one file for each subject, all in one program, which is compiled and linked
//! once, here and for other processors. `cargo test -p siltstone-similar --test all regions::` runs those of one file.

mod common;
mod deltas;
mod deltas_golden;
mod deltas_hostile;
mod golden;
#[cfg(target_os = "linux")]
mod guarded;
#[cfg(feature = "zstd")]
mod plain;
#[cfg(feature = "zstd")]
mod regions;
#[cfg(feature = "zstd")]
mod regions_golden;
#[cfg(feature = "zstd")]
mod regions_hostile;
mod sketches;
