//! Choices of the settings, or else the experiment's own.

use crate::settings::Settings;

/// Bytes of a chunk on average where only one size is measured: that of both papers.
const USUAL_BYTES: u32 = 8 << 10;

/// The sizes asked for; else these, or with `quick` only the papers' one.
pub(super) fn sizes(settings: &Settings, usual: &[u32]) -> Vec<u32> {
    if !settings.expected_bytes.is_empty() {
        return settings.expected_bytes.clone();
    }
    if settings.quick { vec![USUAL_BYTES] } else { usual.to_vec() }
}

/// The first size asked for, else the papers' one.
pub(super) fn size(settings: &Settings) -> u32 {
    settings.expected_bytes.first().copied().unwrap_or(USUAL_BYTES)
}

/// `usual`, or less of it with `quick`.
pub(super) fn quick_or<T>(settings: &Settings, quick: T, usual: T) -> T {
    if settings.quick { quick } else { usual }
}
