//! Taking the lease of a series: who this process is, and whether the holder of another lease is known to be dead.
//!
//! A holder is dead for certain only if it ran on this machine in the same process-id space and its process is gone, or
//! if this machine has been started anew since. It is alive for certain if its process is there. Any other is watched
//! (`watch.rs`) if it renews its lease, and taken over if it does not for long enough; else taking over is the user's
//! decision. Fencing keeps the data safe whatever is decided.

use crate::observer::Notice;
use crate::watch::outlast;
use crate::{EngineError, Resources};
use siltstone_store::manifest::{LeaseHolder, Manifest};
use siltstone_store::repository::Repository;
use siltstone_store::series::{LeaseRequest, ReserveUse, SeriesWriter, Watch, newest_manifest};
use siltstone_store::{StoreError, Time};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// Purpose of a lease.
pub(crate) struct Purpose<'a> {
    /// `backup`, `forget`, ...
    pub(crate) name: &'a str,
    /// Who does it.
    pub(crate) user: &'a str,
    /// Take the lease over whoever holds it.
    pub(crate) take_over: bool,
    /// Use of the reserve on a full disk.
    pub(crate) reserve: ReserveUse,
}

impl Purpose<'_> {
    /// Tells whether runs like this one come day by day. Others have time to look for what was left behind.
    fn is_frequent(&self) -> bool {
        matches!(self.name, "backup" | "forget" | "label" | "undelete")
    }
}

/// Takes the lease of a series as [`acquire`] does, or leaves that to the first commit where there is nothing to tidy
/// up first and every request takes time.
///
/// # Errors
/// As [`acquire`].
pub(crate) fn acquire_late<'r>(
    repository: &'r Repository,
    series_name: &'r str,
    purpose: &Purpose<'r>,
    resources: &Resources,
) -> Result<SeriesWriter<'r>, EngineError> {
    match SeriesWriter::acquire_late(repository, request(repository, series_name, purpose, None)) {
        // It may have to be watched.
        Err(StoreError::LeaseHeld { .. }) => acquire(repository, series_name, purpose, resources),
        Err(error) => Err(error.into()),
        Ok(writer) => {
            tell(&writer, resources);
            Ok(writer)
        }
    }
}

/// Takes the lease of a series for this process, making the series if there is none; tells if it was taken over. A
/// holder of whom nothing can be seen is watched first, which may take minutes.
///
/// # Errors
/// [`StoreError::LeaseHeld`] if a writer holds it that is alive, or of which nothing can be known; or because the user
/// asked to stop.
pub(crate) fn acquire<'r>(
    repository: &'r Repository,
    series_name: &str,
    purpose: &Purpose<'_>,
    resources: &Resources,
) -> Result<SeriesWriter<'r>, EngineError> {
    let writer = match try_acquire(repository, series_name, purpose, None) {
        Err(held @ StoreError::LeaseHeld { .. }) => {
            let stored = newest_manifest(repository, repository.keys().series_id(series_name))?;
            let watch = stored.map_or(Ok(None), |stored| watched(repository, &stored.manifest))?.ok_or(held)?;
            let silent = outlast(repository, vec![watch], resources)?;
            try_acquire(repository, series_name, purpose, silent.first().map(Watch::sequence))?
        }
        other => other?,
    };
    tell(&writer, resources);
    Ok(writer)
}

/// Reports what a writer met.
fn tell(writer: &SeriesWriter<'_>, resources: &Resources) {
    if let Some(reason) = &writer.read_from_copy {
        resources.observer.notice(&Notice::ReadFromCopy { reason: reason.clone() });
    }
    if let Some(lease) = &writer.taken_over {
        let holder = lease.holder.to_string();
        resources.observer.notice(&Notice::LeaseTakenOver { holder, objects: writer.orphans_removed });
    }
}

/// As [`acquire`], without watching anybody; `outlasted` is the number of the manifest whose holder was watched without
/// a sign of life.
pub(crate) fn try_acquire<'r>(
    repository: &'r Repository,
    series_name: &str,
    purpose: &Purpose<'_>,
    outlasted: Option<u64>,
) -> Result<SeriesWriter<'r>, StoreError> {
    SeriesWriter::acquire(repository, &request(repository, series_name, purpose, outlasted))
}

fn request<'a>(
    repository: &Repository,
    series_name: &'a str,
    purpose: &Purpose<'a>,
    outlasted: Option<u64>,
) -> LeaseRequest<'a> {
    LeaseRequest {
        series_name,
        holder: this_holder(purpose.user),
        purpose: purpose.name,
        now: now(),
        is_dead: &is_dead,
        take_over: purpose.take_over,
        outlasted,
        renewed_every: repository.lease_terms().renewed_every,
        reserve: purpose.reserve,
        looks_closely: !purpose.is_frequent(),
    }
}

/// Begins to watch the lease of this manifest, unless that tells nothing new: its holder is known to be alive, or does
/// not renew it.
pub(crate) fn watched(repository: &Repository, manifest: &Manifest) -> Result<Option<Watch>, StoreError> {
    match &manifest.lease {
        Some(lease) if !is_running_here(&lease.holder) => Watch::begin(repository, manifest),
        _ => Ok(None),
    }
}

/// This process. The host is the machine's own name, whatever name the snapshot is recorded under: it is for finding
/// the process.
fn this_holder(user: &str) -> LeaseHolder {
    let pid = std::process::id();
    LeaseHolder {
        host: machine_name(),
        user: user.to_owned(),
        pid,
        boot: boot(),
        started_ticks: started_ticks(pid).unwrap_or(0),
    }
}

/// Tells whether the process that took a lease is known to be gone.
pub(crate) fn is_dead(holder: &LeaseHolder) -> bool {
    let here = boot();
    let ([machine_here, boot_here, space_here], [machine, boot, space]) = (parts(&here), parts(&holder.boot));
    if holder.host != machine_name() || boot_here.is_empty() || boot.is_empty() {
        return false;
    }
    if boot_here != boot {
        // Started anew, if it is this machine at all: many share a name.
        return !machine.is_empty() && machine_here == machine;
    }
    space_here == space && is_gone(holder)
}

/// Tells whether the process that took a lease is known to be at work, on this machine.
pub(crate) fn is_running_here(holder: &LeaseHolder) -> bool {
    holder.host == machine_name() && holder.boot == boot() && !is_gone(holder)
}

/// Tells whether no process of this process-id space is the holder.
fn is_gone(holder: &LeaseHolder) -> bool {
    let exists = |pid| !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH));
    match started_ticks(holder.pid) {
        Some(started) => started != holder.started_ticks,
        // Other users' processes may be hidden.
        None => !i32::try_from(holder.pid).ok().and_then(rustix::process::Pid::from_raw).is_some_and(exists),
    }
}

pub(crate) fn machine_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Within what a process number means something: `<machine id>/<boot id>/<process-id space>`, each empty if it is not
/// known.
fn boot() -> String {
    let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned()).unwrap_or_default();
    format!("{}/{}/{space}", machine.trim(), boot.trim())
}

/// The three parts of [`boot`]'s text.
fn parts(boot: &str) -> [&str; 3] {
    let mut parts = boot.splitn(3, '/');
    [(); 3].map(|()| parts.next().unwrap_or_default())
}

/// When a process was started, in clock ticks since boot (field 22 of its stat file); `None` if there is none by that
/// number.
fn started_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name, field 2, may hold anything, a closing parenthesis included.
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19)?.parse().ok()
}

/// The time now.
pub(crate) fn now() -> Time {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => {
            Time { seconds: since.as_secs().try_into().unwrap_or(i64::MAX), nanoseconds: since.subsec_nanos() }
        }
        Err(before) => {
            let before = before.duration();
            let seconds = i64::try_from(before.as_secs()).unwrap_or(i64::MAX);
            match before.subsec_nanos() {
                0 => Time { seconds: -seconds, nanoseconds: 0 },
                nanos => Time { seconds: -seconds - 1, nanoseconds: 1_000_000_000 - nanos },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_one_that_never_was_is_dead() {
        let holder = this_holder("me");
        assert!(!is_dead(&holder));
        let gone = LeaseHolder { started_ticks: holder.started_ticks + 1, ..holder.clone() };
        assert!(is_dead(&gone));
        let elsewhere = LeaseHolder { host: "elsewhere".into(), ..gone };
        assert!(!is_dead(&elsewhere), "another host's processes cannot be seen");
        let [machine, boot, space] = parts(&holder.boot);
        let rebooted = LeaseHolder { boot: format!("{machine}/another/{space}"), ..holder.clone() };
        assert_eq!(is_dead(&rebooted), !machine.is_empty(), "this machine, if it can be known again, was started anew");
        let namesake = LeaseHolder { boot: format!("other{machine}/another/{space}"), ..holder.clone() };
        assert!(!is_dead(&namesake), "another machine of the same name cannot be seen");
        let other_space = LeaseHolder { boot: format!("{machine}/{boot}/other"), pid: u32::MAX, ..holder.clone() };
        assert!(!is_dead(&other_space), "another process-id space cannot be seen");
        let absent = LeaseHolder { pid: i32::MAX.cast_unsigned(), ..holder.clone() };
        assert!(is_dead(&absent));
    }
}
