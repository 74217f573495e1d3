//! Paths of the source, and the name of the series that they go to.

use super::options::{BackupOptions, Source};
use crate::EngineError;
use crate::fs::absolute_source;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The name of the series a backup of these absolute paths on this host goes to unless another is given.
pub fn default_series_name(host: &str, paths: &[Vec<u8>]) -> String {
    let mut name = host.to_owned();
    for path in paths {
        name.push(':');
        name.push_str(&path.escape_ascii().to_string());
    }
    name
}

/// The name of the series that a backup of these paths goes to.
///
/// # Errors
/// [`EngineError::NoSource`] if none of the paths is there, unless the options name the series.
pub fn series_name(paths: &[PathBuf], options: &BackupOptions) -> Result<String, EngineError> {
    if let Some(name) = &options.series {
        return Ok(name.clone());
    }
    let paths = recorded_paths(&Source::Paths(paths.to_vec()), options.as_path.as_deref())?;
    Ok(default_series_name(&options.host, &paths))
}

/// The paths that are recorded as those backed up: those of the source, or the one it is to be recorded at.
///
/// # Errors
/// None of the source is there; [`EngineError::NotOneSource`] if there is no single path to be recorded elsewhere.
pub(super) fn recorded_paths(source: &Source, as_path: Option<&Path>) -> Result<Vec<Vec<u8>>, EngineError> {
    let paths = source_paths(source)?;
    let Some(as_path) = as_path else { return Ok(paths) };
    // Of the root only what is in it is kept, which has no place of its own.
    if !matches!(source, Source::Paths(_)) || paths.len() != 1 || paths.iter().any(|path| path == b"/") {
        return Err(EngineError::NotOneSource { as_path: as_path.to_owned() });
    }
    let absolute =
        absolute_source(as_path).map_err(|source| EngineError::NoSource { path: as_path.to_owned(), source })?;
    Ok(vec![absolute.into_os_string().into_vec()])
}

/// The absolute source paths as bytes, each once, sorted; at least one must exist.
pub(super) fn source_paths(source: &Source) -> Result<Vec<Vec<u8>>, EngineError> {
    let bytes = |path: PathBuf| path.into_os_string().into_vec();
    let given = match source {
        Source::Stream { name, .. } => {
            let absolute = PathBuf::from("/").join(name);
            return Ok(vec![bytes(absolute)]);
        }
        Source::Entries { paths, .. } => return Ok(paths.clone()),
        Source::Paths(given) | Source::Changes { paths: given, .. } => given,
    };
    let is_looked_at = matches!(source, Source::Paths(_));
    let no_source = |path: &PathBuf, source| EngineError::NoSource { path: path.clone(), source };
    let mut paths = Vec::new();
    let mut first_missing = None;
    let mut found = false;
    for path in given {
        let absolute = absolute_source(path).map_err(|error| no_source(path, error))?;
        match std::fs::symlink_metadata(&absolute) {
            _ if !is_looked_at => found = true,
            Ok(_) => found = true,
            // Whatever else is wrong (a path too long for one call, say) is told by the walk.
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => found = true,
            Err(error) => first_missing = first_missing.or(Some(no_source(path, error))),
        }
        paths.push(bytes(absolute));
    }
    match first_missing {
        Some(error) if !found => return Err(error),
        _ => {}
    }
    if paths.is_empty() {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, "no path was given");
        return Err(EngineError::NoSource { path: PathBuf::new(), source });
    }
    paths.sort();
    paths.dedup();
    Ok(paths)
}
