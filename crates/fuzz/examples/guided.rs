//! The program of the fuzzer: every target, of which the environment chooses one. An example, so that its dependencies
//! have the features that those of tests have, and are compiled once (`cargo xtask fuzz`).
#![no_main]

libfuzzer_sys::fuzz_target!(init: siltstone_fuzz::begin(option_env!("SILTSTONE_FUZZ_COMMIT")), |data: &[u8]| {
    siltstone_fuzz::run_chosen(data);
});
