//! The call to the C library that bounds what its allocator keeps, made safe.

#![allow(unsafe_code)]

/// Most arenas that glibc's allocator may have.
#[cfg(target_env = "gnu")]
const ARENAS_MAX: i32 = 4;

/// Bounds the arenas of glibc's allocator; to be called before threads are started.
///
/// By default there are up to eight for each core, and each keeps some ten MiB of what threads gave back to it. A
/// command that starts threads anew for each snapshot so came to more than its `--memory`. It is for such commands
/// alone: with fewer arenas threads wait for each other, which takes a twentieth more processor time.
pub(crate) fn bound_arenas() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it changes one number of the allocator, under the allocator's own lock. If it refuses, all is as before.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS_MAX);
    }
}
