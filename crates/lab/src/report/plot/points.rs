//! Labelled points: an overall view.

use super::frame::{self, Area};
use super::labels::{self, Labelled, Rectangle};
use super::marks;
use super::path::{Path, units};
use super::scale::{Ruler, Start};
use super::text::{self, TEXT_HEIGHT};
use super::{Content, WIDTH, listed, number, range};
use crate::distinct;
use crate::report::{Axis, Point, Scale};
use maud::{Markup, html};

/// Height of the plot between its axes.
const PLOT_HEIGHT: f64 = 300.0;

/// Labels are at most so wide.
const LABEL_WIDTH_MAX: f64 = 170.0;

/// Draws points; `None` if there is none that its axes can show.
pub(super) fn content(x: &Axis, y: &Axis, points: &[Point]) -> Option<Content> {
    let across = Ruler::new(x.scale, Start::Near, roomy(x.scale, points.iter().map(|point| point.x)), 6.0);
    let up = Ruler::new(y.scale, Start::Near, roomy(y.scale, points.iter().map(|point| point.y)), 6.0);
    let area = Area::new(&y.label, &up, PLOT_HEIGHT, 0.0);
    let place = |point: &Point| Some(area.place(across.share(point.x)?, up.share(point.y)?));
    let shown: Vec<(&Point, (f64, f64))> = points.iter().filter_map(|point| Some((point, place(point)?))).collect();
    if shown.is_empty() {
        return None;
    }
    let families = families(points);
    let (below, height) = frame::horizontal(&x.label, &across, &area);
    let (leaders, names) = named(&shown, &area);
    let marks = html! {
        (frame::vertical(&y.label, &up, &area))
        (below)
        (leaders)
        @for (point, at) in &shown {
            g class=(marks::class(family(&families, point))) {
                (marks::disc(*at, marks::radius(point.size), &hint(point)))
            }
        }
        (names)
    };
    let description = format!(
        "Points: {}. {} from {}; {} from {}.",
        listed(points.iter().map(|point| point.name.as_str())),
        x.label,
        range(points.iter().map(|point| point.x)),
        y.label,
        range(points.iter().map(|point| point.y)),
    );
    Some(Content { height, marks, keys: Vec::new(), description })
}

/// Values, and beside each such that discs do not lie on the ends of the axis. (On a linear axis the least keeps its
/// place: it may be 0.)
fn roomy(scale: Scale, values: impl Iterator<Item = f64> + Clone) -> impl Iterator<Item = f64> {
    let greatest = values.clone().filter(|value| value.is_finite()).fold(0.0, f64::max);
    values.flat_map(move |value| match scale {
        Scale::Linear => [value, value + greatest * 0.02],
        Scale::Logarithmic => [value * 0.85, value * 1.18],
    })
}

fn hint(point: &Point) -> String {
    format!("{}: {}, {}", point.name, number::short(point.x), number::short(point.y))
}

/// First words of names, if they put points into a few groups (variants of one method): those share a colour.
fn families(points: &[Point]) -> Vec<&str> {
    let families = distinct(points.iter().map(first_word));
    if families.len() <= marks::COLOURS && families.len() < points.len() { families } else { Vec::new() }
}

fn family(families: &[&str], point: &Point) -> usize {
    families.iter().position(|family| *family == first_word(point)).unwrap_or(0)
}

/// The letters a name begins with: `MeGA` of `MeGA8` and of `MeGA t=0.8`.
fn first_word(point: &Point) -> &str {
    point.name.split(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default()
}

/// Lines to the labels that are far from their points, and the labels.
fn named(shown: &[(&Point, (f64, f64))], area: &Area) -> (Markup, Markup) {
    let names: Vec<String> =
        shown.iter().map(|(point, _)| text::shortened(&text::shown(&point.name), LABEL_WIDTH_MAX)).collect();
    let labelled: Vec<Labelled> = shown
        .iter()
        .zip(&names)
        .map(|((point, at), name)| Labelled {
            at: *at,
            radius: marks::radius(point.size),
            size: (text::width(name), TEXT_HEIGHT + 1.0),
        })
        .collect();
    let bounds = Rectangle { left: area.left + 2.0, top: area.top - 6.0, right: WIDTH, bottom: area.bottom - 1.0 };
    let labels = labels::placed(&labelled, &bounds);
    let mut leaders = Path::default();
    for (point, label) in labelled.iter().zip(&labels).filter(|(_, label)| label.is_far) {
        let (x, y) = label.room.nearest(point.at);
        leaders.go(point.at.0, point.at.1).line(x, y);
    }
    let lines = html! { @if !leaders.is_empty() { path.k d=(leaders.text()) {} } };
    let names = html! {
        @for (name, label) in names.iter().zip(&labels) {
            @let (x, y) = label.room.middle();
            text.c.w x=(units(x)) y=(units(y + 4.0)) { (name) }
        }
    };
    (lines, names)
}
