//! Marks that tell series apart: ten colours (after Okabe and Ito, seen apart by the colour-blind), and beside them
//! seven markers, dashes and hatches, seen apart in grey too. Colours are variables of the page's style sheet, which
//! differ in light and dark.

use super::path::{Path, units};
use super::text;
use crate::distinct;
use crate::report::{Figure, Plot};
use maud::{Markup, html};

/// Colours there are, `--c0` to `--c9` in the style sheet.
pub(super) const COLOURS: usize = 10;

/// Markers and hatches there are. No divisor in common with the colours: series 10 has the colour of series 0, and
/// another marker.
const SHAPES: usize = 7;

/// Hatches defined in the page: pairs of colours and shapes.
const HATCHES: usize = 30;

/// Which series has which number, the same in all figures of an experiment as far as there are colours for that.
#[derive(Clone, Debug, Default)]
pub(in crate::report) struct Colours(Vec<String>);

impl Colours {
    /// Numbers for the series of these figures: of `figure`, or of `all` if they are few enough together.
    pub(in crate::report) fn of(figure: &Figure, all: &[Figure]) -> Self {
        let shared = Self::numbered(all);
        if shared.0.len() <= COLOURS { shared } else { Self::numbered(std::slice::from_ref(figure)) }
    }

    fn numbered(figures: &[Figure]) -> Self {
        Self(distinct(figures.iter().flat_map(|figure| series(&figure.plot)).map(measured)))
    }

    /// The number of a series.
    pub(super) fn index(&self, name: &str) -> usize {
        let name = measured(name);
        self.0.iter().position(|other| *other == name).unwrap_or(0)
    }
}

fn series(plot: &Plot) -> Vec<&str> {
    match plot {
        Plot::Bars { series, .. } => series.iter().map(|bars| bars.name.as_str()).collect(),
        Plot::Lines { series, .. } => series.iter().map(|line| line.name.as_str()).collect(),
        Plot::Points { .. } => Vec::new(),
    }
}

/// The name of what was measured, of which this may be the theory: they share a colour.
fn measured(name: &str) -> String {
    let words = name.split(|letter: char| letter.is_whitespace() || matches!(letter, '(' | ')' | ',' | ':'));
    let words =
        words.filter(|word| !word.is_empty() && !matches!(*word, "theory" | "Theory" | "theoretical" | "measured"));
    words.collect::<Vec<_>>().join(" ")
}

/// An entry of a key.
#[derive(Clone, Debug)]
pub(in crate::report) struct Key {
    /// The name of the series.
    pub(super) name: String,
    /// Its number.
    pub(super) index: usize,
    /// Way in which it is drawn.
    pub(super) kind: Kind,
}

/// Way in which a series is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// As bars with a hatch.
    Bars,
    /// As a line with markers.
    Line,
    /// As a line without.
    Thin,
    /// As a dashed line.
    Theory,
}

impl Key {
    /// A sample of the marks, and the name.
    pub(in crate::report) fn html(&self) -> Markup {
        let mut place = Path::default();
        let marks = match self.kind {
            Kind::Bars => {
                place.rectangle((5.5, 1.0), (20.5, 13.0));
                html! { path.b fill=(hatch(self.index)) d=(place.text()) {} }
            }
            Kind::Line => html! { path.l d="M0 7H26" {} (markers(self.index, &[(13.0, 7.0)])) },
            Kind::Thin => html! { path.l d="M0 7H26" {} },
            Kind::Theory => html! { path.l d="M0 7H26" stroke-dasharray=(dashes(self.index)) {} },
        };
        html! {
            svg class=(class(self.index)) { (marks) }
            (text::shown(&self.name))
        }
    }
}

/// The class that sets a colour.
pub(super) fn class(index: usize) -> String {
    format!("s{}", index % COLOURS)
}

/// The fill of a series of bars beside others.
pub(super) fn hatch(index: usize) -> String {
    format!("url(#h{})", index % HATCHES)
}

/// The dashes of a theory.
pub(super) fn dashes(index: usize) -> &'static str {
    ["6 4", "2 3", "9 3 2 3"][index % 3]
}

/// Markers of a series at these places, as one path.
pub(super) fn markers(index: usize, places: &[(f64, f64)]) -> Markup {
    let (shape, class) = [
        // A disc is the round end of a stroke of no length: a tenth of the bytes.
        ("h0", "d"),
        ("m-3 -3h6v6h-6z", "m"),
        ("m0-4.2l4.2 7.2h-8.4z", "m"),
        ("m-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0z", "o"),
        ("m-3.2-3.2l6.4 6.4m0-6.4l-6.4 6.4", "x"),
        ("m0-4.5l4.5 4.5l-4.5 4.5l-4.5-4.5z", "m"),
        ("m0 4.2l4.2-7.2h-8.4z", "o"),
    ][index % SHAPES];
    let mut path = Path::default();
    for &(x, y) in places {
        path.go(x, y).raw(shape);
    }
    html! { path class=(class) d=(path.text()) {} }
}

/// The hatches of bars, once for the whole page.
pub(in crate::report) fn hatches() -> Markup {
    html! {
        svg width="0" height="0" aria-hidden="true" {
            defs {
                @for index in 0..HATCHES {
                    @let (lines, turn) = hatch_lines(index % SHAPES);
                    pattern id={ "h" (index) } class=(class(index)) width="6" height="6" patternUnits="userSpaceOnUse" patternTransform=[turn] {
                        rect.f width="6" height="6" {}
                        @if !lines.is_empty() { path.h d=(lines) {} }
                    }
                }
            }
        }
    }
}

/// Lines in a tile of 6 by 6 units, and how the tile is turned.
fn hatch_lines(shape: usize) -> (&'static str, Option<&'static str>) {
    match shape {
        0 => ("", None),
        1 => ("M0 3H6", Some("rotate(45)")),
        2 => ("M0 3H6", Some("rotate(-45)")),
        3 => ("M0 3H6", None),
        4 => ("M0 3H6M3 0V6", None),
        5 => ("M3 3h.1", None),
        _ => ("M0 3H6M3 0V6", Some("rotate(45)")),
    }
}

/// A disc of so much: its area grows with `size` from 0 to 1.
pub(super) fn radius(size: f64) -> f64 {
    let size = if size.is_finite() { size.clamp(0.0, 1.0) } else { 0.0 };
    (14.0 + 86.0 * size).sqrt()
}

/// A disc with what is shown when it is pointed at.
pub(super) fn disc((x, y): (f64, f64), radius: f64, hint: &str) -> Markup {
    html! { circle.p cx=(units(x)) cy=(units(y)) r=(units(radius)) { title { (text::shown(hint)) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_theory_has_the_colour_of_what_it_is_about() {
        let colours = Colours(vec!["AE".to_owned(), "Rabin".to_owned()]);
        assert_eq!(["AE", "Rabin", "AE (theory)", "theory: Rabin"].map(|name| colours.index(name)), [0, 1, 0, 1]);
    }

    #[test]
    fn many_series_differ_by_colour_or_marker() {
        let mut looks: Vec<(String, usize)> =
            (0..COLOURS * SHAPES).map(|index| (class(index), index % SHAPES)).collect();
        looks.sort();
        looks.dedup();
        assert_eq!(looks.len(), COLOURS * SHAPES);
    }
}
