//! The machine a measurement was made on, as far as it explains the numbers, and its memory for files that come and go.
//! Nothing that names it.

use crate::program;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Room that a folder in memory must have.
const SCRATCH_BYTES_LEAST: u64 = 2 << 30;

/// One line each: processor, memory, system, file system at `place`, compiler.
pub fn lines(place: &Path) -> Vec<String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    vec![
        format!("processor: {}, {cores} cores", value_of("/proc/cpuinfo", "model name", ':')),
        format!("memory: {}", value_of("/proc/meminfo", "MemTotal", ':')),
        format!(
            "system: {}, Linux {}",
            value_of("/etc/os-release", "PRETTY_NAME", '=').trim_matches('"'),
            said(Command::new("uname").arg("-r"))
        ),
        format!(
            "file system: {}, data in the page cache",
            said(Command::new("stat").args(["-f", "-c", "%T"]).arg(place))
        ),
        format!("compiler: {}", said(Command::new("rustc").arg("--version"))),
    ]
}

/// The day in universal time, `2026-11-21`.
pub fn today() -> String {
    said(Command::new("date").args(["-u", "+%F"]))
}

/// Now, in universal time, as part of a name: `20261121-235959`.
pub fn moment() -> String {
    said(Command::new("date").args(["-u", "+%Y%m%d-%H%M%S"]))
}

/// Makes a folder in memory, if there is room for much, else on the disk; it ends with the value.
pub fn scratch() -> io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    let free = rustix::fs::statvfs(memory).map_or(0, |room| room.f_bavail.saturating_mul(room.f_frsize));
    if free >= SCRATCH_BYTES_LEAST { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }
}

/// The value behind a mark in the first line of a file that begins with this key.
fn value_of(file: &str, key: &str, mark: char) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(key));
    line.and_then(|line| line.split_once(mark)).map_or("unknown".into(), |(_, value)| value.trim().to_owned())
}

fn said(command: &mut Command) -> String {
    program::quietly(command).map_or("unknown".into(), |text| text.trim().to_owned())
}
