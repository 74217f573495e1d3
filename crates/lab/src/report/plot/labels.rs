//! Room for names of points: each has places around its point to choose from, near ones first, and takes the one that
//! covers least.

/// A rectangle, in units.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Rectangle {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Rectangle {
    /// Around a middle.
    pub(super) fn around((x, y): (f64, f64), width: f64, height: f64) -> Self {
        Self { left: x - width / 2.0, top: y - height / 2.0, right: x + width / 2.0, bottom: y + height / 2.0 }
    }

    /// Its middle.
    pub(super) fn middle(&self) -> (f64, f64) {
        (self.left.midpoint(self.right), self.top.midpoint(self.bottom))
    }

    /// Its place that is nearest to another.
    pub(super) fn nearest(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (x.clamp(self.left, self.right), y.clamp(self.top, self.bottom))
    }

    /// Returns the share of the line to a far label that lies in here, from 0 to 1.
    fn crossed(&self, from: (f64, f64), label: &Label) -> f64 {
        const STEPS: u8 = 16;
        if !label.is_far {
            return 0.0;
        }
        let to = label.room.nearest(from);
        let is_inside = |step: u8| {
            let share = f64::from(step) / f64::from(STEPS);
            let (x, y) = (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1));
            (self.left..=self.right).contains(&x) && (self.top..=self.bottom).contains(&y)
        };
        super::float((0..STEPS).filter(|&step| is_inside(step)).count()) / f64::from(STEPS)
    }

    fn shared_area(&self, other: &Self) -> f64 {
        let across = self.right.min(other.right) - self.left.max(other.left);
        let down = self.bottom.min(other.bottom) - self.top.max(other.top);
        across.max(0.0) * down.max(0.0)
    }

    fn holds(&self, other: &Self) -> bool {
        self.left <= other.left && self.top <= other.top && self.right >= other.right && self.bottom >= other.bottom
    }
}

/// A point that wants a label.
#[derive(Clone, Copy, Debug)]
pub(super) struct Labelled {
    /// Its place.
    pub(super) at: (f64, f64),
    /// Distance to which it reaches.
    pub(super) radius: f64,
    /// Width and height of its label.
    pub(super) size: (f64, f64),
}

/// Where a label is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Label {
    /// The room it takes.
    pub(super) room: Rectangle,
    /// True if it lies so far off that a line must lead to it.
    pub(super) is_far: bool,
}

/// Rounds in which all labels choose again, knowing where the others are.
const TURNS: usize = 5;

/// Distances of labels from the edge of their point.
const DISTANCES: [f64; 7] = [2.0, 12.0, 22.0, 34.0, 48.0, 64.0, 82.0];

/// Directions by preference: right, left, above, below, then between.
const DIRECTIONS: [(f64, f64); 12] = [
    (1.0, 0.0),
    (-1.0, 0.0),
    (0.0, -1.0),
    (0.0, 1.0),
    (1.0, -1.0),
    (-1.0, -1.0),
    (1.0, 1.0),
    (-1.0, 1.0),
    (1.0, -0.5),
    (-1.0, -0.5),
    (1.0, 0.5),
    (-1.0, 0.5),
];

/// Finds room for every label inside `bounds`.
///
/// # Complexity
/// Quadratic in the number of points.
pub(super) fn placed(points: &[Labelled], bounds: &Rectangle) -> Vec<Label> {
    let discs: Vec<Rectangle> =
        points.iter().map(|point| Rectangle::around(point.at, 2.0 * point.radius, 2.0 * point.radius)).collect();
    let mut labels: Vec<Option<Label>> = vec![None; points.len()];
    for _ in 0..TURNS {
        for (number, point) in points.iter().enumerate() {
            let others: Vec<((f64, f64), Label)> = labels
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != number)
                .filter_map(|(other, label)| Some((points[other].at, (*label)?)))
                .collect();
            let cost = |(preference, label): &(f64, Label)| {
                let outside = if bounds.holds(&label.room) { 0.0 } else { 1e6 };
                // The least touch is worse than a place farther off.
                let on_label = |(_, other): &((f64, f64), Label)| match label.room.shared_area(&other.room) {
                    area if area > 0.0 => 300.0 + 10.0 * area,
                    _ => 0.0,
                };
                let on_labels: f64 = others.iter().map(on_label).sum();
                let on_discs: f64 = discs.iter().map(|disc| label.room.shared_area(disc)).sum();
                let crossed = |(at, other): &((f64, f64), Label)| match other.room.crossed(point.at, label)
                    + label.room.crossed(*at, other)
                {
                    share if share > 0.0 => 200.0 + 1500.0 * share,
                    _ => 0.0,
                };
                let on_lines: f64 = others.iter().map(crossed).sum();
                outside + on_labels + 4.0 * on_discs + on_lines + preference
            };
            labels[number] =
                candidates(point).min_by(|one, other| cost(one).total_cmp(&cost(other))).map(|(_, label)| label);
        }
    }
    labels.into_iter().flatten().collect()
}

fn candidates(point: &Labelled) -> impl Iterator<Item = (f64, Label)> {
    let point = *point;
    DISTANCES.into_iter().enumerate().flat_map(move |(ring, distance)| {
        DIRECTIONS.into_iter().enumerate().map(move |(number, (right, down))| {
            let is_between = right != 0.0 && down != 0.0;
            let reach = point.radius + distance;
            // A corner of the label comes as near as a side does.
            let reach = if is_between { reach * 0.7 } else { reach };
            let middle =
                (point.at.0 + right * (reach + point.size.0 / 2.0), point.at.1 + down * (reach + point.size.1 / 2.0));
            let room = Rectangle::around(middle, point.size.0, point.size.1);
            (40.0 * super::float(ring) + super::float(number), Label { room, is_far: ring > 0 })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Rectangle = Rectangle { left: 0.0, top: 0.0, right: 400.0, bottom: 300.0 };

    #[test]
    fn crowded_labels_do_not_touch_and_stay_inside() {
        let at = [
            (200.0, 150.0),
            (203.0, 151.0),
            (206.0, 149.0),
            (209.0, 152.0),
            (212.0, 150.0),
            (390.0, 5.0),
            (3.0, 297.0),
        ];
        let points = at.map(|at| Labelled { at, radius: 5.0, size: (60.0, 13.0) });
        let labels = placed(&points, &BOUNDS);
        assert_eq!(labels.len(), points.len());
        for (number, label) in labels.iter().enumerate() {
            assert!(BOUNDS.holds(&label.room), "{label:?}");
            for other in &labels[..number] {
                assert!(label.room.shared_area(&other.room) <= 0.0, "{label:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_point_alone_has_its_label_to_the_right() {
        let labels = placed(&[Labelled { at: (100.0, 100.0), radius: 5.0, size: (50.0, 12.0) }], &BOUNDS);
        assert!(!labels[0].is_far);
        assert!((labels[0].room.left - 107.0).abs() < 1e-9);
        assert!(placed(&[], &BOUNDS).is_empty());
    }
}
