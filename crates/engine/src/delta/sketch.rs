//! How chunks are sketched.

use siltstone_similar::Isa;
use siltstone_similar::sketch::{OdessPlus, Rate, Shape, Sketcher, Windows};
use std::sync::{Arc, LazyLock};

/// The method that sketches are made by. Nothing on disk depends on it.
pub(super) static METHOD: LazyLock<OdessPlus> =
    LazyLock::new(|| OdessPlus::new("odess-plus", Windows::Four, Rate::DEFAULT, Shape::DEFAULT, Isa::best()));

/// Makes the sketches of chunks.
pub(crate) fn sketcher() -> Arc<dyn Sketcher> {
    Arc::new(METHOD.clone())
}
