//! The machine a measurement was made on, as far as it explains the numbers. Nothing that names it.

use crate::program;
use std::fs;
use std::path::Path;
use std::process::Command;

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
