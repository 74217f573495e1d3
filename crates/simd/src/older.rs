//! Stand-ins for instructions that compilers before Rust 1.89 do not know. Nothing calls them: with such a compiler no
//! [`Isa`](crate::Isa) has them.

use core::arch::x86_64::__m256i;

pub(crate) fn _mm256_gf2p8affine_epi64_epi8<const B: i32>(_: __m256i, _: __m256i) -> __m256i {
    unreachable!("no level has it")
}

pub(crate) fn _mm256_aesenc_epi128(_: __m256i, _: __m256i) -> __m256i {
    unreachable!("no level has it")
}

pub(crate) fn _mm256_aesenclast_epi128(_: __m256i, _: __m256i) -> __m256i {
    unreachable!("no level has it")
}
