//! Savings at equal real averages. A chunker that cuts more often finds more duplicates, so savings compare only
//! where chunks are equally large on the very data they are compared on, whatever the chunkers were asked for. For each
//! method, data and target the expected size is searched that gives that average; its limits keep their proportion to
//! it.

use anyhow::Result;
use siltstone_lab::chunk::cuts::Cuts;
use siltstone_lab::chunk::equal::{self, EXPECTED};
use siltstone_lab::chunk::method::Method;
use siltstone_lab::chunk::search::Found;
use siltstone_testbed::data::Data;
use siltstone_testbed::statistics::Spread;
use siltstone_testbed::table::as_float;
use siltstone_testbed::trials;

/// The real averages compared at, bytes.
pub(super) const TARGETS: [u32; 3] = [4 << 10, 8 << 10, 16 << 10];

/// Savings of one method on one set of data at one average.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) method: Method,
    /// The average wanted, bytes.
    pub(super) target_bytes: u32,
    /// Expected size the method was asked for, bytes.
    pub(super) expected_bytes: u32,
    /// Summed over all keys, where it has one.
    pub(super) cuts: Cuts,
    /// Number of keys.
    pub(super) keys: u64,
    /// By how much the keys differ in what they store: most less least, against the middle.
    pub(super) key_spread: Option<f64>,
    /// True if the average is within a hundredth of the wanted one; otherwise it is the nearest this method has on this
    /// data.
    pub(super) is_reached: bool,
}

/// All methods at all targets, on as many threads as there are cores: nothing is timed.
pub(super) fn measure(data: &Data, methods: &[Method]) -> Result<Vec<Point>> {
    let points = trials::run("chunk savings", methods.len() as u64, |index| {
        let method = methods[usize::try_from(index).expect("it is below their number")];
        let points = of_method(method, &data.bytes)?;
        say(data, &points);
        Ok(points)
    })?;
    Ok(points.concat())
}

/// One method at all targets; each search begins where the one before says.
fn of_method(method: Method, data: &[u8]) -> Result<Vec<Point>> {
    let mut points = Vec::with_capacity(TARGETS.len());
    for target_bytes in TARGETS {
        let first = points.last().map_or(target_bytes, |last| scaled(last, target_bytes));
        let Found { expected, measured, is_reached, .. } =
            equal::at_average(method, data, f64::from(target_bytes), first)?;
        let keys = measured.len() as u64;
        let (cuts, key_spread) = (equal::sum(&measured), spread(&measured));
        points.push(Point { method, target_bytes, expected_bytes: expected, cuts, keys, key_spread, is_reached });
    }
    Ok(points)
}

fn spread(of_keys: &[Cuts]) -> Option<f64> {
    let spread = Spread::of(of_keys.iter().map(|cuts| as_float(cuts.unique_bytes)));
    (of_keys.len() > 1).then(|| (spread.high - spread.low) / spread.median)
}

/// The expected size that proportion gives.
fn scaled(last: &Point, target_bytes: u32) -> u32 {
    let scaled = u64::from(last.expected_bytes) * u64::from(target_bytes) / u64::from(last.target_bytes);
    u32::try_from(scaled).unwrap_or(*EXPECTED.end())
}

fn say(data: &Data, points: &[Point]) {
    let Some(first) = points.first() else { return };
    let savings: Vec<String> = points.iter().map(|point| format!("{:.4}", point.cuts.savings())).collect();
    eprintln!("{}: {} saves {}", data.name, first.method.name(), savings.join(", "));
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_testbed::deterministic::Sequence;

    #[test]
    fn equal_averages_are_reached_and_repetition_is_saved() {
        let once = Sequence::new(5).bytes(3 << 20);
        let data = Data::single("d", String::new(), once.repeat(2));
        let methods = Method::chosen(&["gear-nc2".into()]).unwrap();
        for point in measure(&data, &methods).unwrap() {
            let off = (point.cuts.average() / f64::from(point.target_bytes) - 1.0).abs();
            assert_eq!(point.is_reached, off <= siltstone_lab::chunk::search::TOLERANCE);
            assert!((0.45..0.51).contains(&point.cuts.savings()), "{point:?}");
        }
    }
}
