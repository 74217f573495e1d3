//! The programs as they are handed out: stripped, and for systems as old as Rust's own library allows.
//!
//! They are linked with glibc 2.17, of 2012, by zig's linker, which has the symbols of every version. A static program
//! with musl was not chosen: musl's `getpwuid` knows the users of `/etc/passwd` alone, so that owners from LDAP would
//! lose their names in snapshots, and its allocator makes threads wait for each other.

use anyhow::{Context, Result, ensure};
use siltstone_testbed::install::{self, Needed};
use siltstone_testbed::{program, workspace};
use std::env::consts::ARCH;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs, each with the crate that it is of.
pub(super) const PROGRAMS: [(&str, &str); 2] = [("silt", "siltstone"), ("silt-import", "siltstone-import")];
/// The version of glibc that is enough to run them.
pub(super) const GLIBC: (u32, u32) = (2, 17);
/// Its libraries, as their names begin: packages name nothing more that is needed.
const GLIBC_LIBRARIES: [&str; 6] = ["libc.so.", "libm.so.", "libpthread.so.", "libdl.so.", "librt.so.", "ld-linux"];
/// Python packages with the linker, and with what lets cargo use it.
const ZIG: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1"];

/// Builds the programs and sees that they are what they should be; returns the folder they are in.
pub(super) fn build() -> Result<PathBuf> {
    let triple = triple();
    let mut command = workspace::cargo();
    command.args(["zigbuild", "--locked", "--release"]);
    for (program, package) in PROGRAMS {
        command.args(["--package", package, "--bin", program]);
    }
    command.arg("--target").arg(format!("{triple}.{}.{}", GLIBC.0, GLIBC.1));
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env("PATH", std::env::join_paths(std::iter::once(zig()?).chain(std::env::split_paths(&path)))?);
    let sources = cargo_home()?.join("registry").join("src");
    command.env("CARGO_ENCODED_RUSTFLAGS", format!("--remap-path-prefix={}=registry", sources.display()));
    program::run_telling(&mut command, "building the programs")?;
    let folder = workspace::target()?.join(triple).join("release");
    PROGRAMS.iter().try_for_each(|(program, _)| inspect(&folder.join(program)))?;
    Ok(folder)
}

/// This machine's processor, as Rust names it.
pub(super) fn triple() -> String {
    format!("{ARCH}-unknown-linux-gnu")
}

/// Folder of the programs of [`ZIG`], installed if they are not there.
fn zig() -> Result<PathBuf> {
    let home = workspace::target()?.join("zig");
    let programs = home.join("bin");
    if !programs.join("cargo-zigbuild").is_file() {
        install::ensure_program(Needed { program: "python3", package: "python3" })?;
        program::run(Command::new("python3").args(["-m", "venv"]).arg(&home))
            .context("is Debian's package python3-venv installed?")?;
        program::run(Command::new(programs.join("pip")).args(["install", "--quiet"]).args(ZIG))?;
    }
    Ok(programs)
}

fn cargo_home() -> Result<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home).context("where is cargo's home?")
}

/// Looks at the file: no names of functions, nothing of a newer glibc, no folder of this machine.
fn inspect(file: &Path) -> Result<()> {
    let mut readelf = Command::new("readelf");
    let elf = program::quietly(readelf.args(["--wide", "--sections", "--version-info", "--dynamic"]).arg(file))?;
    let full = [".symtab", ".debug_info"].into_iter().find(|section| elf.contains(section));
    ensure!(full.is_none(), "{} is not stripped: it has {}", file.display(), full.unwrap_or_default());
    let newest = newest_glibc(&elf).context("it needs no glibc: is it what was to be built?")?;
    ensure!(
        newest <= GLIBC,
        "{} needs glibc {}.{}, not only {}.{}",
        file.display(),
        newest.0,
        newest.1,
        GLIBC.0,
        GLIBC.1
    );
    let bytes = std::fs::read(file)?;
    let here = cargo_home()?.display().to_string();
    let named = bytes.windows(here.len()).any(|window| window == here.as_bytes());
    ensure!(!named, "{} names {here}, a folder of this machine", file.display());
    let libraries = elf.lines().filter_map(|line| line.split_once("Shared library: [")).map(|(_, name)| name);
    let libraries: Vec<&str> = libraries.map(|name| name.trim_end_matches(']')).collect();
    let foreign = libraries.iter().find(|name| !GLIBC_LIBRARIES.iter().any(|own| name.starts_with(own)));
    ensure!(foreign.is_none(), "{} needs {}, which is none of glibc", file.display(), foreign.unwrap_or(&""));
    eprintln!(
        "{}: {} bytes, glibc {}.{}, libraries: {}",
        file.display(),
        bytes.len(),
        newest.0,
        newest.1,
        libraries.join(" ")
    );
    Ok(())
}

/// The newest version among the words `GLIBC_2.14`.
fn newest_glibc(elf: &str) -> Option<(u32, u32)> {
    let versions = elf.split_whitespace().filter_map(|word| word.strip_prefix("GLIBC_")?.split_once('.'));
    versions.filter_map(|(major, minor)| Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_glibc_is_found() {
        let elf =
            "0x0010: Name: GLIBC_2.9  Flags: none\n 0x0020: Name: GLIBC_2.14  Flags: none\n GLIBC_2.2.5 GLIBC_PRIVATE";
        assert_eq!(newest_glibc(elf), Some((2, 14)));
        assert_eq!(newest_glibc("statically linked"), None);
    }
}
