//! A plot as data: what is drawn, not how.

use crate::experiment::Finding;
use crate::statistics::Spread;

/// A figure of the report.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Title, with the data it was measured on.
    pub title: String,
    /// The figure or table of a paper that it redraws; empty for our own.
    pub redraws: String,
    /// Caption that says how to read it, in a sentence or two; may be empty.
    pub caption: String,
    /// Plot that is drawn.
    pub plot: Plot,
}

/// Kinds of plots, with their data.
#[derive(Clone, PartialEq, Debug)]
pub enum Plot {
    /// Groups of bars, one bar per series in each.
    Bars {
        /// Axis of the height.
        y: Axis,
        /// Names of groups.
        groups: Vec<String>,
        /// Series, with a value per group.
        series: Vec<Bars>,
    },
    /// Lines: per version, or cumulative distributions.
    Lines {
        /// Axis to the right.
        x: Axis,
        /// Axis upwards.
        y: Axis,
        /// The lines.
        series: Vec<Line>,
    },
    /// Labelled points: an overall view.
    Points {
        /// Axis to the right.
        x: Axis,
        /// Axis upwards.
        y: Axis,
        /// The points.
        points: Vec<Point>,
    },
}

/// An axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// Measure, with the unit.
    pub label: String,
    /// Layout of the values.
    pub scale: Scale,
}

impl Axis {
    /// A linear axis from 0.
    pub fn linear(label: &str) -> Self {
        Self { label: label.to_owned(), scale: Scale::Linear }
    }

    /// An axis on which equal distances are equal ratios.
    pub fn logarithmic(label: &str) -> Self {
        Self { label: label.to_owned(), scale: Scale::Logarithmic }
    }
}

/// Layout of values on an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// From 0, evenly.
    Linear,
    /// Equal distances are equal ratios; values must be positive.
    Logarithmic,
}

/// A series of bars.
#[derive(Clone, PartialEq, Debug)]
pub struct Bars {
    /// Its name in the legend.
    pub name: String,
    /// A value per group; `None` where there is none.
    pub values: Vec<Option<Spread>>,
}

impl Bars {
    /// A measure of these findings, each of which has a group of its own.
    pub fn of(name: &str, findings: &[&Finding], measure: &str) -> Self {
        let values = findings.iter().map(|finding| finding.spread(measure)).collect();
        Self { name: name.to_owned(), values }
    }
}

/// A line.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// True if it is theory rather than measurement: drawn dashed.
    pub is_theory: bool,
    /// Points by ascending x.
    pub points: Vec<(f64, f64)>,
}

/// A labelled point.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// Its label.
    pub name: String,
    /// To the right.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// Its size, from 0 to 1: a third measure.
    pub size: f64,
}
