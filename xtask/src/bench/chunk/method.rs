//! What cuts: every row of `siltstone_chunk::ALGORITHMS`, and the crates to compare with, all as [`Chunker`]s.

use super::outside::{FastcdcCrate, GearhashCrate};
use anyhow::{Result, bail};
use siltstone_chunk::{ALGORITHMS, Algorithm, Chunker, Isa};

/// Keys of keyed algorithms: any will do, as long as they are the same in every run. Another key cuts elsewhere, with some luck or less,
/// so savings are the mean over all of them; times are taken with the first.
pub(super) const KEYS: [[u8; 32]; 3] = [[0; 32], [1; 32], [2; 32]];

/// What others are compared with: `FastCDC` 2020 at level 2, with limits and thresholds that make the average true, and as the crate has it.
pub(super) const YARDSTICKS: [&str; 2] = ["fastcdc-2020-nc2", FastcdcCrate::NAME];

/// One way to cut, at any expected size.
#[derive(Clone, Copy, Debug)]
pub(super) enum Method {
    /// A row of ours.
    Own(&'static Algorithm),
    /// The crate `fastcdc`.
    Fastcdc,
    /// The crate `gearhash`.
    Gearhash,
}

impl Method {
    /// All there are, ours first.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        ALGORITHMS.iter().map(Self::Own).chain([Self::Fastcdc, Self::Gearhash])
    }

    /// Those of these names, or all if there are none; what others are held against always stays.
    pub(super) fn chosen(names: &[String]) -> Result<Vec<Self>> {
        if let Some(unknown) = names.iter().find(|name| !Self::all().any(|method| method.name() == name.as_str())) {
            let known: Vec<&str> = Self::all().map(Self::name).collect();
            bail!("no algorithm is named {unknown:?}; choose from: {}", known.join(", "));
        }
        let wanted =
            |method: &Self| names.is_empty() || method.is_yardstick() || names.iter().any(|n| n == method.name());
        Ok(Self::all().filter(wanted).collect())
    }

    /// Its name in tables; a crate's begins with `crate:`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Own(algorithm) => algorithm.name,
            Self::Fastcdc => FastcdcCrate::NAME,
            Self::Gearhash => GearhashCrate::NAME,
        }
    }

    /// Whether others are compared with it: `FastCDC` 2020 at level 2, as we cut and as the crate does.
    pub(super) fn is_yardstick(self) -> bool {
        YARDSTICKS.contains(&self.name())
    }

    /// The instruction sets on which it has a form of its own. The first is the scalar one, which the others must equal.
    pub(super) fn isas(self) -> Vec<Isa> {
        match self {
            Self::Own(algorithm) if algorithm.vector => Isa::available().collect(),
            _ => vec![Isa::SCALAR],
        }
    }

    /// What the column `isa` says of its form for `isa`.
    pub(super) fn isa_name(self, isa: Isa) -> &'static str {
        match self {
            Self::Own(_) => isa.name(),
            Self::Fastcdc => "scalar",
            // It looks for the best it has by itself.
            Self::Gearhash => "its best",
        }
    }

    /// Whether the key decides where it cuts.
    fn is_keyed(self) -> bool {
        matches!(self, Self::Own(algorithm) if algorithm.keyed)
    }

    /// The chunker with the sizes usual for it around `expected` bytes.
    ///
    /// # Errors
    /// If it does not take sizes this small or large.
    pub(super) fn chunker(self, expected: u32, isa: Isa) -> Result<Box<dyn Chunker>> {
        self.with_key(expected, isa, &KEYS[0])
    }

    /// The same with each of [`KEYS`]; one if it has no key.
    pub(super) fn chunkers(self, expected: u32, isa: Isa) -> Result<Vec<Box<dyn Chunker>>> {
        let keys = if self.is_keyed() { &KEYS[..] } else { &KEYS[..1] };
        keys.iter().map(|key| self.with_key(expected, isa, key)).collect()
    }

    fn with_key(self, expected: u32, isa: Isa, key: &[u8; 32]) -> Result<Box<dyn Chunker>> {
        Ok(match self {
            Self::Own(algorithm) => algorithm.make(algorithm.usual_sizes(expected)?, key, isa),
            Self::Fastcdc => Box::new(FastcdcCrate::new(expected)?),
            Self::Gearhash => Box::new(GearhashCrate::new(expected)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_chunk::SliceChunks;
    use siltstone_lab::deterministic::Sequence;

    #[test]
    fn every_method_cuts_near_its_expected_size() {
        let data = Sequence::new(1).bytes(4 << 20);
        for method in Method::all() {
            let chunker = method.chunker(8 << 10, Isa::best()).unwrap();
            assert_eq!(SliceChunks::new(&chunker, &data).map(<[u8]>::len).sum::<usize>(), data.len());
            let average = data.len() / SliceChunks::new(&chunker, &data).count();
            assert!((7000..11_000).contains(&average), "{}: {average}", method.name());
        }
    }

    #[test]
    fn names_choose_and_yardsticks_stay() {
        let names: Vec<&str> = Method::chosen(&["ae-max".into()]).unwrap().into_iter().map(Method::name).collect();
        assert!(names.contains(&"ae-max") && names.contains(&"crate:fastcdc") && !names.contains(&"ae-min"));
        assert!(Method::chosen(&["md5".into()]).unwrap_err().to_string().contains("ae-max"));
    }
}
