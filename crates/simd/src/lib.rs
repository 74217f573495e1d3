//! Instruction sets: one trait for vectors of bytes, chosen when the program runs.
//!
//! A [`Kernel`] is one algorithm written once over the [`Simd`] trait, in safe code. [`Isa::run`] runs it with the
//! instructions of an [`Isa`], a value that exists only for what this CPU has; so it is the proof every `unsafe` block
//! of this crate rests on. Wrappers are made by one macro; the body is inlined into them, so there is one jump per run
//! and none per vector. Loads check their bounds: no kernel can read outside its slice.
//!
//! | name | lanes | what it adds |
//! |---|---|---|
//! | `scalar` | | no vectors: the algorithm's own scalar body |
//! | `portable` | 64 | plain arrays, which the compiler turns into what the target has (VSX on POWER) |
//! | `sse2` | 16 | x86-64's baseline |
//! | `ssse3` | 16 | byte shuffles |
//! | `avx2` | 32 | |
//! | `avx2-gfni` | 32 | 8x8 bit matrices, AES on two blocks |
//! | `avx512` | 64 | F, BW, VL, DQ |
//! | `avx512-gfni` | 64 | VBMI, bit matrices, AES on four blocks |
//! | `neon` | 16 | aarch64's baseline |
//!
//! The best one is taken unless the environment variable `SILT_ISA` names a lower one.
//!
//! ```
//! use siltstone_simd::{Isa, Kernel, Simd};
//!
//! /// Largest byte of whole vectors.
//! struct Largest<'d>(&'d [u8]);
//!
//! impl Kernel for Largest<'_> {
//!     type Output = u8;
//!     #[inline(always)]
//!     fn run<S: Simd>(self, s: S) -> u8 {
//!         let mut largest = s.splat(0);
//!         for block in self.0.chunks_exact(S::LANES) {
//!             largest = s.max(largest, s.load(block, 0));
//!         }
//!         s.reduce_max(largest)
//!     }
//! }
//!
//! let data = [1, 7, 3, 9].repeat(64);
//! for isa in Isa::available() {
//!     assert_eq!(isa.run(Largest(&data)).unwrap_or(9), 9, "{isa}");
//! }
//! ```

#![cfg_attr(not(feature = "std"), no_std)]

mod aes;
#[cfg(all(feature = "guarded", target_os = "linux"))]
pub mod guarded;
mod isa;
mod matrix;
mod portable;
mod vector;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(all(target_arch = "x86_64", knows_avx512))]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(all(target_arch = "x86_64", not(knows_avx512)))]
mod older;
#[cfg(target_arch = "x86_64")]
mod sse;

pub use aes::AesKeys;
#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;
#[cfg(all(target_arch = "x86_64", knows_avx512))]
pub use avx512::Avx512;
pub use isa::Isa;
#[cfg(feature = "std")]
pub use isa::UnknownIsa;
pub use matrix::Matrix;
#[cfg(target_arch = "aarch64")]
pub use neon::Neon;
pub use portable::Portable;
#[cfg(target_arch = "x86_64")]
pub use sse::Sse;
pub use vector::{Kernel, Simd, Words};
