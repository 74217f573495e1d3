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
        format!("processor: {}, {cores} cores", after_colon("/proc/cpuinfo", "model name")),
        format!("memory: {}", after_colon("/proc/meminfo", "MemTotal")),
        format!("system: {}, Linux {}", distribution(), said("uname", &["-r"])),
        format!("file system: {}, data in the page cache", file_system(place)),
        format!("compiler: {}", said("rustc", &["--version"])),
    ]
}

/// The day in universal time, `2026-11-21`.
pub fn today() -> String {
    said("date", &["-u", "+%F"])
}

/// Now, in universal time, as part of a name: `20261121-235959`.
pub fn moment() -> String {
    said("date", &["-u", "+%Y%m%d-%H%M%S"])
}

/// Makes a folder in memory, if there is room for much, else on the disk; it ends with the value.
pub fn scratch() -> io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    let free = rustix::fs::statvfs(memory).map_or(0, |room| room.f_bavail.saturating_mul(room.f_frsize));
    if free >= SCRATCH_BYTES_LEAST { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }
}

fn after_colon(file: &str, key: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(key));
    line.and_then(|line| line.split_once(':')).map_or("unknown".into(), |(_, value)| value.trim().to_owned())
}

fn distribution() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or("unknown".into(), |name| name.trim_matches('"').to_owned())
}

fn file_system(place: &Path) -> String {
    program::quietly(Command::new("stat").args(["-f", "-c", "%T"]).arg(place))
        .map_or("unknown".into(), |text| text.trim().to_owned())
}

fn said(program: &str, words: &[&str]) -> String {
    program::quietly(Command::new(program).args(words)).map_or("unknown".into(), |text| text.trim().to_owned())
}
