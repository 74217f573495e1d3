//! The Debian package, made by Debian's own debhelper from `packaging/debian`, which makes the scripts that the units
//! need, compresses pages, and finds out which libraries the programs take.

use super::{COMPLETIONS, Release, binary, packaging, put};
use anyhow::{Context, Result, ensure};
use siltstone_testbed::{program, tree};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian has the completions of each shell, in the order of [`COMPLETIONS`]. PowerShell has no such folder.
const PLACES: [&str; 4] = [
    "usr/share/bash-completion/completions/silt",
    "usr/share/zsh/vendor-completions/_silt",
    "usr/share/fish/vendor_completions.d/silt.fish",
    "usr/share/siltstone/completions/silt.ps1",
];

/// Units of `packaging/systemd`: debhelper knows their place, and writes the scripts that they need.
const UNITS: [&str; 3] = ["silt-serve.service", "silt-backup@.service", "silt-backup@.timer"];

/// Other files there, and where they are installed.
const SETTINGS: [(&str, &str); 2] =
    [("silt.sysusers", "usr/lib/sysusers.d/silt.conf"), ("silt-serve.default", "etc/default/silt-serve")];

/// More that the package must hold.
const PAGES: [&str; 7] = [
    "usr/bin/silt",
    "usr/bin/silt-import",
    "usr/share/man/man1/silt.1.gz",
    "usr/share/man/man1/silt-backup.1.gz",
    "usr/share/man/man1/silt-import-restic.1.gz",
    "usr/share/doc/siltstone/copyright",
    "usr/share/doc/siltstone/THIRD-PARTY.gz",
];

/// Makes `siltstone_VERSION_ARCHITECTURE.deb`, and has lintian look at it.
pub(super) fn build(release: &Release) -> Result<PathBuf> {
    let home = release.made.join("debian-build");
    let root = home.join(format!("siltstone-{}", release.version));
    lay_out(release, &root)?;
    let mut build = Command::new("dpkg-buildpackage");
    build.args(["--build=binary", "--no-sign"]).current_dir(&root).env("SOURCE_DATE_EPOCH", &release.time);
    program::quietly(&mut build)?;
    let is_package = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "deb");
    let made = tree::entries(&home)?.into_iter().find(is_package).context("dpkg-buildpackage made no package")?;
    let package = release.folder.join(made.file_name().unwrap_or_default());
    put(&made, &package, 0o644)?;
    holds_what_it_should(&package)?;
    program::run(
        Command::new("lintian").args(["--fail-on", "error", "--allow-root", "--tag-display-limit", "0"]).arg(&package),
    )?;
    Ok(package)
}

/// Lays out the files below `root` as they are installed, with `debian/` beside them.
fn lay_out(release: &Release, root: &Path) -> Result<()> {
    for (program, _) in binary::PROGRAMS {
        put(&release.made.join(program), &root.join("usr/bin").join(program), 0o755)?;
    }
    for ((_, file), place) in COMPLETIONS.iter().zip(PLACES) {
        put(&release.made.join("completions").join(file), &root.join(place), 0o644)?;
    }
    for (file, place) in SETTINGS {
        put(&packaging("systemd").join(file), &root.join(place), 0o644)?;
    }
    put(&release.made.join("THIRD-PARTY"), &root.join("usr/share/doc/siltstone/THIRD-PARTY"), 0o644)?;
    tree::copy(&release.made.join("man"), &root.join("man"))?;
    tree::copy(&packaging("debian"), &root.join("debian"))?;
    for unit in UNITS {
        put(&packaging("systemd").join(unit), &root.join(format!("debian/siltstone.{unit}")), 0o644)?;
    }
    let control = root.join("debian/control");
    fs::write(&control, filled(&fs::read_to_string(&control)?, release))?;
    Ok(fs::write(root.join("debian/changelog"), changelog(release)?)?)
}

/// Puts in who makes the package, the glibc it needs, and where the project is at home; without a home, the line goes.
fn filled(control: &str, release: &Release) -> String {
    let lines = control.lines().filter(|line| release.homepage.is_some() || !line.contains("@HOMEPAGE@"));
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    let (major, minor) = binary::GLIBC;
    text.replace("@MAINTAINER@", &release.maintainer)
        .replace("@GLIBC@", &format!("{major}.{minor}"))
        .replace("@HOMEPAGE@", release.homepage.as_deref().unwrap_or_default())
}

fn changelog(release: &Release) -> Result<String> {
    let date = program::quietly(
        Command::new("date").args(["--utc", "--rfc-email", "--date"]).arg(format!("@{}", release.time)),
    )?;
    let Release { version, maintainer, .. } = release;
    Ok(format!("siltstone ({version}) unstable; urgency=medium\n\n  * Release {version}.\n\n -- {maintainer}  {date}"))
}

fn holds_what_it_should(package: &Path) -> Result<()> {
    let contents = program::quietly(Command::new("dpkg-deb").arg("--contents").arg(package))?;
    let held: Vec<&str> =
        contents.lines().filter_map(|line| line.split_whitespace().nth(5)?.strip_prefix("./")).collect();
    let units = UNITS.map(|unit| format!("lib/systemd/system/{unit}"));
    let files = PLACES.into_iter().chain(SETTINGS.map(|(_, place)| place)).chain(PAGES);
    let wanted = files.chain(units.iter().map(String::as_str));
    // Debian moves its units from /lib to /usr/lib.
    let lacks =
        |file: &&str| !held.iter().any(|held| held.strip_prefix("usr/").unwrap_or(held) == *file || held == file);
    let missing: Vec<&str> = wanted.filter(lacks).collect();
    ensure!(missing.is_empty(), "{} lacks {}", package.display(), missing.join(", "));
    eprintln!("{}: {} files and folders", package.display(), held.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_testbed::install;

    #[test]
    fn the_package_is_described_with_and_without_a_home() {
        let control = fs::read_to_string(packaging("debian/control")).unwrap();
        let release = |homepage: Option<&str>| Release {
            version: "0.1.0".into(),
            maintainer: "Name <name@example.com>".into(),
            homepage: homepage.map(str::to_owned),
            source_url: None,
            time: "0".into(),
            folder: PathBuf::new(),
            made: PathBuf::new(),
        };
        let without = filled(&control, &release(None));
        assert!(
            without.contains("Maintainer: Name <name@example.com>\n") && !without.contains("Homepage"),
            "{without}"
        );
        let with = filled(&control, &release(Some("https://example.com/")));
        assert!(with.contains("Homepage: https://example.com/\n"), "{with}");
    }

    #[test]
    fn systemd_understands_the_units() {
        if install::find("systemd-analyze").is_none() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        for file in UNITS {
            let unit = fs::read_to_string(packaging("systemd").join(file)).unwrap();
            // The program need not be installed here, and a template is looked at by an instance.
            let unit = unit.replace("ExecStart=/usr/bin/silt", "ExecStart=/bin/true");
            fs::write(folder.path().join(file.replace('@', "@home")), unit).unwrap();
        }
        let mut verify = Command::new("systemd-analyze");
        verify.args(["verify", "--man=no"]).args(tree::files(folder.path()).unwrap());
        let output = program::try_quietly(&mut verify).unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
