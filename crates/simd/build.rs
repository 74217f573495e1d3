//! Tells the crate whether the compiler knows AVX-512, and GFNI and VAES, which came with it in Rust 1.89.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(knows_avx512)");
    autocfg::rerun_path("build.rs");
    if autocfg::new().probe_rustc_version(1, 89) {
        autocfg::emit("knows_avx512");
    }
}
