//! `SILT_ISA` lowers the choice. It is read once in a process, so each value is tried in a process of its own, which
//! emulators cannot start.
#![cfg(all(feature = "std", target_arch = "x86_64"))]
#![allow(missing_docs)]

use siltstone_simd::Isa;
use std::process::Command;

/// Tells what is best and what is chosen where the variable has this value: the parent starts this test again with it.
fn told(value: &str) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "the_variable_lowers_the_choice", "--nocapture"]).env(Isa::VARIABLE, value).env(CHILD, "1");
    String::from_utf8(child.output().unwrap().stdout).unwrap()
}

const CHILD: &str = "SILTSTONE_TEST_TELLS";

#[test]
fn the_variable_lowers_the_choice() {
    if std::env::var_os(CHILD).is_some() {
        let chosen = Isa::chosen().map_or_else(|error| error.to_string(), |isa| isa.to_string());
        println!("best is {}; chosen is {chosen};", Isa::best());
        return;
    }
    for isa in Isa::available() {
        let told = told(isa.name());
        assert!(told.contains(&format!("best is {isa}; chosen is {isa};")), "{told}");
    }
    let highest = Isa::highest();
    assert!(told("").contains(&format!("best is {highest}; chosen is {highest};")));
    let unknown = told("mmx");
    assert!(unknown.contains("SILT_ISA=mmx") && unknown.contains(" scalar portable sse2"), "{unknown}");
    assert!(unknown.contains(&format!("best is {highest};")), "{unknown}");
}
