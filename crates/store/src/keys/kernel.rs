//! Advice to the system about memory, made safe.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;

/// Bytes of a huge page, on most processors.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Asks for huge pages under memory that is about to be written. Where the system has none to give, or gives them by
/// itself, nothing changes.
pub(super) fn prefer_huge_pages<T>(memory: &mut [MaybeUninit<T>]) {
    let (start, bytes) = (memory.as_mut_ptr().cast::<u8>(), size_of_val(memory));
    let before = start.align_offset(HUGE_PAGE_BYTES);
    let whole = bytes.saturating_sub(before) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if whole > 0 {
        // SAFETY: these pages lie wholly in memory that is borrowed here alone, and advice changes no content.
        let advised =
            unsafe { rustix::mm::madvise(start.wrapping_add(before).cast(), whole, rustix::mm::Advice::LinuxHugepage) };
        tracing::trace!(bytes = whole, ?advised, "asked for huge pages");
    }
}
