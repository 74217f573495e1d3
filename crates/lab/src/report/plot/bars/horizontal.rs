//! Horizontal bars: many groups, or groups with long names. The drawing grows downwards, so there is room for all of
//! them.

use super::Chart;
use crate::report::plot::frame::{self, Area};
use crate::report::plot::path::{Path, units};
use crate::report::plot::scale::Ruler;
use crate::report::plot::text::{self, LINE_HEIGHT};
use crate::report::plot::{WIDTH, float, marks, number};
use maud::{Markup, html};

/// From one bar to the next of its group: a line of text fits.
const BAR_STEP: f64 = 14.0;

const BAR_HEIGHT: f64 = 11.0;

/// From one group to the next, beside its bars.
const GROUP_GAP: f64 = 7.0;

/// Names wider than that stand above their bars instead of beside.
const NAME_WIDTH_MAX: f64 = 165.0;

/// Higher drawings have their numbers at both ends.
const ONE_AXIS_HEIGHT_MAX: f64 = 420.0;

/// Draws the chart and gives its height.
pub(super) fn drawn(chart: &Chart) -> (Markup, f64) {
    let x = chart.ruler(5.0);
    let names: Vec<String> = chart.groups.iter().map(|name| text::shown(name)).collect();
    let widest = names.iter().map(|name| text::width(name)).fold(0.0, f64::max);
    let is_beside = widest <= NAME_WIDTH_MAX;
    let groups = laid_out(chart, if is_beside { 0.0 } else { LINE_HEIGHT });
    let plot_height = groups.last().map_or(0.0, |group| group.bottom) + GROUP_GAP / 2.0;
    let is_high = plot_height > ONE_AXIS_HEIGHT_MAX;
    let top = if is_high { 40.0 } else { 4.0 };
    let left = if is_beside { widest + 8.0 } else { 4.0 };
    let area = Area { left, right: WIDTH - value_room(chart), top, bottom: top + plot_height };
    let rows = Rows { chart, x: &x, area: &area };
    let (label, height) = frame::label_below(&chart.axis.label, &area, area.bottom + 20.0);
    let base = area.place(x.base(), 0.0).0;
    let marks = html! {
        (grid(&x, &area))
        @if is_high { (frame::label_below(&chart.axis.label, &area, 0.0).0) (frame::numbers(&x, &area, 31.0)) }
        (frame::numbers(&x, &area, area.bottom + 17.0))
        @for series in 0..chart.series.len() {
            g class=(marks::class(chart.colours.index(&chart.series[series].name))) {
                @let middle = |row: usize, group: &Group| top + group.top + BAR_STEP * (float(row) + 0.5);
                @let places = groups.iter().enumerate().filter_map(|(number, group)| {
                    let row = group.series.iter().position(|shown| *shown == series)?;
                    Some((number, middle(row, group)))
                });
                (rows.bars(series, &places.collect::<Vec<_>>()))
            }
        }
        path.t d={ "M" (units(base)) " " (units(area.top)) "V" (units(area.bottom)) } {}
        @for (group, name) in groups.iter().zip(&names) {
            @if group.series.is_empty() {
                text.q x=(units(base + 5.0)) y=(units(top + group.top + BAR_STEP / 2.0 + 4.0)) { "no value" }
            }
            @if is_beside {
                text.e x=(units(area.left - 6.0)) y=(units(top + group.top.midpoint(group.bottom) + 4.0)) { (name) }
            } @else {
                text.a x=(units(area.left + 3.0)) y=(units(top + group.top - 3.0)) { (text::shortened(name, WIDTH - area.left - 3.0)) title { (name) } }
            }
        }
        (label)
    };
    (marks, height)
}

/// A group of bars: between which heights, below the top of the plot, and which series have a value in it. The others
/// take no room.
struct Group {
    top: f64,
    bottom: f64,
    series: Vec<usize>,
}

fn laid_out(chart: &Chart, name_height: f64) -> Vec<Group> {
    let mut bottom = -GROUP_GAP / 2.0;
    let group = |number: usize| {
        let has_value = |series: &usize| chart.spread(*series, number).is_some();
        let series: Vec<usize> = (0..chart.series.len()).filter(has_value).collect();
        let top = bottom + GROUP_GAP + name_height;
        bottom = top + BAR_STEP * float(series.len().max(1));
        Group { top, bottom, series }
    };
    (0..chart.groups.len()).map(group).collect()
}

/// Room for values behind the longest bars.
fn value_room(chart: &Chart) -> f64 {
    chart.spreads().map(|spread| text::width(&number::short(spread.median))).fold(16.0, f64::max) + 7.0
}

fn grid(x: &Ruler, area: &Area) -> Markup {
    let (mut major, mut minor) = (Path::default(), Path::default());
    for tick in &x.ticks {
        let at = area.place(x.share(tick.value).unwrap_or(0.0), 0.0).0;
        let lines = if tick.label.is_empty() { &mut minor } else { &mut major };
        lines.go(at, area.top).line(at, area.bottom + if tick.label.is_empty() { 0.0 } else { 4.0 });
    }
    frame::grid_lines(&major, &minor)
}

/// Where bars lie.
struct Rows<'r> {
    chart: &'r Chart<'r>,
    x: &'r Ruler,
    area: &'r Area,
}

impl Rows<'_> {
    /// The bars of a series in these groups, at these heights: one path for all, and the value beside each.
    fn bars(&self, series: usize, places: &[(usize, f64)]) -> Markup {
        let base = self.area.place(self.x.base(), 0.0).0;
        let at = |value: f64| self.area.place(self.x.share(value).unwrap_or(self.x.base()), 0.0).0;
        let (mut bars, mut ends, mut cuts) = (Path::default(), Path::default(), Path::default());
        let mut values: Vec<(f64, f64, String)> = Vec::new();
        for &(group, middle) in places {
            let Some(spread) = self.chart.spread(series, group) else { continue };
            bars.rectangle((base, middle - BAR_HEIGHT / 2.0), (at(spread.median), middle + BAR_HEIGHT / 2.0));
            if self.x.is_beyond(spread.median) {
                cuts.go(self.area.right - 18.0, middle + 7.0).raw("l5-14m4 0l-5 14");
            } else if (at(spread.high) - at(spread.low)).abs() > 1.5 {
                let to = units(at(spread.high));
                ends.go(at(spread.low), middle - 3.0).raw("v6m0-3").raw(&format!("H{to}m0-3v6"));
            }
            let end = at(spread.high).max(at(spread.median)).max(base);
            values.push((end + 5.0, middle + 4.0, number::short(spread.median)));
        }
        html! {
            title { (text::shown(&self.chart.series[series].name)) }
            @if !bars.is_empty() { path.b fill=[self.chart.fill(series)] d=(bars.text()) {} }
            @if !cuts.is_empty() { path.z d=(cuts.text()) {} }
            @if !ends.is_empty() { path.r d=(ends.text()) {} }
            @for (x, y, value) in &values { text.v x=(units(*x)) y=(units(*y)) { (value) } }
        }
    }
}
