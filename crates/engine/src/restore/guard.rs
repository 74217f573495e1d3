//! Targets that a restore refuses: the repository's own folder always; with `--delete` also a folder that holds the
//! repository, the root and home folders, where somebody who mistyped the target loses what cannot be brought back.
//!
//! A write that gets past this still meets [`TargetDir`](crate::fs::TargetDir), which neither writes nor removes
//! anything in the folders given here.

use super::options::RestoreOptions;
use crate::fs::{FolderIdentity, is_home};
use crate::{Danger, EngineError};
use siltstone_store::repository::Repository;
use std::collections::HashSet;
use std::path::Path;

/// Levels of folders in a repository.
const REPOSITORY_LEVELS: u32 = 3;

/// Looks at the target, and gives the folders in which nothing is to be touched: the repository's, if it lies on this
/// machine.
///
/// # Errors
/// [`EngineError::DangerousTarget`].
pub(super) fn guard(repository: &Repository, options: &RestoreOptions) -> Result<HashSet<FolderIdentity>, EngineError> {
    let target = |source| EngineError::Target { path: options.target.clone(), source };
    let above = FolderIdentity::with_those_above(&options.target).map_err(target)?;
    // With patterns that choose, `--delete` stays in the folders they match.
    let deletes_all = options.delete && !options.filter.chooses();
    let protected = match repository.storage().folder() {
        Some(folder) => {
            let protected = FolderIdentity::with_those_in(&folder, REPOSITORY_LEVELS);
            if above.iter().any(|folder| protected.contains(folder)) {
                return Err(refused(options, Danger::InRepository));
            }
            if deletes_all && holds(options, &folder).map_err(target)? {
                return Err(refused(options, Danger::HoldsRepository));
            }
            protected
        }
        None => HashSet::new(),
    };
    if deletes_all && !options.unsafe_delete {
        let identity = FolderIdentity::of(&options.target).ok();
        let is_root = identity.is_some() && identity == FolderIdentity::of(Path::new("/")).ok();
        if is_root || is_home(&options.target) {
            let folder = if is_root { "the root folder" } else { "a home folder" };
            return Err(refused(options, Danger::Empties(folder)));
        }
    }
    Ok(protected)
}

fn holds(options: &RestoreOptions, repository: &Path) -> std::io::Result<bool> {
    let Ok(target) = FolderIdentity::of(&options.target) else { return Ok(false) };
    Ok(FolderIdentity::with_those_above(repository)?.contains(&target))
}

fn refused(options: &RestoreOptions, reason: Danger) -> EngineError {
    EngineError::DangerousTarget { path: options.target.clone(), reason }
}
