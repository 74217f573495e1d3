//! The `d` of SVG paths, with a tenth of a unit kept.

use std::fmt::Write;

/// A path under construction.
#[derive(Clone, Default, Debug)]
pub(super) struct Path(String);

impl Path {
    /// Goes to a place without drawing.
    pub(super) fn go(&mut self, x: f64, y: f64) -> &mut Self {
        self.put('M', x, y)
    }

    /// Draws a line to a place.
    pub(super) fn line(&mut self, x: f64, y: f64) -> &mut Self {
        self.put('L', x, y)
    }

    /// A rectangle between two corners.
    pub(super) fn rectangle(&mut self, (left, top): (f64, f64), (right, bottom): (f64, f64)) -> &mut Self {
        self.go(left, top);
        let _ = write!(self.0, "H{}v{}H{}z", units(right), units(bottom - top), units(left));
        self
    }

    /// Adds what is written in the language of paths.
    pub(super) fn raw(&mut self, commands: &str) -> &mut Self {
        self.0.push_str(commands);
        self
    }

    /// Tells whether nothing was drawn.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text of the attribute.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    fn put(&mut self, command: char, x: f64, y: f64) -> &mut Self {
        let _ = write!(self.0, "{command}{} {}", units(x), units(y));
        self
    }
}

/// A number of units as text.
pub(super) fn units(value: f64) -> String {
    // Adding 0 makes −0 to 0.
    ((value * 10.0).round() / 10.0 + 0.0).to_string()
}

/// The line without the points whose absence moves it by less than `tolerance` (Douglas and Peucker, 1973).
pub(super) fn simplified(points: &[(f64, f64)], tolerance: f64) -> Vec<(f64, f64)> {
    if points.len() < 3 {
        return points.to_vec();
    }
    let mut kept = vec![false; points.len()];
    kept[0] = true;
    kept[points.len() - 1] = true;
    let mut spans = vec![(0, points.len() - 1)];
    while let Some((first, last)) = spans.pop() {
        let farthest = (first + 1..last)
            .map(|middle| (distance(points[middle], points[first], points[last]), middle))
            .max_by(|one, other| one.0.total_cmp(&other.0));
        if let Some((_, middle)) = farthest.filter(|(distance, _)| *distance > tolerance) {
            kept[middle] = true;
            spans.extend([(first, middle), (middle, last)]);
        }
    }
    points.iter().zip(kept).filter_map(|(point, kept)| kept.then_some(*point)).collect()
}

/// Distance of a point from a line between two others.
fn distance((x, y): (f64, f64), from: (f64, f64), to: (f64, f64)) -> f64 {
    let (across, down) = (to.0 - from.0, to.1 - from.1);
    let length = across.hypot(down);
    if length == 0.0 {
        return (x - from.0).hypot(y - from.1);
    }
    ((x - from.0) * down - (y - from.1) * across).abs() / length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn straight_runs_lose_their_middle_and_corners_stay() {
        let line: Vec<(f64, f64)> =
            (0..100_u8).map(|x| (f64::from(x), if x < 50 { 0.0 } else { f64::from(x) - 50.0 })).collect();
        assert_eq!(simplified(&line, 0.1), [(0.0, 0.0), (50.0, 0.0), (99.0, 49.0)]);
        assert_eq!(simplified(&line[..2], 0.1).len(), 2);
        assert!(simplified(&[], 0.1).is_empty());
        let there_and_back = [(0.0, 0.0), (5.0, 5.0), (0.0, 0.0)];
        assert_eq!(simplified(&there_and_back, 0.1).len(), 3);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([units(1.0), units(-0.01), units(12.345), units(0.05)], ["1", "0", "12.3", "0.1"]);
        let mut path = Path::default();
        path.go(1.0, 2.0).line(3.0, 4.5);
        assert_eq!(path.text(), "M1 2L3 4.5");
    }
}
