//! Guarded bytes are the bytes, and who reads beside them does not live on.
#![cfg(all(feature = "guarded", target_os = "linux"))]
#![allow(missing_docs)]

use siltstone_simd::guarded::Guarded;

#[test]
fn guarded_bytes_are_the_bytes() {
    for len in [0, 1, 2, 4095, 4096, 4097, 70_000] {
        let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        assert_eq!(*Guarded::ending(&bytes), bytes);
        assert_eq!(*Guarded::beginning(&bytes), bytes);
    }
}

/// A child process reads where the variable says. Emulators cannot start one.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_read_beside_guarded_bytes_ends_the_process() {
    const VARIABLE: &str = "SILTSTONE_TEST_READS";
    let lives_on = |place: &str| {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "a_read_beside_guarded_bytes_ends_the_process"]).env(VARIABLE, place);
        child.output().unwrap().status.success()
    };
    let (ending, beginning) = (Guarded::ending(&[1; 100]), Guarded::beginning(&[2; 100]));
    let (first, after) = (beginning.as_ptr(), ending.as_ptr_range().end);
    let at = match std::env::var(VARIABLE).as_deref() {
        Ok("first") => first,
        Ok("before") => first.wrapping_sub(1),
        Ok("last") => after.wrapping_sub(1),
        Ok("after") => after,
        _ => {
            assert!(lives_on("first") && lives_on("last"));
            assert!(!lives_on("before") && !lives_on("after"));
            return;
        }
    };
    // SAFETY: `first` and `last` are bytes of the slices. The others are not: that the process ends here is the test.
    std::hint::black_box(unsafe { at.read_volatile() });
}
