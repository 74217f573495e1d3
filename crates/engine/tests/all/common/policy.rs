//! Policies of deltas that the tests run beside those of the product.

use siltstone_engine::delta::{Deltas, ForwardPolicy, KeepRule};
use siltstone_similar::benefit::Benefit;

/// Deltas as MeGA describes them (ATC 2022, section 4.2): each chunk alone, against the first that shares a
/// super-feature, which is whole; kept whenever it is smaller. Chunks come from the last snapshot only.
pub const CHUNK_BY_CHUNK: Deltas = Deltas::Custom(ForwardPolicy {
    depth: 1,
    candidates: 1,
    super_features: true,
    keep: KeepRule { clear_part: 1, benefit: Benefit::ANY },
    region_bytes: 0,
    intra_segment: false,
    reaches_back: false,
});
