//! Every method by name: one table for command lines, comparisons and tests.

use super::{Extreme, Finesse, NTransform, Odess, OdessPlus, Rate, Shape, SketchError, Sketcher, Windows};
use alloc::boxed::Box;
use siltstone_simd::Isa;

/// One row of [`METHODS`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Method {
    /// Name of the method, bound to its features for ever.
    pub name: &'static str,
    /// Summary of the method, in a few words.
    pub summary: &'static str,
    /// Publication that described it first.
    pub source: &'static str,
    /// True if it has forms for the instruction sets of `siltstone-simd`; otherwise its one form is the same on all.
    pub vector: bool,
    make: fn(&'static str, Shape, Isa) -> Box<dyn Sketcher>,
}

impl Method {
    /// The sketcher, in its form for `isa`.
    pub fn make(&self, shape: Shape, isa: Isa) -> Box<dyn Sketcher> {
        (self.make)(self.name, shape, isa)
    }
}

macro_rules! rows {
    ($($name:literal $vector:literal: $summary:literal, $source:literal => |$($argument:pat_param),*| $make:expr;)*) => {
        &[$(Method {
            name: $name,
            summary: $summary,
            source: $source,
            vector: $vector,
            make: |$($argument),*| Box::new($make),
        }),*]
    };
}

/// All of them.
pub const METHODS: &[Method] = rows! {
    "ntransform" false: "greatest of all Rabin fingerprints of 48 bytes, by each function", "Finesse, FAST'19, section 3"
        => |name, shape, _| NTransform::<48>::new(name, Extreme::Max, shape);
    "ntransform-32" false: "least of all Rabin fingerprints of 32 bytes, by each function", "Odess, TOS, section 2.3"
        => |name, shape, _| NTransform::<32>::new(name, Extreme::Min, shape);
    "finesse" false: "greatest Rabin fingerprint of each of equal parts, grouped by rank", "Finesse, FAST'19, section 4"
        => |name, shape, _| Finesse::new(name, shape);
    "odess" false: "least of one Gear hash in 128, by each function", "Odess, TOS, section 3.2"
        => |name, shape, _| Odess::new(name, Rate::OneIn128, shape);
    "odess-32" false: "the same of one in 32", "Odess, TOS, section 4.2.2"
        => |name, shape, _| Odess::new(name, Rate::OneIn32, shape);
    "odess-64" false: "the same of one in 64", "Odess, TOS, section 4.2.2"
        => |name, shape, _| Odess::new(name, Rate::OneIn64, shape);
    "odess-256" false: "the same of one in 256", "Odess, TOS, section 4.2.2"
        => |name, shape, _| Odess::new(name, Rate::OneIn256, shape);
    "odess-512" false: "the same of one in 512", "Odess, TOS, section 4.2.2"
        => |name, shape, _| Odess::new(name, Rate::OneIn512, shape);
    "odess-plus" true: "least of one SWPR hash of 32 bits in 128, by each function", "Odess, TOS, section 3.4"
        => |name, shape, isa| OdessPlus::new(name, Windows::Four, Rate::OneIn128, shape, isa);
    "odess-plus-2" true: "two windows: hashes of 64 bits", "Odess, TOS, section 4.3.3"
        => |name, shape, isa| OdessPlus::new(name, Windows::Two, Rate::OneIn128, shape, isa);
    "odess-plus-8" true: "eight windows: hashes of 16 bits", "Odess, TOS, section 4.3.3"
        => |name, shape, isa| OdessPlus::new(name, Windows::Eight, Rate::OneIn128, shape, isa);
};

/// The names of [`METHODS`], in their order.
pub fn names() -> impl Iterator<Item = &'static str> {
    METHODS.iter().map(|method| method.name)
}

/// Makes the sketcher of that name for the instruction set of [`Isa::best`].
///
/// # Errors
/// [`SketchError::UnknownName`] if no method has that name, `SketchError::UnknownIsa` if `SILT_ISA` names none of this
/// CPU.
pub fn by_name(name: &str, shape: Shape) -> Result<Box<dyn Sketcher>, SketchError> {
    let method = METHODS.iter().find(|method| method.name == name);
    let method = method.ok_or_else(|| SketchError::unknown_name(name))?;
    #[cfg(feature = "std")]
    let isa = Isa::chosen().map_err(SketchError::UnknownIsa)?;
    #[cfg(not(feature = "std"))]
    let isa = Isa::best();
    Ok(method.make(shape, isa))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_makes_what_its_name_says() {
        for method in METHODS {
            for isa in Isa::available() {
                let sketcher = method.make(Shape::DEFAULT, isa);
                assert_eq!((sketcher.name(), sketcher.shape()), (method.name, Shape::DEFAULT));
            }
            assert_eq!(by_name(method.name, Shape::DEFAULT).unwrap().name(), method.name);
        }
        assert!(by_name("minhash", Shape::DEFAULT).err().unwrap().to_string().contains("odess-plus"));
    }

    #[test]
    fn names_are_unique() {
        assert!(names().all(|name| names().filter(|other| *other == name).count() == 1));
    }
}
