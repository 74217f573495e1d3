//! A method cut at a wanted real average: a chunker that cuts more often finds more duplicates, so savings compare only
//! where chunks are equally large on the very data they are compared on.

use super::cuts::Cuts;
use super::method::Method;
use super::search::{Found, search};
use anyhow::Result;
use std::ops::RangeInclusive;

/// Expected sizes searched, bytes: what every method takes.
pub const EXPECTED: RangeInclusive<u32> = 512..=1 << 20;

/// Finds the expected size, from `first` on, at which the method's real average on this data is the wanted one, and
/// what it cuts there with each of its keys. Limits keep their proportion to the expected size.
///
/// # Errors
/// If the method does not take the sizes that are tried.
pub fn at_average(method: Method, data: &[u8], wanted: f64, first: u32) -> Result<Found<Vec<Cuts>>> {
    search(wanted, first, &EXPECTED, |expected| {
        let chunkers = method.chunkers(expected, method.best())?;
        let cuts: Vec<Cuts> = chunkers.iter().map(|chunker| Cuts::of(&**chunker, data)).collect();
        Ok((sum(&cuts).average(), cuts))
    })
}

/// All keys together.
pub fn sum(of_keys: &[Cuts]) -> Cuts {
    of_keys.iter().fold(Cuts::default(), Cuts::and)
}
