//! Every operation of every instruction set against plain arithmetic, lane by lane.
#![allow(missing_docs, clippy::cast_possible_truncation)]

use siltstone_simd::{Isa, Kernel, Matrix, Simd};

/// Bytes that look random, the same everywhere.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let step = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) >> 56) as u8
    };
    std::iter::repeat_with(step).take(len).collect()
}

fn mask(lanes: impl Iterator<Item = bool>) -> u64 {
    lanes.enumerate().fold(0, |mask, (lane, set)| mask | u64::from(set) << lane)
}

fn bytes<S: Simd>(s: S, a: S::Bytes) -> Vec<u8> {
    (0..S::LANES).map(|lane| (0..=255).find(|byte| s.eq(a, s.splat(*byte)) >> lane & 1 == 1).unwrap()).collect()
}

struct Bytes<'d>(&'d [u8], &'d [u8]);

impl Kernel for Bytes<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let pairs = || self.0[1..=S::LANES].iter().zip(&self.1[2..S::LANES + 2]).map(|(a, b)| (*a, *b));
        let (a, b) = (s.load(self.0, 1), s.load(self.1, 2));
        assert_eq!(bytes(s, a), self.0[1..=S::LANES], "load");
        assert_eq!(bytes(s, s.max(a, b)), pairs().map(|(a, b)| a.max(b)).collect::<Vec<_>>(), "max");
        assert_eq!(bytes(s, s.min(a, b)), pairs().map(|(a, b)| a.min(b)).collect::<Vec<_>>(), "min");
        let differences = pairs().map(|(a, b)| a.saturating_sub(b)).collect::<Vec<_>>();
        assert_eq!(bytes(s, s.sub_saturating(a, b)), differences, "sub_saturating");
        assert_eq!(bytes(s, s.add(a, b)), pairs().map(|(a, b)| a.wrapping_add(b)).collect::<Vec<_>>(), "add");
        let mean = |(a, b)| (u16::from(a) + u16::from(b)).div_ceil(2) as u8;
        assert_eq!(bytes(s, s.mean(a, b)), pairs().map(mean).collect::<Vec<_>>(), "mean");
        assert_eq!(bytes(s, s.shl::<4>(a)), pairs().map(|(a, _)| a << 4).collect::<Vec<_>>(), "shl");
        assert_eq!(bytes(s, s.shl::<1>(a)), pairs().map(|(a, _)| a << 1).collect::<Vec<_>>(), "shl");
        assert_eq!(bytes(s, s.shr::<2>(a)), pairs().map(|(a, _)| a >> 2).collect::<Vec<_>>(), "shr");
        assert_eq!(bytes(s, s.shr::<7>(a)), pairs().map(|(a, _)| a >> 7).collect::<Vec<_>>(), "shr");
        assert_eq!(bytes(s, s.xor(a, b)), pairs().map(|(a, b)| a ^ b).collect::<Vec<_>>(), "xor");
        assert_eq!(bytes(s, s.and(a, b)), pairs().map(|(a, b)| a & b).collect::<Vec<_>>(), "and");
        assert_eq!(s.eq(a, b), mask(pairs().map(|(a, b)| a == b)), "eq");
        assert_eq!(s.ge(a, b), mask(pairs().map(|(a, b)| a >= b)), "ge");
        assert_eq!(s.gt(a, b), mask(pairs().map(|(a, b)| a > b)), "gt");
        assert_eq!(s.any_eq(a, b), pairs().any(|(a, b)| a == b), "any_eq");
        assert_eq!(s.any_ge(a, b), pairs().any(|(a, b)| a >= b), "any_ge");
        assert_eq!(s.any_gt(a, b), pairs().any(|(a, b)| a > b), "any_gt");
        assert_eq!(s.reduce_max(a), pairs().map(|(a, _)| a).max().unwrap(), "reduce_max");
        assert_eq!(s.reduce_min(a), pairs().map(|(a, _)| a).min().unwrap(), "reduce_min");
        let joined = [&self.0[1..=S::LANES], &self.1[2..S::LANES + 2]].concat();
        assert_eq!(bytes(s, s.shift_in::<4>(a, b)), joined[S::LANES - 4..2 * S::LANES - 4], "shift_in");
        assert_eq!(bytes(s, s.shift_in::<8>(a, b)), joined[S::LANES - 8..2 * S::LANES - 8], "shift_in");
        let columns: [u8; 8] = self.1[..8].try_into().unwrap();
        let matrix = Matrix::from_columns(columns);
        assert_eq!(bytes(s, s.apply(&matrix, a)), pairs().map(|(a, _)| matrix.apply(a)).collect::<Vec<_>>(), "apply");
    }
}

struct Words<'d>(&'d [u8]);

impl Kernel for Words<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let word = |at: usize| u32::from_le_bytes(self.0[at..at + 4].try_into().unwrap());
        let first: [u32; 16] = std::array::from_fn(|i| word(4 * i));
        let second: [u32; 16] = std::array::from_fn(|i| if i % 3 == 0 { first[i] } else { word(64 + 4 * i) });
        let (a, b) = (s.words_load(&first), s.words_load(&second));
        let found = |vector| {
            let mut words = [0; 16];
            s.words_store(vector, &mut words);
            words[..S::WORDS].to_vec()
        };
        let want = |f: &dyn Fn(u32, u32) -> u32| -> Vec<u32> {
            first.iter().zip(&second).take(S::WORDS).map(|(a, b)| f(*a, *b)).collect()
        };
        assert_eq!(found(s.words_splat(first[3])), vec![first[3]; S::WORDS]);
        assert_eq!(found(s.words_add(a, b)), want(&u32::wrapping_add));
        assert_eq!(found(s.words_max(a, b)), want(&u32::max));
        assert_eq!(found(s.words_min(a, b)), want(&u32::min));
        assert_eq!(found(s.words_mul(a, b)), want(&u32::wrapping_mul));
        assert_eq!(found(s.words_xor(a, b)), want(&|a, b| a ^ b));
        assert_eq!(found(s.words_shl::<4>(a)), want(&|a, _| a << 4));
        assert_eq!(found(s.words_shr::<8>(a)), want(&|a, _| a >> 8));
        let table: [u32; 256] = std::array::from_fn(|i| (i as u32).wrapping_mul(0x9E37_79B9));
        assert_eq!(found(s.words_lookup(&table, a)), want(&|a, _| table[a as usize % 256]));
        assert_eq!(found(s.words_map(a, u32::count_ones)), want(&|a, _| a.count_ones()));
        let places: [u32; 16] = std::array::from_fn(|i| (252 + 37 * i as u32) % 253);
        assert_eq!(
            found(s.words_gather(&self.0[..256], s.words_load(&places))),
            places[..S::WORDS].iter().map(|at| word(*at as usize)).collect::<Vec<_>>()
        );
        assert_eq!(found(s.words_rotr::<16>(a)), want(&|a, _| a.rotate_right(16)));
        assert_eq!(found(s.words_rotr::<12>(a)), want(&|a, _| a.rotate_right(12)));
        assert_eq!(found(s.words_rotr::<8>(a)), want(&|a, _| a.rotate_right(8)));
        assert_eq!(found(s.words_rotr::<7>(a)), want(&|a, _| a.rotate_right(7)));
        assert_eq!(s.words_lt(a, b), mask((0..S::WORDS).map(|i| first[i] < second[i])));
        let sliding = |at: usize| u32::from_be_bytes(self.0[at..at + 4].try_into().unwrap());
        let end = &self.0[..5 + S::WORDS + 3];
        assert_eq!(found(s.words_sliding(end, 5)), (0..S::WORDS).map(|j| sliding(5 + j)).collect::<Vec<_>>());
        let joined = [&first[..S::WORDS], &second[..S::WORDS]].concat();
        assert_eq!(found(s.words_shift_in::<4>(a, b)), joined[S::WORDS - 4..2 * S::WORDS - 4]);
        let blocks: [[u8; 64]; 16] = std::array::from_fn(|i| self.0[7 * i..7 * i + 64].try_into().unwrap());
        let columns = s.words_columns(&blocks.each_ref());
        for (i, column) in columns.into_iter().enumerate() {
            assert_eq!(found(column), (0..S::WORDS).map(|j| word(7 * j + 4 * i)).collect::<Vec<_>>(), "column {i}");
        }
        let mut rows = [[7; 32]; 16];
        s.words_rows(columns[8..].try_into().unwrap(), &mut rows);
        let want = |j: usize| if j < S::WORDS { blocks[j][32..].try_into().unwrap() } else { [7; 32] };
        assert_eq!(rows, std::array::from_fn(want), "rows");
        s.prefetch(self.0, 300);
    }
}

#[test]
fn operations_on_bytes_are_plain_arithmetic() {
    for isa in Isa::available() {
        for seed in 0..8 {
            let (a, mut b) = (noise(seed, 80), noise(seed + 100, 80));
            for i in (0..64).step_by(3) {
                b[i + 2] = a[i + 1];
            }
            isa.run(Bytes(&a, &b));
            isa.run(Bytes(&a, &[0xFF; 80]));
            isa.run(Bytes(&[0; 80], &a));
            isa.run(Bytes(&[seed as u8; 80], &[seed as u8; 80]));
        }
    }
}

#[test]
fn operations_on_words_are_plain_arithmetic() {
    for isa in Isa::available() {
        for seed in 0..8 {
            isa.run(Words(&noise(seed, 256)));
        }
    }
}

#[test]
fn a_word_beyond_the_slice_panics() {
    struct Beyond<'d>(&'d [u8], u32);
    impl Kernel for Beyond<'_> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            let mut places = [0; 16];
            places[S::WORDS - 1] = self.1;
            s.words_gather(self.0, s.words_load(&places));
        }
    }
    for isa in Isa::available().filter(|isa| *isa != Isa::SCALAR) {
        for (len, place) in [(100, 97), (100, u32::MAX), (100, 1 << 31), (3, 0), (0, 0)] {
            let beyond = || isa.run(Beyond(&[0; 100][..len], place));
            assert!(std::panic::catch_unwind(beyond).is_err(), "{isa}: {place} of {len}");
        }
    }
}

#[test]
#[should_panic(expected = "out of range")]
fn a_load_beyond_the_slice_panics() {
    struct Beyond<'d>(&'d [u8]);
    impl Kernel for Beyond<'_> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            s.load(self.0, self.0.len() - S::LANES + 1);
        }
    }
    Isa::best().run(Beyond(&[0; 100]));
}
