#![no_main]

libfuzzer_sys::fuzz_target!(init: siltstone_fuzz::begin(), |data: &[u8]| {
    siltstone_fuzz::run("config", data);
});
