//! The Debian package in a fresh Debian that has nothing more than its essential packages: installed, and used for the
//! first time, by a user who copies the commands of the guide's first page.

use super::put;
use anyhow::{Context, Result, ensure};
use siltstone_testbed::install::{self, Needed};
use siltstone_testbed::{program, workspace};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The page, and the heading above its commands.
const PAGE: (&str, &str) = ("docs/INSTALL.md", "## The first backup");
/// The user, and a home with files worth keeping.
const USER: &str = "useradd --create-home --shell /bin/bash user && cp -a /usr/share/doc /home/user/documents \
    && chown -R user: /home/user";
/// Runs the commands with what a login gives, and the password that is asked for otherwise.
const FIRST_BACKUP: &str = "cd /home/user && exec runuser -u user -- env -i HOME=/home/user PATH=/usr/bin:/bin \
    SILT_PASSWORD=secret bash -e -u -x -o pipefail /tmp/first-backup.sh";

/// Sees early that the trial can be made.
pub(super) fn needs() -> Result<()> {
    ensure!(install::is_root()?, "--try makes the root of a Debian: it must be run by root");
    install::ensure(&[
        Needed { program: "debootstrap", package: "debootstrap" },
        Needed { program: "unshare", package: "util-linux" },
    ])
}

/// Makes the root of this release of Debian, and in it the first backup.
pub(super) fn run(release: &str, package: &Path) -> Result<()> {
    let page = fs::read_to_string(workspace::root().join(PAGE.0))?;
    let folder = tempfile::tempdir_in(workspace::target()?)?;
    let root = folder.path().join("root");
    program::run_telling(
        Command::new("debootstrap").args(["--variant=minbase", release]).arg(&root).stdout(std::process::Stdio::null()),
        "making the root of a Debian",
    )?;
    put(package, &root.join("tmp/siltstone.deb"), 0o644)?;
    fs::write(root.join("tmp/first-backup.sh"), commands(&page)?)?;
    let install = "DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet /tmp/siltstone.deb";
    for line in [install, USER, FIRST_BACKUP] {
        program::run(&mut inside(&root, line))?;
    }
    println!("Debian {release}: the package is installed, the first backup is made, restored, compared and checked.");
    Ok(())
}

/// A line of the shell below `root`, with a `/proc` of its own, which ends with it.
fn inside(root: &Path, line: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-e", "-c"]);
    command.arg("mount -t proc proc \"$0/proc\" && exec chroot \"$0\" sh -e -c \"$1\"").arg(root).arg(line);
    command
}

/// The commands below the heading of the page.
fn commands(page: &str) -> Result<&str> {
    let (_, part) = page.split_once(PAGE.1).with_context(|| format!("{} has no '{}'", PAGE.0, PAGE.1))?;
    let block = part.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next());
    block.with_context(|| format!("no commands below '{}' in {}", PAGE.1, PAGE.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_commands_of_a_first_backup() {
        let page = fs::read_to_string(workspace::root().join(PAGE.0)).unwrap();
        let commands = commands(&page).unwrap();
        for word in ["init", "backup", "snapshots", "restore", "diff -r", "check"] {
            assert!(commands.contains(word), "no {word} in:\n{commands}");
        }
    }
}
