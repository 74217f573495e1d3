//! Changes, in restic's letters.

use siltstone_engine::compare::Change;

/// The letter of a change.
pub(crate) fn modifier(change: Change) -> &'static str {
    match change {
        Change::Added => "+",
        Change::Removed => "-",
        Change::Kind => "T",
        Change::Content => "M",
        Change::Metadata => "U",
    }
}
