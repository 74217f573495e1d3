//! The search of all scalar extremal chunkers: the first position whose value answers a question.
//!
//! The question is put to one value at a time, with a comparison and a branch for each, as in the papers' pseudocode;
//! eight values are a turn of the loop, so that its own counting and the checks of bounds cost little. No value is
//! looked at twice, and none beside another: nothing here is a vector.
//!
//! A search finds a position, never a running extreme. A record kept as `if value > record { record = value }` is
//! made a conditional move by the compiler, and then every comparison waits for the one before it: algorithms 1 and 3
//! of AE ran at half and at a third of their speed so.

/// Values to a turn.
const TURN: usize = 8;

/// A value at a position, to be compared.
pub(crate) trait Number: Copy + PartialOrd {
    /// Bytes of a value.
    const BYTES: usize;

    /// The value of the bytes from `at` on, of which there are enough.
    fn read(data: &[u8], at: usize) -> Self;

    /// Positions that have a value.
    fn count(data: &[u8]) -> usize {
        (data.len() + 1).saturating_sub(Self::BYTES)
    }
}

impl Number for u8 {
    const BYTES: usize = 1;

    #[inline(always)]
    fn read(data: &[u8], at: usize) -> Self {
        data[at]
    }
}

/// Big-endian.
impl Number for u64 {
    const BYTES: usize = 8;

    #[inline(always)]
    fn read(data: &[u8], at: usize) -> Self {
        data[at..].first_chunk().map_or(0, |bytes| Self::from_be_bytes(*bytes))
    }
}

/// The first position from `from` on that is `wanted`, given it and its value.
#[inline(always)]
pub(crate) fn first<N: Number>(data: &[u8], from: usize, wanted: impl Fn(usize, N) -> bool) -> Option<usize> {
    let mut at = from;
    while let Some(turn) = data.get(at..at + TURN + N::BYTES - 1) {
        for within in 0..TURN {
            if wanted(at + within, N::read(turn, within)) {
                return Some(at + within);
            }
        }
        at += TURN;
    }
    (at..N::count(data)).find(|at| wanted(*at, N::read(data, *at)))
}
