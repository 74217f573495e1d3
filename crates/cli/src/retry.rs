//! Waits while another process writes to the series: trying again (`--retry-lock`), and how long to watch one that
//! cannot be seen from here (`--lease-timeout`).

use crate::context::Context;
use crate::context::GlobalArgs;
use crate::error::CliError;
use crate::interrupt;
use crate::render::clock;
use siltstone_store::series::{LeaseTerms, RENEWALS_MISSED_MIN};
use std::thread;
use std::time::{Duration, Instant};

const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// How leases are held and watched.
///
/// # Errors
/// [`CliError::LeaseTimeoutShort`] if that would take over from the living.
pub(crate) fn lease_terms(options: &GlobalArgs) -> Result<LeaseTerms, CliError> {
    let (renewed_every, patience) = (options.lease_renewal.0, options.lease_timeout.0);
    let least = renewed_every.saturating_mul(RENEWALS_MISSED_MIN);
    if patience < least {
        return Err(CliError::LeaseTimeoutShort { least: clock(least) });
    }
    let renewed_every = Some(renewed_every).filter(|every| !every.is_zero());
    Ok(LeaseTerms::default().with_renewed_every(renewed_every).with_patience(patience))
}

/// Runs the work; as long as it finds the series locked and the user's patience lasts, runs it again.
pub(crate) fn while_locked<T>(context: &Context, mut work: impl FnMut() -> Result<T, CliError>) -> Result<T, CliError> {
    let patience = context.options.retry_lock.unwrap_or_default().0;
    let began = Instant::now();
    let (mut pause, mut was_told) = (PAUSE_FIRST, false);
    loop {
        match work() {
            Err(error) if error.is_locked() && began.elapsed() < patience && !interrupt::is_asked() => {
                if !was_told {
                    was_told = true;
                    context.output.warn(format_args!("{error}; trying again for up to {}", clock(patience)));
                }
                wait(pause.min(patience.saturating_sub(began.elapsed())));
                pause = (pause * 2).min(PAUSE_MAX);
            }
            other => return other,
        }
    }
}

/// Sleeps, but no longer than until the user asks to stop.
fn wait(pause: Duration) {
    const STEP: Duration = Duration::from_millis(100);
    let end = Instant::now() + pause;
    while Instant::now() < end && !interrupt::is_asked() {
        thread::sleep(STEP.min(end.saturating_duration_since(Instant::now())));
    }
}
