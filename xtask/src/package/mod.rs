//! Files that users install, in `target/package`: the programs in an archive with their pages, a Debian package, an
//! archive of the sources, checksums, and files for Homebrew and the AUR.
//!
//! ```text
//! binary      the programs, built to run on old systems too, and looked at
//! notices     the licences of everything that is linked into them
//! archive     the programs in an archive; the sources in another
//! debian      the Debian package, by debhelper, looked at by lintian
//! recipes     files of other package managers, which fetch the sources
//! trial       the Debian package in a fresh Debian, and the first backup by its user
//! ```
//!
//! The same commit gives the same bytes where the same compilers are: times are those of the commit.

mod archive;
mod binary;
mod debian;
mod notices;
mod recipes;
mod trial;

use anyhow::{Context, Result};
use clap::Args;
use siltstone_testbed::install::{self, Needed};
use siltstone_testbed::{program, workspace};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options: what the packages say of where they come from, and the trial.
#[derive(Args)]
pub(crate) struct Options {
    /// Maker of the packages, as `Name <address>`; otherwise DEBFULLNAME and DEBEMAIL, or else git's user.name and
    /// user.email.
    #[arg(long, value_name = "MAKER")]
    maintainer: Option<String>,
    /// Page of the project, which packages name.
    #[arg(long, value_name = "URL")]
    homepage: Option<String>,
    /// Address where the archive of the sources will lie; makes the files for Homebrew and the AUR.
    #[arg(long, value_name = "URL", requires = "homepage")]
    source_url: Option<String>,
    /// Install the Debian package in a fresh root of this release, made by debootstrap, and make the first backup there
    /// as docs/INSTALL.md says; root only.
    #[arg(long = "try", value_name = "RELEASE", num_args = 0..=1, default_missing_value = "bookworm")]
    try_in: Option<String>,
}

const NEEDED: [Needed; 5] = [
    install::COMPILER,
    Needed { program: "dpkg-buildpackage", package: "dpkg-dev" },
    Needed { program: "dh", package: "debhelper" },
    Needed { program: "lintian", package: "lintian" },
    Needed { program: "git", package: "git" },
];

/// Makes everything anew.
pub(crate) fn run(options: &Options) -> Result<()> {
    install::ensure(&NEEDED)?;
    if options.try_in.is_some() {
        trial::needs()?;
    }
    let release = Release::of(options)?;
    if workspace::commit().ends_with('+') {
        eprintln!(
            "some files differ from the commit: the archive of the sources holds the commit, the programs do not"
        );
    }
    let programs = binary::build()?;
    for old in [&release.folder, &release.made] {
        fs::remove_dir_all(old).or_else(|error| if old.exists() { Err(error) } else { Ok(()) })?;
    }
    release.make_parts(&programs)?;
    let binaries = archive::of_binaries(&release)?;
    let sources = archive::of_sources(&release)?;
    let package = debian::build(&release)?;
    release.write_checksums(&[&binaries, &sources, &package])?;
    recipes::fill(&release, &sources)?;
    if let Some(debian) = &options.try_in {
        trial::run(debian, &package)?;
    }
    program::run(Command::new("ls").args(["-l", "--recursive"]).arg(&release.folder))
}

/// One release: its names and its folders.
struct Release {
    version: String,
    maintainer: String,
    homepage: Option<String>,
    source_url: Option<String>,
    /// Time of the commit, in seconds since 1970.
    time: String,
    /// What is handed out.
    folder: PathBuf,
    /// Parts of which it is made: the programs, `man/`, `completions/`, `THIRD-PARTY`.
    made: PathBuf,
}

impl Release {
    fn of(options: &Options) -> Result<Self> {
        let target = workspace::target()?;
        Ok(Self {
            version: version()?,
            maintainer: options.maintainer.clone().map_or_else(maintainer, Ok)?,
            homepage: options.homepage.clone(),
            source_url: options.source_url.clone(),
            time: git(&["log", "-1", "--format=%ct"])?,
            folder: target.join("package"),
            made: target.join("package-parts"),
        })
    }

    /// Brings together what each form of the release holds.
    fn make_parts(&self, programs: &Path) -> Result<()> {
        for folder in [&self.folder, &self.made.join("man"), &self.made.join("completions")] {
            fs::create_dir_all(folder)?;
        }
        for (program, _) in binary::PROGRAMS {
            put(&programs.join(program), &self.made.join(program), 0o755)?;
        }
        let completions = self.made.join("completions");
        let mut generate = Command::new(self.made.join("silt"));
        generate.arg("generate").arg("--man").arg(self.made.join("man"));
        for (shell, file) in COMPLETIONS {
            generate.arg(format!("--{shell}-completion")).arg(completions.join(file));
        }
        program::run(&mut generate)?;
        fs::write(self.made.join("THIRD-PARTY"), notices::all()?).context("THIRD-PARTY")
    }

    /// Writes `SHA256SUMS`, which `sha256sum --check` reads.
    fn write_checksums(&self, files: &[&Path]) -> Result<()> {
        let names = files.iter().filter_map(|file| file.file_name());
        let sums = program::quietly(Command::new("sha256sum").current_dir(&self.folder).args(names))?;
        Ok(fs::write(self.folder.join("SHA256SUMS"), sums)?)
    }
}

/// Shells, and the files that complete their command lines.
const COMPLETIONS: [(&str, &str); 4] =
    [("bash", "silt.bash"), ("zsh", "_silt"), ("fish", "silt.fish"), ("powershell", "silt.ps1")];

/// Version of the program.
fn version() -> Result<String> {
    let metadata = workspace::metadata()?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let program = packages.find(|package| package["name"] == "siltstone").context("no crate siltstone")?;
    Ok(program["version"].as_str().context("no version")?.to_owned())
}

fn maintainer() -> Result<String> {
    let either = |variable: &str, setting: &str| std::env::var(variable).or_else(|_| git(&["config", setting]));
    let maintainer = || Ok(format!("{} <{}>", either("DEBFULLNAME", "user.name")?, either("DEBEMAIL", "user.email")?));
    maintainer().map_err(|error: anyhow::Error| error.context("who makes the packages? give --maintainer"))
}

fn git(words: &[&str]) -> Result<String> {
    let said = program::quietly(Command::new("git").current_dir(workspace::root()).args(words))?;
    Ok(said.trim().to_owned())
}

/// Copies a file and gives it a mode; makes the folders above it.
fn put(from: &Path, to: &Path, mode: u32) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
    fs::copy(from, to).with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(mode))?)
}

/// A file of the folder `packaging`.
fn packaging(name: &str) -> PathBuf {
    workspace::root().join("packaging").join(name)
}
