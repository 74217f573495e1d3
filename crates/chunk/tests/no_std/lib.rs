//! A user of `siltstone-chunk` on a machine without an operating system: `cargo xtask cross` compiles it. It brings the
//! panic handler that `std` would bring, so were `std` anywhere below it, there would be two and it would not compile.
#![no_std]

use core::panic::PanicInfo;
use siltstone_chunk::{Sizes, names};

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// Length of the first chunk of `data`, as the `index`-th of all chunkers cuts it.
pub fn first_chunk(index: usize, data: &[u8]) -> Option<usize> {
    let chunker = siltstone_chunk::by_name(names().nth(index)?, Sizes::DEFAULT, &[0; 32]).ok()?;
    Some(chunker.cut(data))
}
