//! Chunkers as the papers write them, beside our better forms of the same algorithms: what `VectorCDC` calls VAE,
//! VMAXP and VRAM, and MAXP over the values that AE's evaluation compares with.
//!
//! | name | what it is |
//! |---|---|
//! | `vae-max`, `vae-min`, `vmaxp`, `vram` | an extreme byte search, a range scan, over and over (TOS'25, 4.3) |
//! | `maxp8` | MAXP over eight-byte values, compared one by one (TC'17, section 3.2) |
//!
//! VMAXP and VRAM have the largest chunk of `maxp-t` and `ram-t`, AE has none. Cuts are those of `ae-max`, `ae-min`,
//! `maxp-t` and `ram-t`. Nothing in a search ends it early, with vectors or without: scalar and vector rows look at the
//! same bytes.

use super::two_phase::{TwoPhase, Vectors};
use anyhow::Result;
use siltstone_chunk::{Ae, Chunker, Extreme, Isa, Maxp, Ram, Sizes, Value};

/// A chunker of a paper, in its form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PaperForm {
    /// AE-Max out of searches and scans.
    VaeMax,
    /// AE-Min.
    VaeMin,
    /// MAXP.
    Vmaxp,
    /// RAM.
    Vram,
    /// MAXP over eight-byte values.
    MaxpWide,
}

impl PaperForm {
    /// All there are.
    pub const ALL: [Self; 5] = [Self::VaeMax, Self::VaeMin, Self::Vmaxp, Self::Vram, Self::MaxpWide];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::VaeMax => "vae-max",
            Self::VaeMin => "vae-min",
            Self::Vmaxp => "vmaxp",
            Self::Vram => "vram",
            Self::MaxpWide => "maxp8",
        }
    }

    /// Tells whether it has forms for vectors.
    pub fn is_vector(self) -> bool {
        self != Self::MaxpWide
    }

    /// The method that cuts in the same places.
    pub fn twin(self) -> Option<&'static str> {
        match self {
            Self::VaeMax => Some("ae-max"),
            Self::VaeMin => Some("ae-min"),
            Self::Vmaxp => Some("maxp-t"),
            Self::Vram => Some("ram-t"),
            Self::MaxpWide => None,
        }
    }

    /// The chunker at this expected size in bytes, in its form for `isa`.
    ///
    /// # Errors
    /// If it does not take sizes this small or large.
    pub fn chunker(self, expected: u32, isa: Isa) -> Result<Box<dyn Chunker>> {
        let name = self.name();
        if let Some((algorithm, sizes)) = self.two_phase(expected)? {
            return Ok(Box::new(Phased { name, sizes, algorithm, isa }));
        }
        let sizes = Sizes::unlimited(expected)?;
        Ok(Box::new(MaxpWide { name, sizes, window: wide_window(sizes) }))
    }

    /// Searches and scans, for what is put together out of them.
    ///
    /// # Errors
    /// If it does not take sizes this small or large.
    pub(super) fn two_phase(self, expected: u32) -> Result<Option<(TwoPhase, Sizes)>> {
        let name = self.name();
        let unlimited = Sizes::unlimited(expected)?;
        let ae = |extreme| {
            let window = Ae::new(name, extreme, Value::Byte, unlimited, Isa::SCALAR).window();
            (TwoPhase::Ae(extreme, window), unlimited)
        };
        Ok(match self {
            Self::VaeMax => Some(ae(Extreme::Max)),
            Self::VaeMin => Some(ae(Extreme::Min)),
            Self::Vmaxp => {
                let sizes = limited(expected)?;
                Some((TwoPhase::Maxp(Maxp::new(name, sizes, Isa::SCALAR).window()), sizes))
            }
            Self::Vram => {
                let sizes = limited(expected)?;
                Some((TwoPhase::Ram(Ram::new(name, sizes, Isa::SCALAR).window()), sizes))
            }
            Self::MaxpWide => None,
        })
    }
}

/// A largest chunk of four times the expected size and no smallest: what `VectorCDC`'s program is set to.
pub(super) fn limited(expected: u32) -> Result<Sizes> {
    Ok(Sizes::around(expected)?.without_min())
}

/// An algorithm out of searches and scans.
#[derive(Clone, Copy, Debug)]
struct Phased {
    name: &'static str,
    sizes: Sizes,
    algorithm: TwoPhase,
    isa: Isa,
}

impl Chunker for Phased {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn cut(&self, data: &[u8]) -> usize {
        let mut vectors = Vectors { data, search: self.isa, scan: self.isa };
        self.algorithm.cut(data, 0, self.sizes, &mut vectors)
    }

    fn cut_all(&self, data: &[u8], each: &mut dyn FnMut(usize)) {
        let mut vectors = Vectors { data, search: self.isa, scan: self.isa };
        self.algorithm.cut_all(data, self.sizes, &mut vectors, each);
    }
}

/// MAXP over eight-byte values: a chunk ends where the value exceeds those of all w positions on each side.
#[derive(Clone, Copy, Debug)]
struct MaxpWide {
    name: &'static str,
    sizes: Sizes,
    window: usize,
}

/// The window on each side: values hardly ever tie, so one position in `2 w + 1` is a peak on random bytes.
pub(super) fn wide_window(sizes: Sizes) -> usize {
    (sizes.expected().saturating_sub(1) / 2).max(1)
}

impl Chunker for MaxpWide {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn cut(&self, data: &[u8]) -> usize {
        self.peak(data).map_or(data.len(), |peak| peak + 1)
    }
}

impl MaxpWide {
    /// The first peak. A position whose value is reached in the window after it is none, nor is any between the two.
    fn peak(&self, data: &[u8]) -> Option<usize> {
        let value = |at: usize| data.get(at..)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
        let mut at = self.window;
        loop {
            let target = value(at)?;
            value(at + self.window)?;
            match (at + 1..=at + self.window).find(|next| value(*next).is_some_and(|other| other >= target)) {
                Some(rival) => at = rival,
                None if (at - self.window..at).all(|before| value(before).is_some_and(|other| other < target)) => {
                    return Some(at);
                }
                None => at += self.window + 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cuts::Digest;
    use super::super::method::Method;
    use super::*;
    use crate::deterministic::Sequence;

    #[test]
    fn every_instruction_set_cuts_where_the_other_forms_do() {
        let mut sequence = Sequence::new(7);
        let text: Vec<u8> = sequence.bytes(200_000).iter().map(|byte| b'a' + byte % 26).collect();
        let data = [sequence.bytes(300_000), vec![0; 70_000], text, [3, 8].repeat(9000), sequence.bytes(11)].concat();
        for form in PaperForm::ALL {
            for expected in [512, 8 << 10] {
                let of = |isa| Digest::of(&*form.chunker(expected, isa).unwrap(), &data);
                let scalar = of(Isa::SCALAR);
                for isa in Isa::available() {
                    assert_eq!(of(isa), scalar, "{} {isa}", form.name());
                }
                let Some(twin) = form.twin() else { continue };
                let twin = Method::by_name(twin).unwrap().chunker(expected, Isa::SCALAR).unwrap();
                assert_eq!(Digest::of(&*twin, &data), scalar, "{}", form.name());
            }
        }
    }
}
