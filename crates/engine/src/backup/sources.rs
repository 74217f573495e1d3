//! Paths of the source, and the name of the series that they go to.

use super::options::{BackupOptions, Source};
use crate::EngineError;
use crate::fs::absolute_source;
use std::path::PathBuf;

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
    let paths = source_paths(&Source::Paths(paths.to_vec()))?;
    Ok(default_series_name(&options.host, &paths))
}

/// The absolute source paths as bytes, each once, sorted; at least one must exist.
pub(super) fn source_paths(source: &Source) -> Result<Vec<Vec<u8>>, EngineError> {
    let bytes = |path: PathBuf| std::os::unix::ffi::OsStringExt::into_vec(path.into_os_string());
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
