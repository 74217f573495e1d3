//! Vertical bars: few groups with short names.

use super::Chart;
use crate::report::plot::frame::{self, Area};
use crate::report::plot::path::{Path, units};
use crate::report::plot::scale::Ruler;
use crate::report::plot::text::{self, LINE_HEIGHT};
use crate::report::plot::{float, marks, number};
use maud::{Markup, html};

const PLOT_HEIGHT: f64 = 200.0;

/// Thinner bars are better laid down.
const BAR_WIDTH_MIN: f64 = 9.0;

/// Wider ones look like areas.
const BAR_WIDTH_MAX: f64 = 44.0;

/// Lines a name of a group may take.
const NAME_LINES_MAX: usize = 3;

/// Draws the chart and gives its height; `None` if names or bars do not fit.
pub(super) fn drawn(chart: &Chart) -> Option<(Markup, f64)> {
    let y = chart.ruler(5.0);
    let area = Area::new(&chart.axis.label, &y, PLOT_HEIGHT, 10.0);
    let group_width = (area.right - area.left) / float(chart.groups.len().max(1));
    let bar_width = (group_width * 0.84 / float(chart.series.len().max(1))).min(BAR_WIDTH_MAX);
    let names: Vec<Vec<String>> =
        chart.groups.iter().map(|name| text::wrapped(&text::shown(name), group_width - 6.0)).collect();
    let fits = |lines: &Vec<String>| lines.len() <= NAME_LINES_MAX && lines.iter().all(|line| !line.contains('…'));
    if bar_width < BAR_WIDTH_MIN || !names.iter().all(fits) {
        return None;
    }
    let name_lines = names.iter().map(Vec::len).max().unwrap_or(0);
    let middle = |group: usize| area.left + group_width * (float(group) + 0.5);
    let bars = |series: usize| {
        let slots = Slots { chart, y: &y, area: &area, bar_width, series };
        html! { @for group in 0..chart.groups.len() { (slots.bar(group, middle(group))) } }
    };
    let marks = html! {
        (frame::vertical(&chart.axis.label, &y, &area))
        @for series in 0..chart.series.len() {
            g class=(marks::class(chart.colours.index(&chart.series[series].name))) { (bars(series)) }
        }
        path.t d={ "M" (units(area.left)) " " (units(area.place(0.0, y.base()).1)) "H" (units(area.right)) } {}
        @for (group, lines) in names.iter().enumerate() {
            @for (number, line) in lines.iter().enumerate() {
                text.c x=(units(middle(group))) y=(units(area.bottom + 16.0 + LINE_HEIGHT * float(number))) { (line) }
            }
        }
    };
    Some((marks, area.bottom + 8.0 + LINE_HEIGHT * float(name_lines)))
}

/// Where bars of one series stand.
struct Slots<'s> {
    chart: &'s Chart<'s>,
    y: &'s Ruler,
    area: &'s Area,
    bar_width: f64,
    series: usize,
}

impl Slots<'_> {
    fn bar(&self, group: usize, middle: f64) -> Markup {
        let left = middle + self.bar_width * (float(self.series) - float(self.chart.series.len()) / 2.0);
        let centre = left + self.bar_width / 2.0;
        let base = self.area.place(0.0, self.y.base()).1;
        let Some(spread) = self.chart.spread(self.series, group) else {
            return html! { text.c.a x=(units(centre)) y=(units(base - 4.0)) { "–" title { "no value" } } };
        };
        let at = |value: f64| self.area.place(0.0, self.y.share(value).unwrap_or(self.y.base())).1;
        let mut bar = Path::default();
        bar.rectangle((left + 0.5, at(spread.median)), (left + self.bar_width - 0.5, base));
        let mut ends = Path::default();
        let mut cut = Path::default();
        if self.y.is_beyond(spread.median) {
            let width = units(self.bar_width + 4.0);
            cut.go(left - 2.0, self.area.top + 18.0).raw(&format!("l{width}-5m0-4l-{width} 5"));
        } else if (at(spread.low) - at(spread.high)).abs() > 1.5 {
            ends.go(centre - 3.0, at(spread.high)).raw("h6m-3 0").raw(&format!("V{}m-3 0h6", units(at(spread.low))));
        }
        let value = number::short(spread.median);
        let has_room = text::width(&value) <= self.bar_width + 2.0;
        let top = at(spread.high).min(at(spread.median)).min(base);
        html! {
            path.b fill=[self.chart.fill(self.series)] d=(bar.text()) { (self.chart.hint(self.series, group, spread)) }
            @if !cut.is_empty() { path.z d=(cut.text()) {} }
            @if !ends.is_empty() { path.r d=(ends.text()) {} }
            @if has_room { text.c.v x=(units(centre)) y=(units(top - 4.0)) { (value) } }
        }
    }
}
