//! Archives: the programs with their pages, for any Linux; and the sources, for whoever builds it.

use super::{Release, binary, packaging, put};
use anyhow::Result;
use siltstone_testbed::{program, tree, workspace};
use std::env::consts::ARCH;
use std::path::PathBuf;
use std::process::Command;

/// Files at the top of the checkout that go with the programs.
const PAGES: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Makes `silt-VERSION-ARCHITECTURE-linux.tar.gz`.
pub(super) fn of_binaries(release: &Release) -> Result<PathBuf> {
    let name = format!("silt-{}-{ARCH}-linux", release.version);
    let folder = release.made.join(&name);
    for page in PAGES {
        put(&workspace::root().join(page), &folder.join(page), 0o644)?;
    }
    for (program, _) in binary::PROGRAMS {
        put(&release.made.join(program), &folder.join(program), 0o755)?;
    }
    put(&release.made.join("THIRD-PARTY"), &folder.join("THIRD-PARTY"), 0o644)?;
    for part in ["man", "completions"] {
        tree::copy(&release.made.join(part), &folder.join(part))?;
    }
    tree::copy(&packaging("systemd"), &folder.join("systemd"))?;
    let file = release.folder.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX"]);
    tar.arg(format!("--mtime=@{}", release.time)).arg("--use-compress-program=gzip --best --no-name");
    tar.arg("--directory").arg(&release.made).arg("--file").arg(&file).arg(name);
    program::run(&mut tar)?;
    Ok(file)
}

/// Makes `siltstone-VERSION.tar.gz` of the commit that is checked out.
pub(super) fn of_sources(release: &Release) -> Result<PathBuf> {
    let name = format!("siltstone-{}", release.version);
    let file = release.folder.join(format!("{name}.tar.gz"));
    let mut git = Command::new("git");
    git.current_dir(workspace::root()).args(["archive", "--format=tar.gz", "HEAD"]);
    program::run(git.arg(format!("--prefix={name}/")).arg("--output").arg(&file))?;
    Ok(file)
}
