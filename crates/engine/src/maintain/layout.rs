//! Where a chunk of a lifecycle is laid.

use super::repack::Class;
use crate::lifecycle::Lifecycle;
use siltstone_store::container::ContainerKind;

/// With what a chunk of this lifecycle is laid.
pub(super) fn class(kind: ContainerKind, lifecycle: Lifecycle, is_open: bool, is_exact: bool) -> Class {
    let rows = if is_exact {
        lifecycle.category()
    } else if is_open {
        0
    } else {
        // Rows of like age share containers: what was needed by one snapshot only, by up to 2, 4, 8, ...
        (lifecycle.column - lifecycle.row + 1).next_power_of_two().ilog2()
    };
    Class { kind, is_open, rows }
}
