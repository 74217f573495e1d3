//! Names of files that were half read when a checkpoint was made.

use siltstone_store::StoreError;
use siltstone_store::catalog::EntryPath;

/// End of the name that a half read file has in a partial snapshot.
const HALF_READ: &[u8] = b".silt-partial";

/// The name under which a partial snapshot has what was read of a large file.
///
/// # Errors
/// Fails if the name would be too long; then the file is left out.
pub(crate) fn half_read_name(path: &EntryPath) -> Result<EntryPath, StoreError> {
    EntryPath::new([path.as_bytes(), HALF_READ].concat())
}

/// Tells whether this is such a name.
pub(crate) fn is_half_read(path: &EntryPath) -> bool {
    path.as_bytes().ends_with(HALF_READ)
}

/// The name of the file that was half read under this one.
pub(crate) fn whole_name(path: &EntryPath) -> Option<EntryPath> {
    let whole = path.as_bytes().strip_suffix(HALF_READ)?;
    EntryPath::new(whole).ok()
}
