//! Groups of bars. They are vertical where names of groups fit below them; else horizontal, with names beside or above
//! and a value at each end. Several runs of a bar are shown as a line from the least to the greatest.

mod horizontal;
mod vertical;

use super::marks::{Colours, Key, Kind};
use super::scale::{Ruler, Start};
use super::{Content, listed, number, range};
use crate::report::{Axis, Bars, Scale};
use crate::statistics::Spread;
use maud::{Markup, html};

/// From so many bars on, a few that are very long do not make all others short.
const CUT_BARS_MIN: usize = 6;

/// A bar is very long if it is so many times as long as the next.
const CUT_RATIO: f64 = 10.0;

/// Draws bars; `None` if there is no value.
pub(super) fn content(y: &Axis, groups: &[String], series: &[Bars], colours: &Colours) -> Option<Content> {
    let has_values = |bars: &&Bars| bars.values.iter().flatten().any(|spread| spread.median.is_finite());
    let series: Vec<Bars> = series.iter().filter(has_values).cloned().collect();
    if series.is_empty() {
        return None;
    }
    if let ([group], true) = (groups, series.len() > 1) {
        // One group of many bars is read more easily as many groups of one: names stand at the bars.
        let values = series.iter().map(|bars| bars.values.first().copied().flatten()).collect();
        let names: Vec<String> = series.iter().map(|bars| bars.name.clone()).collect();
        let label = if group.is_empty() { y.label.clone() } else { format!("{} ({group})", y.label) };
        let axis = Axis { label, scale: y.scale };
        return content(&axis, &names, &[Bars { name: group.clone(), values }], &Colours::default());
    }
    let chart = Chart { axis: y, groups, series: &series, colours };
    let (marks, height) = vertical::drawn(&chart).unwrap_or_else(|| horizontal::drawn(&chart));
    let key = |bars: &Bars| Key { name: bars.name.clone(), index: colours.index(&bars.name), kind: Kind::Bars };
    let keys = if series.len() > 1 { series.iter().map(key).collect() } else { Vec::new() };
    let description = format!(
        "Bars: {} groups ({}), series {}. {} from {}.",
        groups.len(),
        listed(groups.iter().map(String::as_str)),
        listed(series.iter().map(|bars| bars.name.as_str())),
        y.label,
        range(chart.spreads().map(|spread| spread.median)),
    );
    Some(Content { height, marks, keys, description })
}

/// Chart to draw, vertical or horizontal.
struct Chart<'c> {
    axis: &'c Axis,
    groups: &'c [String],
    series: &'c [Bars],
    colours: &'c Colours,
}

impl Chart<'_> {
    fn ruler(&self, ticks_max: f64) -> Ruler {
        let values = self.spreads().flat_map(|spread| [spread.low, spread.median, spread.high]);
        let cut = if self.axis.scale == Scale::Linear { self.cut() } else { f64::INFINITY };
        // Bars that are cut are still the longest.
        let beyond = cut.is_finite().then_some(cut * 1.15);
        Ruler::new(self.axis.scale, Start::Zero, values.filter(|&value| value <= cut).chain(beyond), ticks_max)
    }

    fn spreads(&self) -> impl Iterator<Item = &Spread> {
        self.series.iter().flat_map(|bars| bars.values.iter().flatten())
    }

    /// Where bars are cut off because they are far longer than all others: at most one in eight of them.
    fn cut(&self) -> f64 {
        let mut medians: Vec<f64> =
            self.spreads().map(|spread| spread.median).filter(|median| median.is_finite()).collect();
        medians.sort_by(|one, other| other.total_cmp(one));
        if medians.len() < CUT_BARS_MIN {
            return f64::INFINITY;
        }
        let cut_max = (medians.len() / 8).max(1);
        let usual = medians
            .windows(2)
            .take(cut_max)
            .find(|pair| pair[1] > 0.0 && pair[0] > CUT_RATIO * pair[1])
            .map(|pair| pair[1]);
        let Some(usual) = usual else { return f64::INFINITY };
        self.spreads().filter(|spread| spread.median <= usual).map(|spread| spread.high).fold(usual, f64::max)
    }

    fn spread(&self, series: usize, group: usize) -> Option<Spread> {
        self.series[series].values.get(group).copied().flatten().filter(|spread| spread.median.is_finite())
    }

    /// Returns the fill of a series' bars: a hatch only where there are others.
    fn fill(&self, series: usize) -> Option<String> {
        (self.series.len() > 1).then(|| super::marks::hatch(self.colours.index(&self.series[series].name)))
    }

    /// Returns the hint that is shown when a bar is pointed at.
    fn hint(&self, series: usize, group: usize, spread: Spread) -> Markup {
        let name = super::text::shown(&self.groups[group]);
        let of = &self.series[series].name;
        let median = number::short(spread.median);
        html! {
            title {
                (name)
                @if self.series.len() > 1 { ", " (super::text::shown(of)) }
                ": " (median)
                @if spread.low < spread.high { " (" (number::short(spread.low)) " to " (number::short(spread.high)) ")" }
            }
        }
    }
}
