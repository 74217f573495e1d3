//! Watching leases whose holders cannot be seen from here (another machine, another container), until they show life or
//! long enough passes without a sign of it.
//!
//! Time is counted in looks, each after a pause by this process's monotonic clock: a minute in which this process
//! slept, or in which the storage did not answer, counts as one look, for the holder may have been held up by the same.
//! There is a last look after the time.

use crate::observer::Notice;
use crate::{EngineError, Resources};
use siltstone_store::repository::Repository;
use siltstone_store::series::Watch;
use std::thread;
use std::time::Duration;

/// Pause between two looks: two listings each.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(2);
/// Looks in a patience, at least.
const LOOKS_MIN: u32 = 32;
/// How soon a user who asks to stop is heard.
const STEP: Duration = Duration::from_millis(100);

/// Watches leases, all at once, and returns those that showed no life. Nothing is changed by it.
///
/// # Errors
/// The storage's, or because the user asked to stop.
pub(crate) fn outlast(
    repository: &Repository,
    mut watches: Vec<Watch>,
    resources: &Resources,
) -> Result<Vec<Watch>, EngineError> {
    let wanted = repository.lease_terms().patience;
    let mut left = watches.iter().map(|watch| watch.patience(wanted)).max().unwrap_or_default();
    for watch in &watches {
        let holder = watch.lease().holder.to_string();
        resources.observer.notice(&Notice::LeaseWatched { holder, at_most: left });
    }
    let pause = (left / LOOKS_MIN).min(LOOK_EVERY_MAX);
    while !left.is_zero() && !watches.is_empty() {
        wait(pause.min(left), resources)?;
        left = left.saturating_sub(pause);
        watches = silent(repository, watches)?;
    }
    Ok(watches)
}

fn silent(repository: &Repository, watches: Vec<Watch>) -> Result<Vec<Watch>, EngineError> {
    let mut silent = Vec::new();
    for watch in watches {
        if !watch.has_changed(repository)? {
            silent.push(watch);
        }
    }
    Ok(silent)
}

/// Sleeps, unless the user asks to stop.
fn wait(mut pause: Duration, resources: &Resources) -> Result<(), EngineError> {
    loop {
        if resources.observer.is_cancelled() {
            return Err(EngineError::Interrupted);
        }
        if pause.is_zero() {
            return Ok(());
        }
        thread::sleep(STEP.min(pause));
        pause = pause.saturating_sub(STEP);
    }
}
