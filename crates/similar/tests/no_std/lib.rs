//! A user of `siltstone-similar` on a machine without an operating system: `cargo xtask cross` compiles it. It brings
//! the panic handler that `std` would bring, so were `std` anywhere below it, there would be two and it would not
//! compile.
#![no_std]

use core::panic::PanicInfo;
use siltstone_similar::sketch::{Shape, names};

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// The first feature of `chunk`, as the `index`-th of all methods finds it.
pub fn first_feature(index: usize, chunk: &[u8]) -> Option<u32> {
    let sketcher = siltstone_similar::sketch::by_name(names().nth(index)?, Shape::DEFAULT).ok()?;
    sketcher.sketch(chunk)?.features().first().copied()
}
