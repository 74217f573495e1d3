//! BLAKE3's compression function on as many nodes at once as a vector has words.
//!
//! 1. **One lane, one node.** No word ever moves between lanes; only the blocks are transposed on loading
//!    (`words_columns`) and the results on storing. The state of 16 words and a block's 16 words are 32 vectors, as
//!    many as AVX-512 has registers. The seven rounds are written out, and the message is permuted by renaming it,
//!    which costs nothing.
//! 2. **Every input is a whole leaf**, so no block needs a check of its own: shorter ones are copied into one first.
//! 3. **The next group is fetched meanwhile.** Lanes read 1024 bytes apart, 64 bytes at a time, which no CPU foresees.

// The state's rows have BLAKE3's names.
#![allow(clippy::many_single_char_names, clippy::cast_possible_truncation)]

use super::{BLOCK_BYTES, LEAF_BYTES, Value};
use siltstone_simd::{Kernel, Simd};

/// Words in the widest vector.
const LANES_MAX: usize = 16;

/// The first half of BLAKE3's initialisation vector.
const INITIAL: [u32; 4] = [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A];

/// The flag that every block of a keyed hash has.
const KEYED: u32 = 1 << 4;

/// A lane's work: a leaf or a parent.
#[derive(Clone, Copy)]
pub(super) struct Node<'d> {
    /// Bytes to hash: at most a leaf, perhaps empty.
    pub(super) input: &'d [u8],
    pub(super) counter: u32,
    /// Flags of the first block.
    pub(super) first: u32,
    /// Flags of the last block.
    pub(super) last: u32,
    /// Place of the value that it computes.
    pub(super) place: u32,
}

impl Node<'_> {
    /// Blocks before the last one; an empty input has one block too.
    #[inline(always)]
    pub(super) fn last_block(&self) -> usize {
        self.input.len().saturating_sub(1) / BLOCK_BYTES
    }
}

/// Room for the inputs that are not whole leaves, one for each lane.
pub(super) type Padded = [[u8; LEAF_BYTES]; LANES_MAX];

/// Nothing copied yet.
pub(super) const PADDED: Padded = [[0; LEAF_BYTES]; LANES_MAX];

/// Computes the values of nodes. Those with more blocks come first.
pub(super) struct Compress<'a, 'd> {
    pub(super) key: &'a [u32; 8],
    pub(super) nodes: &'a [Node<'d>],
    pub(super) padded: &'a mut Padded,
    pub(super) values: &'a mut [Value],
}

impl Kernel for Compress<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut groups = self.nodes.chunks(S::WORDS);
        while let Some(group) = groups.next() {
            let next = groups.clone().next().unwrap_or_default();
            compress_group(s, self.key, group, next, self.padded, self.values);
        }
    }
}

/// The values of 1 ..= `WORDS` nodes. Those that have not ended yet are always the first `running`.
#[inline(always)]
fn compress_group<S: Simd>(
    s: S,
    key: &[u32; 8],
    group: &[Node<'_>],
    next: &[Node<'_>],
    padded: &mut Padded,
    values: &mut [Value],
) {
    let (mut counters, mut flags, mut lengths) = ([0; LANES_MAX], [KEYED; LANES_MAX], [64; LANES_MAX]);
    for (lane, node) in group.iter().enumerate() {
        counters[lane] = node.counter;
        flags[lane] |= node.first;
    }
    let (inputs, ahead) = (inputs(group, padded), ahead(next));
    let counters = s.words_load(&counters);
    let mut chain = [s.words_splat(0); 8];
    for (vector, word) in chain.iter_mut().zip(key) {
        *vector = s.words_splat(*word);
    }
    let mut running = group.len();
    for block in 0..LEAF_BYTES / BLOCK_BYTES {
        let at = block * BLOCK_BYTES;
        let ends = |node: &Node<'_>| node.last_block() == block;
        let any_ends = ends(&group[running - 1]);
        if any_ends {
            for (lane, node) in group.iter().enumerate().filter(|(_, node)| ends(node)) {
                flags[lane] |= node.last;
                lengths[lane] = (node.input.len() - at) as u32;
            }
        }
        let mut blocks = [&[0; BLOCK_BYTES]; LANES_MAX];
        for lane in 0..S::WORDS {
            blocks[lane] = block_at(inputs[lane], at);
            s.prefetch(ahead[lane], at);
        }
        let last_row = [counters, s.words_splat(0), s.words_load(&lengths), s.words_load(&flags)];
        chain = compress(s, chain, s.words_columns(&blocks), last_row);
        flags = [KEYED; LANES_MAX];
        if any_ends {
            let mut rows = [[0; 32]; LANES_MAX];
            s.words_rows(&chain, &mut rows);
            while running > 0 && ends(&group[running - 1]) {
                running -= 1;
                values[group[running].place as usize] = rows[running];
            }
            if running == 0 {
                return;
            }
        }
    }
}

/// Returns the bytes that each lane reads; lanes without a node read anything.
#[inline(always)]
fn inputs<'d>(group: &[Node<'d>], padded: &'d mut Padded) -> [&'d [u8; LEAF_BYTES]; LANES_MAX] {
    for (node, padded) in group.iter().zip(padded.iter_mut()).filter(|(node, _)| node.input.len() < LEAF_BYTES) {
        let (input, rest) = padded.split_at_mut(node.input.len());
        input.copy_from_slice(node.input);
        rest[..(node.last_block() + 1) * BLOCK_BYTES - input.len()].fill(0);
    }
    let mut inputs = padded.each_ref();
    for (input, node) in inputs.iter_mut().zip(group) {
        *input = node.input.first_chunk().unwrap_or(input);
    }
    inputs
}

#[inline(always)]
fn ahead<'d>(next: &[Node<'d>]) -> [&'d [u8]; LANES_MAX] {
    let mut ahead = [&[][..]; LANES_MAX];
    for (input, node) in ahead.iter_mut().zip(next) {
        *input = node.input;
    }
    ahead
}

#[inline(always)]
fn block_at(input: &[u8; LEAF_BYTES], at: usize) -> &[u8; BLOCK_BYTES] {
    input[at..at + BLOCK_BYTES].first_chunk().expect("a block is as long as itself")
}

/// One block per lane. The state's last row is counter (low and high word), bytes in the block, flags.
#[inline(always)]
fn compress<S: Simd>(s: S, chain: [S::Word; 8], m: [S::Word; 16], last_row: [S::Word; 4]) -> [S::Word; 8] {
    let [a0, a1, a2, a3, b0, b1, b2, b3] = chain;
    let [c0, c1, c2, c3] = INITIAL;
    let third_row = [s.words_splat(c0), s.words_splat(c1), s.words_splat(c2), s.words_splat(c3)];
    let mut v = [[a0, a1, a2, a3], [b0, b1, b2, b3], third_row, last_row];
    round(s, &mut v, &m);
    let m = permuted(m);
    round(s, &mut v, &m);
    let m = permuted(m);
    round(s, &mut v, &m);
    let m = permuted(m);
    round(s, &mut v, &m);
    let m = permuted(m);
    round(s, &mut v, &m);
    let m = permuted(m);
    round(s, &mut v, &m);
    let m = permuted(m);
    round(s, &mut v, &m);
    let mut chain = chain;
    for i in 0..4 {
        chain[i] = s.words_xor(v[0][i], v[2][i]);
        chain[i + 4] = s.words_xor(v[1][i], v[3][i]);
    }
    chain
}

/// The columns, then the diagonals.
#[inline(always)]
fn round<S: Simd>(s: S, v: &mut [[S::Word; 4]; 4], m: &[S::Word; 16]) {
    half_mix::<S, 16, 12>(s, v, [m[0], m[2], m[4], m[6]]);
    half_mix::<S, 8, 7>(s, v, [m[1], m[3], m[5], m[7]]);
    let [a, b, c, d] = *v;
    *v = [a, [b[1], b[2], b[3], b[0]], [c[2], c[3], c[0], c[1]], [d[3], d[0], d[1], d[2]]];
    half_mix::<S, 16, 12>(s, v, [m[8], m[10], m[12], m[14]]);
    half_mix::<S, 8, 7>(s, v, [m[9], m[11], m[13], m[15]]);
    let [a, b, c, d] = *v;
    *v = [a, [b[3], b[0], b[1], b[2]], [c[2], c[3], c[0], c[1]], [d[1], d[2], d[3], d[0]]];
}

/// Half of BLAKE3's G on four columns: one after the other, so that few vectors are in use at once (all four side by
/// side was 5 % slower on AVX2, 30 % on SSSE3), yet near enough for the CPU to overlap them.
#[inline(always)]
fn half_mix<S: Simd, const D: i32, const B: i32>(s: S, [a, b, c, d]: &mut [[S::Word; 4]; 4], m: [S::Word; 4]) {
    for i in 0..4 {
        a[i] = s.words_add(s.words_add(a[i], m[i]), b[i]);
        d[i] = s.words_rotr::<D>(s.words_xor(d[i], a[i]));
        c[i] = s.words_add(c[i], d[i]);
        b[i] = s.words_rotr::<B>(s.words_xor(b[i], c[i]));
    }
}

/// The message of the next round.
#[inline(always)]
fn permuted<W: Copy>(m: [W; 16]) -> [W; 16] {
    [m[2], m[6], m[3], m[10], m[7], m[0], m[4], m[13], m[1], m[11], m[12], m[5], m[9], m[14], m[15], m[8]]
}
