//! Dry runs of maintenance: all of it is done, on an overlay over the repository, so that what is stated is exact.

use super::maintain;
use super::options::{MaintainOptions, MaintainSummary};
use crate::overlay::Overlay;
use crate::protect::{ProtectSummary, protect};
use crate::usage::{Usage, is_counted};
use crate::{EngineError, Resources};
use siltstone_store::StoreError;
use siltstone_store::repository::Repository;
use siltstone_store::storage::Recorder;
use std::sync::Arc;

/// Forecast of maintenance: what a run would do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct MaintainForecast {
    /// Summary of settling, and of ending marks.
    pub maintenance: MaintainSummary,
    /// Summary of making parity.
    pub parity: ProtectSummary,
    /// Bytes by which the repository would grow; negative if it would shrink.
    pub bytes_kept: i64,
    /// Usage of the run, at a distance, on a repository that is open: what it would ask for, but for renewals of
    /// leases that take longer than this dry run.
    pub usage: Usage,
}

/// Does what [`maintain`] and then [`protect`] would do, but for writing to the repository. `parity` is the share of
/// files' data, in percent, that the run would set first. What is made is kept in a nameless file of the scratch folder
/// and takes as much room there.
///
/// # Errors
/// Those of [`maintain`] and [`protect`]; the nameless file cannot be written.
pub fn forecast(
    repository: &Repository,
    parity: Option<u8>,
    options: &MaintainOptions,
    resources: &Resources,
) -> Result<MaintainForecast, EngineError> {
    let scratch = resources.scratch_of(repository);
    let over = Overlay::over(repository, &scratch, |overlay| Arc::new(Recorder::new(overlay)))?;
    let (rehearsed, resources) = (&over.repository, &resources.clone().with_cache(None));
    if let Some(percent) = parity {
        rehearsed.amend(|config| {
            config.parity.data_percent = percent;
            Ok(())
        })?;
    }
    let maintenance = maintain(rehearsed, options, resources)?;
    let parity = protect(rehearsed, &options.user, resources)?;
    let calls = over.wrapped.calls();
    let bytes_kept = over.overlay.bytes_kept().map_err(StoreError::from)?;
    let usage = if is_counted(repository) { Usage { bytes_kept, ..Usage::from(&calls) } } else { Usage::default() };
    Ok(MaintainForecast { maintenance, parity, bytes_kept, usage })
}
