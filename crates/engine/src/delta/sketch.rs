//! How chunks are sketched.

use siltstone_similar::sketch::{Shape, Sketcher, by_name};
use std::sync::Arc;

/// The method that sketches are made by. Nothing on disk depends on it.
const METHOD: &str = "odess-plus";

/// Makes the sketches of chunks.
pub(crate) fn sketcher() -> Arc<dyn Sketcher> {
    by_name(METHOD, Shape::DEFAULT).map(Arc::from).expect("a method of this name")
}
