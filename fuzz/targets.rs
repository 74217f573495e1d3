//! The program of the fuzzer: every target of `crates/fuzz`, of which the environment chooses one.
#![no_main]

libfuzzer_sys::fuzz_target!(init: siltstone_fuzz::begin(option_env!("SILTSTONE_FUZZ_COMMIT")), |data: &[u8]| {
    siltstone_fuzz::run_chosen(data);
});
