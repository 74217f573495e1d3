//! Many lines: a small frame for each, on the same axes, with all the others in grey behind it, so that none hides
//! another.
//!
//! Lines whose name is that of another and more (`ae`, `ae, the paper`, `ae (theory)`) stand in its frame, told apart
//! by colour and dashes.

use super::frame::{self, Area};
use super::lines::{self, Run};
use super::marks::{self, Key, Kind};
use super::path::{Path, units};
use super::scale::{Ruler, Start};
use super::text::{self, LINE_HEIGHT};
use super::{Content, WIDTH, float};
use crate::report::{Axis, Line};
use maud::{Markup, html};

/// Frames beside one another.
const COLUMNS: usize = 3;

/// Between frames beside one another.
const GAP: f64 = 16.0;

/// Height of a frame.
const FRAME_HEIGHT: f64 = 78.0;

/// From the top of a frame to that of the one below: room for its name between.
const ROW_STEP: f64 = FRAME_HEIGHT + 26.0;

/// Draws lines in frames; `None` if there is no point. `id` begins names in the page.
pub(super) fn content(x: &Axis, y: &Axis, series: &[Line], id: &str) -> Option<Content> {
    let points = || series.iter().flat_map(|line| &line.points);
    let rulers = (
        Ruler::new(x.scale, Start::Data, points().map(|point| point.0), 4.0),
        Ruler::new(y.scale, Start::Zero, points().map(|point| point.1), 4.0),
    );
    let names = Names::of(series);
    let first = first_frame(&y.label, &rulers.1);
    let runs: Vec<Vec<Run>> = series.iter().map(|line| lines::runs(line, &rulers, &first)).collect();
    runs.iter().flatten().next()?;
    let areas: Vec<Area> = (0..names.heads.len()).map(|number| moved(&first, number)).collect();
    let bottom = areas.iter().map(|area| area.bottom).fold(0.0, f64::max);
    let whole = Area { right: WIDTH, bottom, ..first };
    let (x_label, height) = frame::label_below(&x.label, &whole, bottom + 20.0);
    let marks = html! {
        defs { g id={ (id) "-all" } {
            @for (number, runs) in runs.iter().enumerate() { path id={ (id) "-" (number) } d=(lines::way(runs).text()) {} }
        } }
        (frames(&y.label, &rulers, &areas))
        @for (head, area) in names.heads.iter().zip(&areas) {
            @let name = text::shown(head);
            text.a x=(units(area.left)) y=(units(area.top - 5.0)) { (text::shortened(&name, area.right - area.left)) title { (name) } }
            use.y href={ "#" (id) "-all" } x=(units(area.left - first.left)) y=(units(area.top - first.top)) {}
        }
        @for (kind, _) in names.kinds.iter().enumerate() {
            g class=(marks::class(kind)) {
                @for (number, place) in names.places.iter().enumerate().filter(|(_, place)| place.kind == kind) {
                    @let (line, area) = (&series[number], &areas[place.frame]);
                    @let (right, down) = (area.left - first.left, area.top - first.top);
                    use.l href={ "#" (id) "-" (number) } x=(units(right)) y=(units(down)) stroke-dasharray=[line.is_theory.then(|| marks::dashes(kind))] {
                        title { (lines::hint(line)) }
                    }
                    (alone(&runs[number], kind, (right, down)))
                }
            }
        }
        (x_label)
    };
    Some(Content { height, marks, keys: names.keys(series), description: lines::description(x, y, series) })
}

/// The frame on the left of the first row.
fn first_frame(y_label: &str, y: &Ruler) -> Area {
    let area = Area::new(y_label, y, FRAME_HEIGHT, LINE_HEIGHT);
    let columns = float(COLUMNS);
    let width = (WIDTH - area.left - 4.0 - GAP * (columns - 1.0)) / columns;
    Area { right: area.left + width, ..area }
}

/// The frame of this number: rows from the left, downwards.
fn moved(first: &Area, number: usize) -> Area {
    let right = float(number % COLUMNS) * (first.right - first.left + GAP);
    let down = float(number / COLUMNS) * ROW_STEP;
    Area { left: first.left + right, right: first.right + right, top: first.top + down, bottom: first.bottom + down }
}

/// Grids of all frames; numbers at the left of each row and below the lowest frame of each column.
fn frames(y_label: &str, (x, y): &(Ruler, Ruler), areas: &[Area]) -> Markup {
    let height = |value: f64, area: &Area| area.place(0.0, y.share(value).unwrap_or(0.0)).1;
    let labelled = || y.ticks.iter().filter(|tick| !tick.label.is_empty());
    let (mut grid, mut base) = (Path::default(), Path::default());
    for area in areas {
        for tick in labelled() {
            grid.go(area.left, height(tick.value, area)).raw(&format!("H{}", units(area.right)));
        }
        base.go(area.left, area.bottom).raw(&format!("H{}", units(area.right)));
        for tick in x.ticks.iter().filter(|tick| !tick.label.is_empty()) {
            base.go(area.place(x.share(tick.value).unwrap_or(0.0), 0.0).0, area.bottom).raw("v4");
        }
    }
    html! {
        @for (number, line) in text::wrapped(&text::shown(y_label), WIDTH).iter().enumerate() {
            text.a x="0" y=(units(12.0 + LINE_HEIGHT * float(number))) { (line) }
        }
        path.g d=(grid.text()) {}
        path.t d=(base.text()) {}
        @for area in areas.iter().step_by(COLUMNS) {
            @for tick in labelled() { text.e x=(units(area.left - 5.0)) y=(units(height(tick.value, area) + 4.0)) { (tick.label) } }
        }
        @for area in areas.iter().rev().take(COLUMNS) { (frame::numbers(x, area, area.bottom + 16.0)) }
    }
}

/// Markers of points that no line goes to, so far from the first frame.
fn alone(runs: &[Run], kind: usize, (right, down): (f64, f64)) -> Markup {
    let alone = runs.iter().filter(|run| run.len() == 1).flatten();
    let places: Vec<(f64, f64)> = alone.map(|&(x, y)| (x + right, y + down)).collect();
    html! { @if !places.is_empty() { (marks::markers(kind, &places)) } }
}

/// Which line stands in which frame, and as what.
struct Names {
    /// Names of frames.
    heads: Vec<String>,
    /// Words added to them; none first.
    kinds: Vec<String>,
    /// Place of each line.
    places: Vec<Place>,
}

struct Place {
    frame: usize,
    kind: usize,
}

impl Names {
    fn of(series: &[Line]) -> Self {
        let mut names = Self { heads: Vec::new(), kinds: vec![String::new()], places: Vec::new() };
        for line in series {
            let heads = series.iter().filter_map(|other| Some((&other.name, rest(&line.name, &other.name)?)));
            let (head, rest) = heads.min_by_key(|(head, _)| head.len()).unwrap_or((&line.name, ""));
            let (frame, kind) = (position(&mut names.heads, head), position(&mut names.kinds, rest));
            names.places.push(Place { frame, kind });
        }
        names
    }

    /// A key of what is added; none if nothing is.
    fn keys(&self, series: &[Line]) -> Vec<Key> {
        let key = |(kind, name): (usize, &String)| {
            let is_theory = series.iter().zip(&self.places).any(|(line, place)| place.kind == kind && line.is_theory);
            Key {
                name: if name.is_empty() { "as named".to_owned() } else { name.clone() },
                index: kind,
                kind: if is_theory { Kind::Theory } else { Kind::Thin },
            }
        };
        if self.kinds.len() > 1 { self.kinds.iter().enumerate().map(key).collect() } else { Vec::new() }
    }
}

/// Returns what a name adds to another; `None` if it does not begin with it.
fn rest<'n>(name: &'n str, head: &str) -> Option<&'n str> {
    let rest = name.strip_prefix(head)?;
    match rest.strip_prefix(", ") {
        Some(added) => Some(added),
        None if rest.is_empty() => Some(rest),
        None => rest.strip_prefix(" (")?.strip_suffix(')'),
    }
}

/// Where a name is in a list, to which it is added if it is new.
fn position(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|other| other == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, y: f64) -> Line {
        Line { name: name.into(), is_theory: name.ends_with("paper"), points: vec![(1.0, y), (2.0, 2.0 * y)] }
    }

    #[test]
    fn a_line_about_another_stands_in_its_frame() {
        let series = ["ae", "ae, chunks", "ae, the paper", "ae-max", "ram", "ram (chunks)"].map(|name| line(name, 1.0));
        let names = Names::of(&series);
        assert_eq!(names.heads, ["ae", "ae-max", "ram"]);
        assert_eq!(names.kinds, ["", "chunks", "the paper"]);
        let places: Vec<(usize, usize)> = names.places.iter().map(|place| (place.frame, place.kind)).collect();
        assert_eq!(places, [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 1)]);
        assert_eq!(names.keys(&series).len(), 3);
    }

    #[test]
    fn each_line_is_drawn_in_colour_once_and_none_leaves_the_drawing() {
        let series: Vec<Line> = (1..=13_u8).map(|number| line(&format!("m{number}"), f64::from(number))).collect();
        let content = content(&Axis::linear("version"), &Axis::linear("MB/s"), &series, "f").unwrap();
        let svg = content.marks.into_string();
        assert_eq!((svg.matches("<use class=\"l\"").count(), svg.matches("<use class=\"y\"").count()), (13, 13));
        assert!(content.keys.is_empty() && content.height > 5.0 * FRAME_HEIGHT);
        let first =
            first_frame("MB/s", &Ruler::new(crate::report::Scale::Linear, Start::Zero, [26.0].into_iter(), 4.0));
        assert!(moved(&first, 2).right <= WIDTH && moved(&first, 12).top > moved(&first, 9).bottom);
    }

    #[test]
    fn without_points_there_is_nothing_to_draw() {
        let series: Vec<Line> = (0..9).map(|_| Line { points: Vec::new(), ..line("m", 1.0) }).collect();
        assert!(content(&Axis::linear("x"), &Axis::linear("y"), &series, "f").is_none());
    }
}
