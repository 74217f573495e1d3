//! Showing what was found.

mod figure;

pub use figure::{Axis, Bars, Figure, Line, Plot, Point, Scale};
