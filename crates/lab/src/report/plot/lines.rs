//! Lines: per version, or cumulative distributions; theory is dashed. Where there are many, each has a frame of its own
//! (multiples).

use super::frame::{self, Area};
use super::marks::{self, Colours, Key, Kind};
use super::path::{self, Path};
use super::scale::{Ruler, Start};
use super::{Content, WIDTH, float, listed, multiples, number, range, text};
use crate::report::{Axis, Line};
use maud::{Markup, html};

/// Height of the plot between its axes.
const PLOT_HEIGHT: f64 = 215.0;

/// Distance by which a line may be off when points are left out of it.
const TOLERANCE: f64 = 0.2;

/// Lines with at most so many points have a marker at each.
const ALL_MARKED_MAX: usize = 12;

/// Otherwise markers are at least so far apart.
const MARKERS_APART: f64 = 34.0;

/// More lines than that in one frame hide one another.
const TOGETHER_MAX: usize = 8;

/// Draws lines; `None` if there is no point. `id` begins its names in the page.
pub(super) fn content(x: &Axis, y: &Axis, series: &[Line], id: &str, colours: &Colours) -> Option<Content> {
    if series.len() > TOGETHER_MAX {
        return multiples::content(x, y, series, id);
    }
    let points = || series.iter().flat_map(|line| &line.points);
    let rulers = (
        Ruler::new(x.scale, Start::Data, points().map(|point| point.0), 8.0),
        Ruler::new(y.scale, Start::Zero, points().map(|point| point.1), 6.0),
    );
    let area = Area::new(&y.label, &rulers.1, PLOT_HEIGHT, 0.0);
    let runs: Vec<Vec<Run>> = series.iter().map(|line| runs(line, &rulers, &area)).collect();
    runs.iter().flatten().next()?;
    let (below, height) = frame::horizontal(&x.label, &rulers.0, &area);
    let marks = html! {
        (frame::vertical(&y.label, &rulers.1, &area))
        (below)
        @for (number, (line, runs)) in series.iter().zip(&runs).enumerate() {
            (drawn(line, runs, colours.index(&line.name), float(number) / float(series.len())))
        }
    };
    let key = |line: &Line| Key {
        name: line.name.clone(),
        index: colours.index(&line.name),
        kind: if line.is_theory { Kind::Theory } else { Kind::Line },
    };
    let keys = if series.len() > 1 { series.iter().map(key).collect() } else { Vec::new() };
    Some(Content { height, marks, keys, description: description(x, y, series) })
}

/// Describes in words what is seen.
pub(super) fn description(x: &Axis, y: &Axis, series: &[Line]) -> String {
    let points = || series.iter().flat_map(|line| &line.points);
    format!(
        "Lines: {}. {} from {}; {} from {}.",
        listed(series.iter().map(|line| line.name.as_str())),
        x.label,
        range(points().map(|point| point.0)),
        y.label,
        range(points().map(|point| point.1)),
    )
}

/// Places of successive points between which nothing is missing.
pub(super) type Run = Vec<(f64, f64)>;

/// The runs of a line in its frame.
pub(super) fn runs(line: &Line, (x, y): &(Ruler, Ruler), area: &Area) -> Vec<Run> {
    let place = |&(at, value): &(f64, f64)| Some(area.place(x.share(at)?, y.share(value)?));
    let places: Vec<Option<(f64, f64)>> = line.points.iter().map(place).collect();
    places
        .split(Option::is_none)
        .map(|run| run.iter().flatten().copied().collect())
        .filter(|run: &Run| !run.is_empty())
        .collect()
}

/// The way through them, without the points that would not be missed.
pub(super) fn way(runs: &[Run]) -> Path {
    let mut path = Path::default();
    for run in runs {
        for (number, &(x, y)) in path::simplified(run, TOLERANCE).iter().enumerate() {
            if number == 0 {
                path.go(x, y)
            } else {
                path.line(x, y)
            };
        }
    }
    path
}

/// Returns the hint that is shown where a line is pointed at.
pub(super) fn hint(line: &Line) -> String {
    let last = line.points.last().map_or(f64::NAN, |point| point.1);
    format!("{}, at the end {}", text::shown(&line.name), number::short(last))
}

fn drawn(line: &Line, runs: &[Run], index: usize, stagger: f64) -> Markup {
    let dashes = line.is_theory.then(|| marks::dashes(index));
    html! {
        g class=(marks::class(index)) {
            title { (hint(line)) }
            path.l d=(way(runs).text()) stroke-dasharray=[dashes] {}
            @if !line.is_theory { (marks::markers(index, &marked(runs, stagger))) }
        }
    }
}

/// The points that get a marker. Where there are many, each line begins elsewhere, so that markers of lines that
/// coincide do not.
fn marked(runs: &[Run], stagger: f64) -> Vec<(f64, f64)> {
    let points = || runs.iter().flatten().copied();
    if points().count() <= ALL_MARKED_MAX {
        return points().collect();
    }
    let mut marked: Vec<(f64, f64)> = Vec::new();
    let mut next = points().next().map_or(WIDTH, |first| first.0 + stagger * MARKERS_APART);
    for (x, y) in points() {
        if x >= next {
            marked.push((x, y));
            next = x + MARKERS_APART;
        }
    }
    // A run of one point would not be seen otherwise.
    marked.extend(runs.iter().filter(|run| run.len() == 1).flatten());
    marked
}
