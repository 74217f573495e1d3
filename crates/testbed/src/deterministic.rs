//! Random numbers that are the same on every machine and in every run: `SplitMix64` (Steele, Lea, Flood, OOPSLA'14,
//! Figure 18). Test data and test schedules come from it, never from the system, so that a failure can be run again
//! from its seed.

#![allow(clippy::should_implement_trait, reason = "a sequence has no end, so its next number is no option")]

/// A sequence of numbers fixed by its seed.
#[derive(Clone, Debug)]
pub struct Sequence(u64);

impl Sequence {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The sequence of these numbers together: another one wherever one of them differs, and none of them another's,
    /// shifted.
    pub fn of(numbers: &[u64]) -> Self {
        Self(numbers.iter().fold(0, |state, number| Self(state ^ number).next()))
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which must not be 0. The bias of the remainder (under 2^-40 for our bounds) does not
    /// matter here.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Like [`Self::below`], for an index.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).expect("it is below a usize")
    }

    /// A number from 0 to less than 1.
    #[allow(clippy::cast_precision_loss)] // 53 bits are what a float holds.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Bytes that no compressor makes smaller.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            bytes.extend_from_slice(&self.next().to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::Sequence;

    #[test]
    fn gives_the_published_values_of_splitmix64() {
        let mut sequence = Sequence::new(1_234_567);
        assert_eq!(sequence.next(), 6_457_827_717_110_365_317);
        assert_eq!(sequence.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn every_number_counts_and_so_does_their_order() {
        let first = |numbers: &[u64]| Sequence::of(numbers).next();
        let all = [first(&[1, 2]), first(&[2, 1]), first(&[1]), first(&[1, 2, 0]), first(&[1, 3])];
        assert!(all.iter().enumerate().all(|(at, one)| !all[..at].contains(one)), "{all:?}");
    }
}
