//! BLAKE3's compression function on as many nodes at once as a vector has words.
//!
//! Lane j of every vector belongs to node j of a group, so no word ever moves between lanes; only the blocks are
//! transposed (`words_columns`). The state of 16 words and a block's 16 words are 32 vectors, as many as AVX-512 has
//! registers. The seven rounds are written out and the message is permuted by renaming it, which costs nothing.
//!
//! While a group is worked on, the blocks of the next one are fetched: a lane's blocks lie 64 bytes apart and the lanes'
//! leaves 1024, which no CPU foresees.

use super::{BLOCK_BYTES, Value};
use siltstone_simd::{Kernel, Simd};

/// Words in the widest vector.
const LANES_MAX: usize = 16;

/// The first half of BLAKE3's initialisation vector.
const INITIAL: [u32; 4] = [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A];

/// The flag of every block of a keyed hash.
const KEYED: u32 = 1 << 4;

/// What one lane works on: a leaf or a parent.
#[derive(Clone, Copy)]
pub(super) struct Node<'d> {
    pub(super) input: &'d [u8],
    pub(super) counter: u32,
    /// Flags of the first block.
    pub(super) first: u32,
    /// Flags of the last block.
    pub(super) last: u32,
    /// Where its value goes.
    pub(super) place: usize,
}

impl Node<'_> {
    /// Blocks before the last one. An empty input has one block too.
    #[inline(always)]
    pub(super) fn last_block(&self) -> usize {
        self.input.len().saturating_sub(1) / BLOCK_BYTES
    }
}

/// Computes the chaining values of nodes. Those with more blocks come first.
pub(super) struct Compress<'a, 'd> {
    pub(super) key: &'a [u32; 8],
    pub(super) nodes: &'a [Node<'d>],
    pub(super) values: &'a mut [Value],
}

impl Kernel for Compress<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut groups = self.nodes.chunks(S::WORDS).peekable();
        while let Some(group) = groups.next() {
            let ahead = groups.peek().copied().unwrap_or_default();
            compress_group(s, self.key, group, ahead, self.values);
        }
    }
}

/// The values of 1 ..= `WORDS` nodes. Those that still run are always the first `running`.
#[inline(always)]
fn compress_group<S: Simd>(s: S, key: &[u32; 8], group: &[Node<'_>], ahead: &[Node<'_>], values: &mut [Value]) {
    let mut lanes = Lanes::new(group, ahead);
    let counters = s.words_load(&lanes.counters);
    let mut chain = [s.words_splat(0); 8];
    for (vector, word) in chain.iter_mut().zip(key) {
        *vector = s.words_splat(*word);
    }
    let (mut running, mut block) = (group.len(), 0);
    while running > 0 {
        let ends = block == group[running - 1].last_block();
        if ends {
            lanes.end(group, block);
        }
        let message = s.words_columns(&lanes.blocks::<S>(block));
        lanes.prefetch(s, block);
        let (lengths, flags) = (s.words_load(&lanes.lengths), s.words_load(&lanes.flags));
        chain = compress(s, chain, message, [counters, s.words_splat(0), lengths, flags]);
        lanes.flags = [KEYED; LANES_MAX];
        if ends {
            let mut rows = [[0; LANES_MAX]; 8];
            for (row, vector) in rows.iter_mut().zip(chain) {
                s.words_store(vector, row);
            }
            while running > 0 && group[running - 1].last_block() == block {
                running -= 1;
                values[group[running].place] = column(&rows, running);
            }
        }
        block += 1;
    }
}

/// What differs from lane to lane.
struct Lanes<'d> {
    inputs: [&'d [u8]; LANES_MAX],
    /// Inputs of the next group.
    ahead: [&'d [u8]; LANES_MAX],
    /// Last blocks that are not whole, with zeros behind.
    padded: [[u8; BLOCK_BYTES]; LANES_MAX],
    counters: [u32; LANES_MAX],
    lengths: [u32; LANES_MAX],
    flags: [u32; LANES_MAX],
}

impl<'d> Lanes<'d> {
    #[inline(always)]
    fn new(group: &[Node<'d>], ahead: &[Node<'d>]) -> Self {
        let mut lanes = Self {
            inputs: [&[]; LANES_MAX],
            ahead: [&[]; LANES_MAX],
            padded: [[0; BLOCK_BYTES]; LANES_MAX],
            counters: [0; LANES_MAX],
            lengths: [BLOCK_BYTES as u32; LANES_MAX],
            flags: [KEYED; LANES_MAX],
        };
        for (lane, node) in group.iter().enumerate() {
            lanes.inputs[lane] = node.input;
            lanes.counters[lane] = node.counter;
            lanes.flags[lane] |= node.first;
            let whole = node.input.len() / BLOCK_BYTES * BLOCK_BYTES;
            let rest = &node.input[whole..];
            if !rest.is_empty() {
                lanes.padded[lane][..rest.len()].copy_from_slice(rest);
            }
        }
        for (input, node) in lanes.ahead.iter_mut().zip(ahead) {
            *input = node.input;
        }
        lanes
    }

    /// Prepares the nodes that end with this block.
    #[inline(always)]
    fn end(&mut self, group: &[Node<'_>], block: usize) {
        for (lane, node) in group.iter().enumerate().filter(|(_, node)| node.last_block() == block) {
            self.lengths[lane] = (node.input.len() - block * BLOCK_BYTES) as u32;
            self.flags[lane] |= node.last;
        }
    }

    /// A row of blocks; whatever they hold for lanes that have ended.
    #[inline(always)]
    fn blocks<S: Simd>(&self, block: usize) -> [&[u8; BLOCK_BYTES]; LANES_MAX] {
        let mut blocks = [&self.padded[0]; LANES_MAX];
        for lane in 0..S::WORDS {
            let whole = self.inputs[lane].get(block * BLOCK_BYTES..).and_then(<[u8]>::first_chunk);
            blocks[lane] = whole.unwrap_or(&self.padded[lane]);
        }
        blocks
    }

    #[inline(always)]
    fn prefetch<S: Simd>(&self, s: S, block: usize) {
        for input in &self.ahead[..S::WORDS] {
            s.prefetch(input, block * BLOCK_BYTES);
        }
    }
}

/// A lane's chaining value: its words, little-endian.
#[inline(always)]
fn column(rows: &[[u32; LANES_MAX]; 8], lane: usize) -> Value {
    let mut value = [0; 32];
    for (bytes, row) in value.chunks_exact_mut(4).zip(rows) {
        bytes.copy_from_slice(&row[lane].to_le_bytes());
    }
    value
}

/// One block per lane; `last` is the state's last row: counter (low and high word), bytes in the block, flags.
#[inline(always)]
fn compress<S: Simd>(s: S, chain: [S::Word; 8], m: [S::Word; 16], last: [S::Word; 4]) -> [S::Word; 8] {
    let [a0, a1, a2, a3, b0, b1, b2, b3] = chain;
    let [c0, c1, c2, c3] = INITIAL;
    let c = [s.words_splat(c0), s.words_splat(c1), s.words_splat(c2), s.words_splat(c3)];
    let mut v = [[a0, a1, a2, a3], [b0, b1, b2, b3], c, last];
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
    let mut next = chain;
    for i in 0..4 {
        next[i] = s.words_xor(v[0][i], v[2][i]);
        next[i + 4] = s.words_xor(v[1][i], v[3][i]);
    }
    next
}

/// Columns, then diagonals.
#[inline(always)]
fn round<S: Simd>(s: S, v: &mut [[S::Word; 4]; 4], m: &[S::Word; 16]) {
    mix(s, v, [m[0], m[2], m[4], m[6]], [m[1], m[3], m[5], m[7]]);
    let [a, b, c, d] = *v;
    *v = [a, [b[1], b[2], b[3], b[0]], [c[2], c[3], c[0], c[1]], [d[3], d[0], d[1], d[2]]];
    mix(s, v, [m[8], m[10], m[12], m[14]], [m[9], m[11], m[13], m[15]]);
    let [a, b, c, d] = *v;
    *v = [a, [b[3], b[0], b[1], b[2]], [c[2], c[3], c[0], c[1]], [d[1], d[2], d[3], d[0]]];
}

/// The four columns step by step together, so that the CPU always has four independent instructions before it.
#[inline(always)]
fn mix<S: Simd>(s: S, v: &mut [[S::Word; 4]; 4], x: [S::Word; 4], y: [S::Word; 4]) {
    half_mix::<S, 16, 12>(s, v, x);
    half_mix::<S, 8, 7>(s, v, y);
}

#[inline(always)]
fn half_mix<S: Simd, const D: i32, const B: i32>(s: S, [a, b, c, d]: &mut [[S::Word; 4]; 4], x: [S::Word; 4]) {
    for i in 0..4 {
        a[i] = s.words_add(a[i], x[i]);
    }
    for i in 0..4 {
        a[i] = s.words_add(a[i], b[i]);
    }
    for i in 0..4 {
        d[i] = s.words_xor(d[i], a[i]);
    }
    for i in 0..4 {
        d[i] = s.words_rotr::<D>(d[i]);
    }
    for i in 0..4 {
        c[i] = s.words_add(c[i], d[i]);
    }
    for i in 0..4 {
        b[i] = s.words_xor(b[i], c[i]);
    }
    for i in 0..4 {
        b[i] = s.words_rotr::<B>(b[i]);
    }
}

/// The message of the next round.
#[inline(always)]
fn permuted<W: Copy>(m: [W; 16]) -> [W; 16] {
    [m[2], m[6], m[3], m[10], m[7], m[0], m[4], m[13], m[1], m[11], m[12], m[5], m[9], m[14], m[15], m[8]]
}
