//! Every algorithm by name: one table for command lines, comparisons and tests.

use crate::crc::CrcHash;
use crate::fastcdc::{FastCdc, Step};
use crate::fixed::Fixed;
use crate::rolling::Rolling;
use crate::seqcdc::SeqCdc;
use crate::tttd::Tttd;
use crate::two_stage::TwoStage;
use crate::{
    Ae, AeOpt1, AeOpt2, Aes16, Chunker, ChunkerError, Extreme, GearNc2, Isa, Lagged, Maxp, Ram, Sizes, Swpr, Value,
};
use alloc::boxed::Box;
use siltstone_rolling::{Gear, Rabin};

/// One row of [`ALGORITHMS`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Algorithm {
    /// Name of the algorithm, bound to its cuts for ever.
    pub name: &'static str,
    /// Summary of the algorithm, in a few words.
    pub summary: &'static str,
    /// Publication that described it first.
    pub source: &'static str,
    /// True if it has forms for the instruction sets of `siltstone-simd`; otherwise its one form is the same on all.
    pub vector: bool,
    /// True if the key decides where it cuts; the others ignore it.
    pub keyed: bool,
    limits: Limits,
    make: fn(&'static str, Sizes, &[u8; 32], Isa) -> Box<dyn Chunker>,
}

/// The limits an algorithm's paper gives it.
#[derive(Clone, Copy, Debug)]
enum Limits {
    /// No limits: hashless chunkers need none.
    Unlimited,
    /// Half of the expected size and four times it.
    Around,
    /// A quarter of the expected size and eight times it.
    Quarter,
    /// 0.46 and 2.8 times the expected size.
    Tttd,
}

impl Algorithm {
    /// The sizes its source would use for this expected size, bytes.
    ///
    /// # Errors
    /// [`ChunkerError::BadSizes`] if `expected` is below 128 bytes or above 16 MiB.
    pub fn usual_sizes(&self, expected: u32) -> Result<Sizes, ChunkerError> {
        match self.limits {
            Limits::Unlimited => Sizes::unlimited(expected),
            Limits::Around => Sizes::around(expected),
            Limits::Quarter => Sizes::quarter(expected),
            Limits::Tttd => Sizes::tttd(expected),
        }
    }

    /// The chunker, in its form for `isa`. `key` decides where it cuts if it is keyed.
    pub fn make(&self, sizes: Sizes, key: &[u8; 32], isa: Isa) -> Box<dyn Chunker> {
        (self.make)(self.name, sizes, key, isa)
    }
}

/// A row that is made without regard to what its pattern leaves out.
macro_rules! rows {
    ($($name:literal $limits:ident $($flag:ident)* : $summary:literal, $source:literal => |$($argument:pat_param),*| $make:expr;)*) => {
        &[$(Algorithm {
            name: $name,
            summary: $summary,
            source: $source,
            vector: rows!(@has vector $($flag)*),
            keyed: rows!(@has keyed $($flag)*),
            limits: Limits::$limits,
            make: |$($argument),*| Box::new($make),
        }),*]
    };
    (@has vector vector $($rest:ident)*) => { true };
    (@has keyed keyed $($rest:ident)*) => { true };
    (@has $wanted:ident $other:ident $($rest:ident)*) => { rows!(@has $wanted $($rest)*) };
    (@has $wanted:ident) => { false };
}

/// The name of the chunker to take when nothing else decides.
pub const DEFAULT_NAME: &str = Lagged::NAME;

/// All of them.
pub const ALGORITHMS: &[Algorithm] = rows! {
    "fixed" Unlimited: "every expected bytes, whatever they are", "LBFS, SOSP'01, section 3.1"
        => |name, sizes, _, _| Fixed::new(name, sizes);
    "rabin" Quarter: "Rabin fingerprint of 48 bytes", "LBFS, SOSP'01, section 3.1"
        => |name, sizes, _, _| Rolling::new(name, Rabin::<48>, sizes);
    "tttd" Tttd: "Rabin with a second, easier threshold to fall back to", "HPL-2005-30(R.1)"
        => |name, sizes, _, _| Tttd::new(name, sizes);
    "crc" Quarter: "CRC-32 of 48 bytes", "SS-CDC, SYSTOR'19"
        => |name, sizes, _, _| Rolling::new(name, CrcHash, sizes);
    "gear" Quarter: "Gear over 32 bytes", "Ddelta, Performance Evaluation 2014"
        => |name, sizes, _, _| Rolling::new(name, Gear::new(), sizes);
    "fastcdc-2016-nc0" Quarter: "cold Gear, hardly normalised", "FastCDC, ATC'16"
        => |name, sizes, _, _| FastCdc::new(name, Step::OneByte, 0, sizes);
    "fastcdc-2016-nc1" Quarter: "cold Gear, normalised at level 1", "FastCDC, ATC'16"
        => |name, sizes, _, _| FastCdc::new(name, Step::OneByte, 1, sizes);
    "fastcdc-2016-nc2" Quarter: "cold Gear, normalised at level 2", "FastCDC, ATC'16"
        => |name, sizes, _, _| FastCdc::new(name, Step::OneByte, 2, sizes);
    "fastcdc-2016-nc3" Quarter: "cold Gear, normalised at level 3", "FastCDC, ATC'16"
        => |name, sizes, _, _| FastCdc::new(name, Step::OneByte, 3, sizes);
    "fastcdc-2020-nc0" Quarter: "the same, two bytes per step, hardly normalised", "FastCDC, TPDS'20"
        => |name, sizes, _, _| FastCdc::new(name, Step::TwoBytes, 0, sizes);
    "fastcdc-2020-nc1" Quarter: "the same, two bytes per step, normalised at level 1", "FastCDC, TPDS'20"
        => |name, sizes, _, _| FastCdc::new(name, Step::TwoBytes, 1, sizes);
    "fastcdc-2020-nc2" Quarter: "the same, two bytes per step, normalised at level 2", "FastCDC, TPDS'20"
        => |name, sizes, _, _| FastCdc::new(name, Step::TwoBytes, 2, sizes);
    "fastcdc-2020-nc3" Quarter: "the same, two bytes per step, normalised at level 3", "FastCDC, TPDS'20"
        => |name, sizes, _, _| FastCdc::new(name, Step::TwoBytes, 3, sizes);
    "ss-gear" Quarter vector: "the cuts of gear, candidates first and then cuts", "SS-CDC, SYSTOR'19"
        => |name, sizes, _, isa| TwoStage::new(name, Gear::new(), sizes, isa);
    "ss-crc" Quarter vector: "the cuts of crc, candidates first and then cuts", "SS-CDC, SYSTOR'19"
        => |name, sizes, _, isa| TwoStage::new(name, CrcHash, sizes, isa);
    "seqcdc" Around: "first run of rising bytes, stretches of falls skipped", "SeqCDC, Middleware'24"
        => |name, sizes, _, _| SeqCdc::new(name, sizes);
    "gear-nc2" Around keyed: "Gear, normalised at level 2, keyed table", "FastCDC, ATC'16 and TPDS'20"
        => |_, sizes, key, _| GearNc2::new(sizes, key);
    "lagged" Around vector keyed: "lagged GF(2) hash and a mix of 32 bytes, normalised at level 2", "Siltstone"
        => |_, sizes, key, isa| Lagged::new(sizes, key, isa);
    "swpr" Around vector keyed: "the windowed hash of Odess+, normalised at level 2", "Odess, TOS; Siltstone"
        => |_, sizes, key, isa| Swpr::new(sizes, key, isa);
    "aes16" Around vector keyed: "AES-128 of the 16 bytes before, normalised at level 2: cuts reveal no key", "Siltstone"
        => |_, sizes, key, isa| Aes16::new(sizes, key, isa);
    "ae-max" Unlimited vector: "asymmetric maximum of single bytes", "AE, TC'17; VectorCDC, TOS'25"
        => |name, sizes, _, isa| Ae::new(name, Extreme::Max, Value::Byte, sizes, isa);
    "ae-min" Unlimited vector: "asymmetric minimum of single bytes", "AE, TC'17; VectorCDC, TOS'25"
        => |name, sizes, _, isa| Ae::new(name, Extreme::Min, Value::Byte, sizes, isa);
    "ae8-max" Unlimited vector: "asymmetric maximum of 8-byte values", "AE, TC'17, section 3.1"
        => |name, sizes, _, isa| Ae::new(name, Extreme::Max, Value::EightBytes, sizes, isa);
    "ae8-min" Unlimited vector: "asymmetric minimum of 8-byte values", "AE, TC'17, section 3.1"
        => |name, sizes, _, isa| Ae::new(name, Extreme::Min, Value::EightBytes, sizes, isa);
    "ae-opt1" Unlimited: "ae-max with fewer questions per byte", "AE, TC'17, Algorithm 2"
        => |name, sizes, _, _| AeOpt1::new(name, Value::Byte, sizes);
    "ae8-opt1" Unlimited: "ae8-max with fewer questions per byte", "AE, TC'17, Algorithm 2"
        => |name, sizes, _, _| AeOpt1::new(name, Value::EightBytes, sizes);
    "ae-opt2-half" Unlimited vector: "ae-max, runs cut at 1/2 of the expected size", "AE, TC'17, Algorithm 3"
        => |name, sizes, _, isa| AeOpt2::new(name, Value::Byte, 2, sizes, isa);
    "ae-opt2-quarter" Unlimited vector: "ae-max, runs cut at 1/4 of the expected size", "AE, TC'17, Algorithm 3"
        => |name, sizes, _, isa| AeOpt2::new(name, Value::Byte, 4, sizes, isa);
    "ae-opt2-eighth" Unlimited vector: "ae-max, runs cut at 1/8 of the expected size", "AE, TC'17, Algorithm 3"
        => |name, sizes, _, isa| AeOpt2::new(name, Value::Byte, 8, sizes, isa);
    "ae8-opt2-half" Unlimited vector: "ae8-max, runs cut at 1/2 of the expected size", "AE, TC'17, Algorithm 3"
        => |name, sizes, _, isa| AeOpt2::new(name, Value::EightBytes, 2, sizes, isa);
    "ae8-opt2-quarter" Unlimited vector: "ae8-max, runs cut at 1/4 of the expected size", "AE, TC'17, Algorithm 3"
        => |name, sizes, _, isa| AeOpt2::new(name, Value::EightBytes, 4, sizes, isa);
    "ae8-opt2-eighth" Unlimited vector: "ae8-max, runs cut at 1/8 of the expected size", "AE, TC'17, Algorithm 3"
        => |name, sizes, _, isa| AeOpt2::new(name, Value::EightBytes, 8, sizes, isa);
    "maxp" Unlimited vector: "peaks between two windows", "Bjorner et al., JCSS 2010; VectorCDC, TOS'25"
        => |name, sizes, _, isa| Maxp::new(name, sizes, isa);
    "ram" Unlimited vector: "first byte to reach the largest of a window", "RAM, FGCS 2017; VectorCDC, TOS'25"
        => |name, sizes, _, isa| Ram::new(name, sizes, isa);
};

/// The names of [`ALGORITHMS`], in their order.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALGORITHMS.iter().map(|algorithm| algorithm.name)
}

/// Makes the chunker of that name for the instruction set of [`Isa::best`]. `key` decides where it cuts; chunkers
/// without a key ignore it.
///
/// # Errors
/// [`ChunkerError::UnknownName`] if no chunker has that name, [`ChunkerError::UnknownIsa`] if `SILT_ISA` names none of
/// this CPU.
pub fn by_name(name: &str, sizes: Sizes, key: &[u8; 32]) -> Result<Box<dyn Chunker>, ChunkerError> {
    let algorithm = ALGORITHMS.iter().find(|algorithm| algorithm.name == name);
    let algorithm = algorithm.ok_or_else(|| ChunkerError::unknown_name(name))?;
    #[cfg(feature = "std")]
    let isa = Isa::chosen().map_err(ChunkerError::UnknownIsa)?;
    #[cfg(not(feature = "std"))]
    let isa = Isa::best();
    Ok(algorithm.make(sizes, key, isa))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_makes_what_its_name_says() {
        for algorithm in ALGORITHMS {
            let sizes = algorithm.usual_sizes(8 << 10).unwrap();
            for isa in Isa::available() {
                assert_eq!(algorithm.make(sizes, &[0; 32], isa).name(), algorithm.name);
            }
        }
        assert!(names().any(|name| name == DEFAULT_NAME));
    }

    #[test]
    fn names_are_unique() {
        assert!(names().all(|name| names().filter(|other| *other == name).count() == 1));
    }
}
