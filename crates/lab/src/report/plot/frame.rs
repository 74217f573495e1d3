//! The frame of plots whose values go up: axes, grid, numbers at ticks, labels with units.

use super::WIDTH;
use super::path::{Path, units};
use super::scale::Ruler;
use super::text::{self, LINE_HEIGHT};
use maud::{Markup, html};

/// Where a plot lies in its drawing, in units.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Area {
    /// Where values begin to the right.
    pub(super) left: f64,
    /// Where they end.
    pub(super) right: f64,
    /// Where the highest value is.
    pub(super) top: f64,
    /// Where the lowest is.
    pub(super) bottom: f64,
}

impl Area {
    /// With so high a plot below the label of the axis that goes up, which stands on top and needs no turned head.
    pub(super) fn new(y_label: &str, y: &Ruler, plot_height: f64, room_above: f64) -> Self {
        let widest = y.ticks.iter().map(|tick| text::width(&tick.label)).fold(0.0, f64::max);
        let top = float_lines(&text::wrapped(y_label, WIDTH)) + 9.0 + room_above;
        Self { left: widest + 8.0, right: WIDTH - 12.0, top, bottom: top + plot_height }
    }

    /// A place from shares of both axes.
    pub(super) fn place(&self, x: f64, y: f64) -> (f64, f64) {
        (self.left + x * (self.right - self.left), self.bottom - y * (self.bottom - self.top))
    }
}

/// The axis that goes up, with its grid.
pub(super) fn vertical(label: &str, y: &Ruler, area: &Area) -> Markup {
    let mut grid = Path::default();
    let mut minor = Path::default();
    for tick in &y.ticks {
        let at = area.place(0.0, y.share(tick.value).unwrap_or(0.0)).1;
        let lines = if tick.label.is_empty() { &mut minor } else { &mut grid };
        lines.go(area.left, at).line(area.right, at);
    }
    html! {
        (grid_lines(&grid, &minor))
        @for tick in y.ticks.iter().filter(|tick| !tick.label.is_empty()) {
            text.e x=(units(area.left - 5.0)) y=(units(area.place(0.0, y.share(tick.value).unwrap_or(0.0)).1 + 4.0)) { (tick.label) }
        }
        @for (number, line) in text::wrapped(&text::shown(label), WIDTH).iter().enumerate() {
            text.a x="0" y=(units(12.0 + LINE_HEIGHT * super::float(number))) { (line) }
        }
    }
}

/// Lines of a grid, the lesser ones fainter.
pub(super) fn grid_lines(grid: &Path, minor: &Path) -> Markup {
    html! {
        @if !minor.is_empty() { path.g.n d=(minor.text()) {} }
        @if !grid.is_empty() { path.g d=(grid.text()) {} }
    }
}

/// The axis that goes to the right, below the plot, and the height of the whole drawing.
pub(super) fn horizontal(label: &str, x: &Ruler, area: &Area) -> (Markup, f64) {
    let mut major = Path::default();
    let mut minor = Path::default();
    for tick in &x.ticks {
        let at = area.place(x.share(tick.value).unwrap_or(0.0), 0.0).0;
        let (lines, length) = if tick.label.is_empty() { (&mut minor, 3.0) } else { (&mut major, 5.0) };
        lines.go(at, area.bottom).raw(&format!("v{}", units(length)));
    }
    let (title, height) = label_below(label, area, area.bottom + 20.0);
    let marks = html! {
        path.t d={ (major.text()) (minor.text()) "M" (units(area.left)) " " (units(area.bottom)) "H" (units(area.right)) } {}
        (numbers(x, area, area.bottom + 17.0))
        (title)
    };
    (marks, height)
}

/// Numbers of an axis that goes to the right, as many as do not touch.
pub(super) fn numbers(x: &Ruler, area: &Area, baseline: f64) -> Markup {
    let mut taken = f64::NEG_INFINITY;
    html! {
        @for tick in x.ticks.iter().filter(|tick| !tick.label.is_empty()) {
            @let half = text::width(&tick.label) / 2.0;
            @let at = area.place(x.share(tick.value).unwrap_or(0.0), 0.0).0.min(WIDTH - half);
            @if at - half > taken {
                @let () = taken = at + half + 4.0;
                text.c x=(units(at)) y=(units(baseline)) { (tick.label) }
            }
        }
    }
}

/// The label of the axis that goes to the right, below `top`, and where it ends.
pub(super) fn label_below(label: &str, area: &Area, top: f64) -> (Markup, f64) {
    let lines = text::wrapped(&text::shown(label), WIDTH);
    let widest = lines.iter().map(|line| text::width(line)).fold(0.0, f64::max);
    let middle = (area.left + area.right).midpoint(0.0).min(WIDTH - widest / 2.0).max(widest / 2.0);
    let marks = html! {
        @for (number, line) in lines.iter().enumerate() {
            text.a.c x=(units(middle)) y=(units(top + 13.0 + LINE_HEIGHT * super::float(number))) { (line) }
        }
    };
    (marks, top + float_lines(&lines) + 4.0)
}

fn float_lines(lines: &[String]) -> f64 {
    LINE_HEIGHT * super::float(lines.len())
}
