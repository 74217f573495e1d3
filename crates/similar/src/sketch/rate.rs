//! The share of windows that are sampled.

/// One window in so many is sampled, on random bytes: the rates of Odess, TOS, section 4.2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// 1/32.
    OneIn32,
    /// 1/64.
    OneIn64,
    /// 1/128.
    OneIn128,
    /// 1/256.
    OneIn256,
    /// 1/512.
    OneIn512,
}

impl Rate {
    /// One in 128: what Odess's authors take.
    pub const DEFAULT: Self = Self::OneIn128;

    /// All there are, most frequent first.
    pub const ALL: [Self; 5] = [Self::OneIn32, Self::OneIn64, Self::OneIn128, Self::OneIn256, Self::OneIn512];

    /// Windows to one sample: a power of two.
    pub const fn one_in(self) -> u32 {
        match self {
            Self::OneIn32 => 32,
            Self::OneIn64 => 64,
            Self::OneIn128 => 128,
            Self::OneIn256 => 256,
            Self::OneIn512 => 512,
        }
    }
}
