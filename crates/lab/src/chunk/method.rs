//! Methods of cutting: every row of `siltstone_chunk::ALGORITHMS`, and the crates to compare with, all as [`Chunker`]s.

use super::outside::{FastcdcCrate, GearhashCrate};
use super::papers::{PaperForm, limited};
use super::throughput::FIXED;
use crate::isas;
use crate::settings::Settings;
use anyhow::{Result, bail};
use siltstone_chunk::{ALGORITHMS, Algorithm, Chunker, Isa, Sizes};
use std::sync::LazyLock;

/// Keys of keyed algorithms: any will do, as long as they are the same in every run. Another key cuts elsewhere, with
/// some luck or less, so savings are the mean over all of them; times are taken with the first.
pub const KEYS: [[u8; 32]; 3] = [[0; 32], [1; 32], [2; 32]];

/// Methods that others are compared with: `FastCDC` 2020 at level 2, with limits and thresholds that make the average
/// true, and as the crate has it.
pub const YARDSTICKS: [&str; 2] = ["fastcdc-2020-nc2", FastcdcCrate::NAME];

/// One way to cut, at any expected size.
#[derive(Clone, Copy, Debug)]
pub enum Method {
    /// A row of ours.
    Own(&'static Algorithm),
    /// A row of ours with other limits; not among [`Method::all`].
    Derived(&'static Derived),
    /// The form in which a paper has an algorithm; not among [`Method::all`].
    Paper(PaperForm),
    /// The crate `fastcdc`.
    Fastcdc,
    /// The crate `gearhash`.
    Gearhash,
}

/// A row with other limits than its usual ones: as AE (TC'17, sections 3.2 and 4.1) varies them, or as `VectorCDC`'s
/// program has them.
#[derive(Clone, Copy, Debug)]
pub struct Derived {
    name: &'static str,
    of: &'static Algorithm,
    sizes: fn(u32) -> Result<Sizes>,
}

/// Without limits: the paper's `Rabin_0`.
pub const UNLIMITED_RABIN: &str = "rabin-0";

/// RAM and MAXP with a largest chunk of four times the expected size. `VectorCDC`'s text names no limit; the settings
/// its program comes with (`config_8kb_fast25`, `config_simd512_8kb`: 32 KiB at 8 KiB) do. A byte above all others, as
/// tar's headers have and text has not, leaves RAM without a cut until it comes again, which can be megabytes later.
pub const LIMITED: [&str; 2] = ["ram-t", "maxp-t"];
/// Forms of [`LIMITED`] that have no largest chunk.
const UNLIMITED: [&str; 2] = ["ram", "maxp"];

/// Those there are.
static DERIVED: LazyLock<Vec<Derived>> = LazyLock::new(|| {
    // No smallest chunk, and eight times the expected size as the largest: the paper's suffix `_T`.
    let thresholds =
        [("ae-max-t", "ae-max"), ("ae-min-t", "ae-min"), ("ae8-max-t", "ae8-max"), ("ae8-min-t", "ae8-min")];
    let largest_only = |expected| Ok(Sizes::quarter(expected)?.without_min());
    let derive = |name, of: &str, sizes| {
        ALGORITHMS.iter().find(|algorithm| algorithm.name == of).map(|of| Derived { name, of, sizes })
    };
    let by_threshold = thresholds.into_iter().filter_map(|(name, of)| derive(name, of, largest_only));
    let as_run = LIMITED.into_iter().zip(UNLIMITED).filter_map(|(name, of)| derive(name, of, limited));
    let rabin = derive(UNLIMITED_RABIN, "rabin", |expected| Ok(Sizes::unlimited(expected)?));
    rabin.into_iter().chain(by_threshold).chain(as_run).collect()
});

impl Method {
    /// The one of that name, derived ones included.
    pub fn by_name(name: &str) -> Option<Self> {
        let others = DERIVED.iter().map(Self::Derived).chain(PaperForm::ALL.map(Self::Paper));
        Self::all().chain(others).find(|method| method.name() == name)
    }

    /// Those of these names.
    ///
    /// # Panics
    /// If one of them is none.
    pub fn named(names: &[&str]) -> Vec<Self> {
        names.iter().map(|name| Self::by_name(name).expect("the name of a chunker")).collect()
    }

    /// Returns those of the methods that the user named, or all if no names are given. Names that belong to other rooms
    /// choose nothing here.
    pub fn wanted(methods: impl IntoIterator<Item = Self>, settings: &Settings) -> Vec<Self> {
        methods.into_iter().filter(|method| settings.chooses_method(method.name())).collect()
    }

    /// Returns the methods compared by the chunks they make: all there are, and [`LIMITED`].
    pub fn by_chunks() -> impl Iterator<Item = Self> {
        Self::all().chain(Self::named(&LIMITED))
    }

    /// Returns the methods of which time is taken: RAM and MAXP as [`LIMITED`], for without a limit their chunks can be
    /// a hundred times as long as asked for; the papers' own forms; and not `fixed`, which looks at no byte.
    pub fn timed() -> impl Iterator<Item = Self> {
        let is_timed = |method: &Self| method.name() != FIXED && !UNLIMITED.contains(&method.name());
        Self::all().filter(is_timed).chain(Self::named(&LIMITED)).chain(PaperForm::ALL.map(Self::Paper))
    }

    /// All there are, ours first.
    pub fn all() -> impl Iterator<Item = Self> {
        ALGORITHMS.iter().map(Self::Own).chain([Self::Fastcdc, Self::Gearhash])
    }

    /// Those of these names, or all if there are none; what others are held against always stays.
    pub fn chosen(names: &[String]) -> Result<Vec<Self>> {
        if let Some(unknown) = names.iter().find(|name| !Self::all().any(|method| method.name() == name.as_str())) {
            let known: Vec<&str> = Self::all().map(Self::name).collect();
            bail!("no algorithm is named {unknown:?}; choose from: {}", known.join(", "));
        }
        let wanted =
            |method: &Self| names.is_empty() || method.is_yardstick() || names.iter().any(|n| n == method.name());
        Ok(Self::all().filter(wanted).collect())
    }

    /// Its name in tables; a crate's begins with `crate:`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own(algorithm) => algorithm.name,
            Self::Derived(derived) => derived.name,
            Self::Paper(form) => form.name(),
            Self::Fastcdc => FastcdcCrate::NAME,
            Self::Gearhash => GearhashCrate::NAME,
        }
    }

    /// Tells whether others are compared with it: `FastCDC` 2020 at level 2, as we cut and as the crate does.
    pub fn is_yardstick(self) -> bool {
        YARDSTICKS.contains(&self.name())
    }

    /// The instruction sets on which it has a form of its own. The first is the scalar one, which the others must
    /// equal.
    pub fn isas(self) -> Vec<Isa> {
        if self.is_vector() { isas().collect() } else { vec![Isa::SCALAR] }
    }

    /// The highest of [`Self::isas`], or what the environment lowers it to.
    pub fn best(self) -> Isa {
        if self.is_vector() { Isa::best() } else { Isa::SCALAR }
    }

    fn is_vector(self) -> bool {
        matches!(self, Self::Paper(form) if form.is_vector())
            || self.algorithm().is_some_and(|algorithm| algorithm.vector)
    }

    /// The row of ours it is, or is derived from.
    fn algorithm(self) -> Option<&'static Algorithm> {
        match self {
            Self::Own(algorithm) => Some(algorithm),
            Self::Derived(derived) => Some(derived.of),
            Self::Paper(_) | Self::Fastcdc | Self::Gearhash => None,
        }
    }

    /// Returns the name of its form for `isa` in the column `isa`.
    pub fn isa_name(self, isa: Isa) -> &'static str {
        match self {
            Self::Own(_) | Self::Derived(_) | Self::Paper(_) => isa.name(),
            Self::Fastcdc => "scalar",
            // It looks for the best it has by itself.
            Self::Gearhash => "its best",
        }
    }

    /// Returns how its form for `isa` goes another way than the scalar one, in words; nothing if both look at the same
    /// bytes. AE over single bytes and RAM stop where no byte can be beyond what they found.
    pub(super) fn way(self, isa: Isa) -> &'static str {
        let Some(algorithm) = self.algorithm().filter(|_| isa != Isa::SCALAR) else { return "" };
        match algorithm.name {
            "ae-max" | "ae-min" | "ae-opt2-half" | "ae-opt2-quarter" | "ae-opt2-eighth" | "ram" => "with early exit",
            "maxp" => "by cells of 64 bytes",
            _ => "",
        }
    }

    /// Tells whether the key decides where it cuts.
    fn is_keyed(self) -> bool {
        self.algorithm().is_some_and(|algorithm| algorithm.keyed)
    }

    /// The chunker with the sizes usual for it around `expected` bytes.
    ///
    /// # Errors
    /// If it does not take sizes this small or large.
    pub fn chunker(self, expected: u32, isa: Isa) -> Result<Box<dyn Chunker>> {
        self.with_key(expected, isa, &KEYS[0])
    }

    /// Returns its chunkers with each of [`KEYS`]; one if it has no key.
    pub fn chunkers(self, expected: u32, isa: Isa) -> Result<Vec<Box<dyn Chunker>>> {
        let keys = if self.is_keyed() { &KEYS[..] } else { &KEYS[..1] };
        keys.iter().map(|key| self.with_key(expected, isa, key)).collect()
    }

    fn with_key(self, expected: u32, isa: Isa, key: &[u8; 32]) -> Result<Box<dyn Chunker>> {
        Ok(match self {
            Self::Own(algorithm) => algorithm.make(algorithm.usual_sizes(expected)?, key, isa),
            Self::Derived(Derived { of, sizes, .. }) => of.make(sizes(expected)?, key, isa),
            Self::Paper(form) => form.chunker(expected, isa)?,
            Self::Fastcdc => Box::new(FastcdcCrate::new(expected)?),
            Self::Gearhash => Box::new(GearhashCrate::new(expected)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deterministic::Sequence;
    use siltstone_chunk::SliceChunks;

    #[test]
    fn every_method_cuts_near_its_expected_size() {
        let data = Sequence::new(1).bytes(4 << 20);
        for method in Method::timed().chain(Method::all()).chain(DERIVED.iter().map(Method::Derived)) {
            assert_eq!(Method::by_name(method.name()).map(Method::name), Some(method.name()));
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
