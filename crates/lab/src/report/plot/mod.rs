//! Figures as drawings: SVG inside the page, whose style sheet gives colours, and a key of the series beside it.
//!
//! ```text
//! number text scale      what is written on axes, how wide it is, where values lie
//! marks                  colours, markers and hatches of series: told apart without colour too
//! frame                  axes, grid and their labels
//! bars lines points      the three kinds of plots; labels finds room for names of points, multiples gives each of many lines a frame
//! ```
//!
//! A drawing is 440 units wide, so that text of 12 units can still be read on a phone.

mod bars;
mod frame;
mod labels;
mod lines;
mod marks;
mod multiples;
pub(super) mod number;
mod path;
mod points;
mod scale;
pub(super) mod text;

pub(super) use marks::{Colours, Key, hatches};

use crate::report::{Figure, Plot};
use maud::{Markup, html};

/// Width of every drawing, in its units.
const WIDTH: f64 = 440.0;

/// About the height of most figures, with their captions.
const HEIGHT: f64 = 370.0;

/// Most figures of usual height that a figure counts as.
const HIGH_MAX: usize = 5;

/// A figure drawn.
pub(super) struct Drawing {
    /// An `svg` element.
    pub(super) svg: Markup,
    /// Keys that tell series apart; empty where there is one only.
    pub(super) keys: Vec<Key>,
    /// Height in figures of usual height.
    pub(super) times_usual: usize,
}

/// Drawing of one kind of plot.
struct Content {
    height: f64,
    marks: Markup,
    keys: Vec<Key>,
    /// Description of what is seen, in words.
    description: String,
}

/// Draws a figure; `None` if there is no value in it. `id` begins its names in the page.
pub(super) fn drawn(figure: &Figure, id: &str, colours: &Colours) -> Option<Drawing> {
    let content = match &figure.plot {
        Plot::Bars { y, groups, series } => bars::content(y, groups, series, colours),
        Plot::Lines { x, y, series } => lines::content(x, y, series, id, colours),
        Plot::Points { x, y, points } => points::content(x, y, points),
    }?;
    let view = format!("0 0 {WIDTH} {}", path::units(content.height));
    let svg = html! {
        svg viewBox=(view) width=(WIDTH) height=(path::units(content.height)) xmlns="http://www.w3.org/2000/svg" preserveAspectRatio="xMinYMin" role="img" aria-labelledby={ (id) "-t " (id) "-d" } {
            title id={ (id) "-t" } { (text::shown(&figure.title)) }
            desc id={ (id) "-d" } { (text::shown(&content.description)) }
            (content.marks)
        }
    };
    let times_usual = (1..HIGH_MAX).find(|&times| content.height < HEIGHT * (float(times) + 0.4)).unwrap_or(HIGH_MAX);
    Some(Drawing { svg, keys: content.keys, times_usual })
}

/// A count as a floating-point number.
fn float(count: usize) -> f64 {
    crate::table::as_float(count as u64)
}

/// Names in a row, the first few of many.
fn listed<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    const SHOWN: usize = 12;
    let left_out = names.len().saturating_sub(SHOWN);
    let list = names.take(SHOWN).collect::<Vec<_>>().join(", ");
    if left_out > 0 { format!("{list} and {left_out} more") } else { list }
}

/// The least and the greatest of these numbers in words.
fn range(values: impl Iterator<Item = f64>) -> String {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    format!("{} to {}", number::short(low), number::short(high))
}

#[cfg(test)]
mod tests;
