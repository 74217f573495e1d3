//! Who this process is, for the lease of a series, and whether the holder of another lease is known to be dead.
//!
//! A holder is dead for certain only if it ran on this host in the same process-id space and its process is gone, or if this host
//! has been started anew since. Everything else may be alive; taking over is then the user's decision. Fencing keeps the data safe
//! whatever is decided.

use siltstone_store::Time;
use siltstone_store::manifest::LeaseHolder;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// This process.
pub(crate) fn this_holder(host: &str, user: &str) -> LeaseHolder {
    let pid = std::process::id();
    LeaseHolder {
        host: host.to_owned(),
        user: user.to_owned(),
        pid,
        boot: boot(),
        started_ticks: started_ticks(pid).unwrap_or(0),
    }
}

/// Whether the process that took a lease is known to be gone.
pub(crate) fn is_dead(holder: &LeaseHolder, host: &str) -> bool {
    if holder.host != host {
        return false;
    }
    let here = boot();
    let (boot_here, space_here) = here.split_once('/').unwrap_or((&here, ""));
    let (boot_there, space_there) = holder.boot.split_once('/').unwrap_or((&holder.boot, ""));
    if boot_here.is_empty() || boot_there.is_empty() {
        return false;
    }
    if boot_here != boot_there {
        return true;
    }
    space_here == space_there && started_ticks(holder.pid) != Some(holder.started_ticks)
}

/// Identity of this start of the system and of the process-id space, `<boot id>/<name space>`.
fn boot() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned()).unwrap_or_default();
    format!("{}/{space}", boot.trim())
}

/// When a process was started, in clock ticks since boot (field 22 of its stat file); `None` if there is none by that number.
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
        let holder = this_holder("here", "me");
        assert!(!is_dead(&holder, "here"));
        let gone = LeaseHolder { started_ticks: holder.started_ticks + 1, ..holder.clone() };
        assert!(is_dead(&gone, "here"));
        assert!(!is_dead(&gone, "elsewhere"), "another host's processes cannot be seen");
        let rebooted = LeaseHolder { boot: "another/space".into(), ..holder.clone() };
        assert!(is_dead(&rebooted, "here"));
        let (boot, _) = holder.boot.split_once('/').expect("two parts");
        let other_space = LeaseHolder { boot: format!("{boot}/other"), pid: u32::MAX, ..holder.clone() };
        assert!(!is_dead(&other_space, "here"), "another process-id space cannot be seen");
    }
}
