//! A sketch in the form that is measured.

use super::own::{self, Own};
use super::versions::{KEY, sizes};
use super::word_lanes::{self, WordLanes};
use crate::experiment::{Row, row};
use anyhow::Result;
use siltstone_chunk::{Isa, Lagged};
use siltstone_similar::sketch::{METHODS, Method, Odess, OdessPlus, Rate, Shape, Sketch, Sketcher, Windows};

/// Windows of Rabin as Finesse's authors have it, bytes.
const WINDOW_BYTES_FINESSE: usize = 48;
/// Windows of everything else, bytes (Odess, section 4.3).
const WINDOW_BYTES: usize = 32;
/// One place in so many is sampled by the default chunker.
const OWN_ONE_IN: u32 = 256;
/// Size of chunks where the chunker only samples, and any will do.
const SAMPLING_BYTES: u32 = 8 << 10;

/// The method that all others are held against.
pub(super) const REFERENCE: &str = "ntransform";
/// The sketches of the papers, N-Transform as either paper has it, and Siltstone's own.
pub(super) const NAMES: [&str; 6] = [REFERENCE, "ntransform-32", "finesse", "odess", "odess-plus", own::NAME];
/// Those, and Odess+ as its paper rolls it: of which speeds are taken.
pub(super) const NAMES_TIMED: [&str; 7] =
    [REFERENCE, "ntransform-32", "finesse", "odess", "odess-plus", word_lanes::NAME, own::NAME];
/// One of each kind, where less must do.
pub(super) const NAMES_QUICK: [&str; 5] = [REFERENCE, "finesse", "odess", "odess-plus", own::NAME];

/// A method, its parameters, an instruction set.
pub(super) struct Contender {
    method: &'static str,
    isa: Isa,
    /// The name of its instruction set, where that is none of [`Isa`].
    isa_name: Option<&'static str>,
    /// Windows to a sample; `None` if all are taken.
    one_in: Option<u32>,
    window_bytes: usize,
    sketcher: Box<dyn Sketcher>,
}

impl Contender {
    /// The method of that name, in its form for `isa`.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn named(name: &str, shape: Shape, isa: Isa) -> Result<Self> {
        match name {
            own::NAME => Self::own(shape, isa),
            "odess" => Ok(Self::odess(Rate::DEFAULT, shape)),
            "odess-plus" => Ok(Self::odess_plus(Rate::DEFAULT, shape, isa)),
            _ => {
                let method = METHODS.iter().find(|method| method.name == name);
                let method = method.ok_or_else(|| anyhow::anyhow!("no sketch is named {name:?}"))?;
                Ok(Self::all_windows(method, shape))
            }
        }
    }

    /// Those of these names that are asked for, in their best forms.
    ///
    /// # Errors
    /// If there is no such method.
    pub(super) fn of(names: &[&str], shape: Shape, wanted: impl Fn(&str) -> bool) -> Result<Vec<Self>> {
        names.iter().filter(|name| wanted(name)).map(|name| Self::named(name, shape, Isa::best())).collect()
    }

    fn all_windows(method: &'static Method, shape: Shape) -> Self {
        let is_of_finesse = matches!(method.name, "ntransform" | "finesse");
        Self {
            method: method.name,
            isa: Isa::SCALAR,
            isa_name: None,
            one_in: None,
            window_bytes: if is_of_finesse { WINDOW_BYTES_FINESSE } else { WINDOW_BYTES },
            sketcher: method.make(shape, Isa::SCALAR),
        }
    }

    /// Odess at this rate.
    pub(super) fn odess(rate: Rate, shape: Shape) -> Self {
        Self::sampling("odess", Isa::SCALAR, rate, Box::new(Odess::new("odess", rate, shape)))
    }

    /// Odess that samples by this mask, which has as many ones as the usual rate asks for.
    pub(super) fn odess_by_mask(mask: u32, shape: Shape) -> Self {
        Self::sampling("odess", Isa::SCALAR, Rate::DEFAULT, Box::new(Odess::with_mask("odess", mask, shape)))
    }

    /// Odess+ at this rate.
    pub(super) fn odess_plus(rate: Rate, shape: Shape, isa: Isa) -> Self {
        Self::odess_plus_of(Windows::Four, rate, shape, isa)
    }

    /// Odess+ with so many windows side by side.
    pub(super) fn odess_plus_of(windows: Windows, rate: Rate, shape: Shape, isa: Isa) -> Self {
        Self::sampling("odess-plus", isa, rate, Box::new(OdessPlus::new("odess-plus", windows, rate, shape, isa)))
    }

    /// Odess+ with so many windows as its paper rolls them; `None` where there are no vectors of 128 bits.
    pub(super) fn word_lanes(windows: Windows, shape: Shape) -> Option<Self> {
        let isa = Isa::by_name("ssse3").or_else(|| Isa::by_name("neon"))?;
        let rules = OdessPlus::new(word_lanes::NAME, windows, Rate::DEFAULT, shape, isa);
        let sketcher = WordLanes::new(rules, windows)?;
        let isa_name = Some(sketcher.isa_name());
        Some(Self { isa_name, ..Self::sampling(word_lanes::NAME, isa, Rate::DEFAULT, Box::new(sketcher)) })
    }

    /// The name of the instruction set it runs on.
    pub(super) fn isa_name(&self) -> &'static str {
        self.isa_name.unwrap_or(self.isa.name())
    }

    fn sampling(method: &'static str, isa: Isa, rate: Rate, sketcher: Box<dyn Sketcher>) -> Self {
        Self { method, isa, isa_name: None, one_in: Some(rate.one_in()), window_bytes: WINDOW_BYTES, sketcher }
    }

    /// Siltstone's own.
    ///
    /// # Errors
    /// Never with the size it is made for.
    pub(super) fn own(shape: Shape, isa: Isa) -> Result<Self> {
        let sketcher = Box::new(Own::new(Lagged::new(sizes(SAMPLING_BYTES)?, &KEY, isa), shape, isa));
        let one_in = Some(OWN_ONE_IN);
        Ok(Self { method: own::NAME, isa, isa_name: None, one_in, window_bytes: WINDOW_BYTES, sketcher })
    }

    /// Its name.
    pub(super) fn method(&self) -> &'static str {
        self.method
    }

    /// Bytes that one hash is of.
    pub(super) fn window_bytes(&self) -> usize {
        self.window_bytes
    }

    /// Tells whether it has a form for vectors, and this is one: else it is slow.
    pub(super) fn is_vector(&self) -> bool {
        self.isa != Isa::SCALAR
    }

    /// Returns the numbers of features and of groups.
    pub(super) fn shape(&self) -> Shape {
        self.sketcher.shape()
    }

    /// Returns what makes its sketches.
    pub(super) fn sketcher(&self) -> &dyn Sketcher {
        &*self.sketcher
    }

    /// The sketch of a chunk, its features in the order in which they are grouped and compared (Odess, section 2.4).
    pub(super) fn grouped(&self, chunk: &[u8]) -> Option<Sketch> {
        Some(self.sketcher.sketch(chunk)?.grouped(self.sketcher.grouping()))
    }

    /// Returns the parameters that distinguish it.
    pub(super) fn row(&self) -> Row {
        row([
            ("method", self.method.into()),
            ("isa", self.isa_name().into()),
            ("one_in", self.one_in.into()),
            ("features", self.shape().features().into()),
            ("super_features", self.shape().super_features().into()),
        ])
    }
}
