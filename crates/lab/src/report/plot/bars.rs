//! Groups of bars. They stand where names of groups fit below them; else they lie, with names beside or above and a value at each end.
//! Several runs of a bar are shown as a line from the least to the greatest.

mod lying;
mod standing;

use super::marks::{Colours, Key, Kind};
use super::scale::{Ruler, Start};
use super::{Content, listed, number, range};
use crate::report::{Axis, Bars};
use crate::statistics::Spread;
use maud::{Markup, html};

/// Draws bars; `None` if there is no value.
pub(super) fn content(y: &Axis, groups: &[String], series: &[Bars], colours: &Colours) -> Option<Content> {
    let values = || series.iter().flat_map(|bars| bars.values.iter().flatten());
    values().find(|spread| spread.median.is_finite())?;
    let chart = Chart { axis: y, groups, series, colours };
    let (marks, height) = standing::drawn(&chart).unwrap_or_else(|| lying::drawn(&chart));
    let key = |bars: &Bars| Key { name: bars.name.clone(), index: colours.index(&bars.name), kind: Kind::Bars };
    let keys = if series.len() > 1 { series.iter().map(key).collect() } else { Vec::new() };
    let description = format!(
        "Bars: {} groups ({}), series {}. {} from {}.",
        groups.len(),
        listed(groups.iter().map(String::as_str)),
        listed(series.iter().map(|bars| bars.name.as_str())),
        y.label,
        range(values().map(|spread| spread.median)),
    );
    Some(Content { height, marks, keys, description })
}

/// What is drawn, either way.
struct Chart<'c> {
    axis: &'c Axis,
    groups: &'c [String],
    series: &'c [Bars],
    colours: &'c Colours,
}

impl Chart<'_> {
    fn ruler(&self, ticks_max: f64) -> Ruler {
        let spreads = self.series.iter().flat_map(|bars| bars.values.iter().flatten());
        Ruler::new(
            self.axis.scale,
            Start::Zero,
            spreads.flat_map(|spread| [spread.low, spread.median, spread.high]),
            ticks_max,
        )
    }

    fn spread(&self, series: usize, group: usize) -> Option<Spread> {
        self.series[series].values.get(group).copied().flatten().filter(|spread| spread.median.is_finite())
    }

    /// What fills the bars of a series: a hatch only where there are others.
    fn fill(&self, series: usize) -> Option<String> {
        (self.series.len() > 1).then(|| super::marks::hatch(self.colours.index(&self.series[series].name)))
    }

    /// What is shown when a bar is pointed at.
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
