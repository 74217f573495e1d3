//! Bytes beside a page that cannot be touched: who reads or writes past them ends the process at once. For tests of
//! code that reaches memory through intrinsics.

use core::ops::Deref;
use core::ptr::{self, NonNull};
use core::slice;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// A copy of some bytes that ends exactly where an inaccessible page begins, or begins where one ends.
#[derive(Debug)]
pub struct Guarded {
    /// The inaccessible page, pages that hold the bytes, another inaccessible page.
    mapping: NonNull<u8>,
    mapping_bytes: usize,
    /// Begin of the bytes in the mapping.
    first: usize,
    len: usize,
}

impl Guarded {
    /// The byte after the last is inaccessible.
    ///
    /// # Panics
    /// If the system gives no memory.
    pub fn ending(bytes: &[u8]) -> Self {
        Self::new(bytes, |inner_bytes| inner_bytes - bytes.len())
    }

    /// The byte before the first is inaccessible.
    ///
    /// # Panics
    /// If the system gives no memory.
    pub fn beginning(bytes: &[u8]) -> Self {
        Self::new(bytes, |_| 0)
    }

    /// `place` says where in the accessible pages, of which it is told the size, the bytes go.
    fn new(bytes: &[u8], place: impl Fn(usize) -> usize) -> Self {
        let page = rustix::param::page_size();
        let inner_bytes = bytes.len().max(1).next_multiple_of(page);
        let mapping_bytes = inner_bytes + 2 * page;
        let first = page + place(inner_bytes);
        // SAFETY: new memory at a place of the system's choice; the accessible part of it lies inside, and the bytes
        // lie inside that. Nobody else knows of it yet.
        let mapping = unsafe {
            let mapping = mmap_anonymous(ptr::null_mut(), mapping_bytes, ProtFlags::empty(), MapFlags::PRIVATE);
            let mapping = mapping.expect("memory for guarded bytes").cast::<u8>();
            let writable = MprotectFlags::READ | MprotectFlags::WRITE;
            mprotect(mapping.add(page).cast(), inner_bytes, writable).expect("access to guarded bytes");
            ptr::copy_nonoverlapping(bytes.as_ptr(), mapping.add(first), bytes.len());
            NonNull::new_unchecked(mapping)
        };
        Self { mapping, mapping_bytes, first, len: bytes.len() }
    }
}

impl Deref for Guarded {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `new` has put `len` bytes there, and they are accessible and unchanged as long as this value lives.
        unsafe { slice::from_raw_parts(self.mapping.as_ptr().add(self.first), self.len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` has mapped; no reference into it outlives this value. It is not used again, so a
        // failure does no harm.
        let _ = unsafe { munmap(self.mapping.as_ptr().cast(), self.mapping_bytes) };
    }
}
