//! The oldest Rust compiler that `siltstone-simd` and `siltstone-chunk` promise to build with, and the standard
//! libraries of the processors that are not here. Debian has both, for every processor it runs on. Its packages are
//! unpacked into a folder of our own, found through lists of our own: they could not be installed side by side, nor
//! beside another Rust.

use anyhow::{Context, Result, bail};
use siltstone_testbed::workspace;
use siltstone_testbed::{install, program};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Version that the crates promise, `rust-version` in their manifests: the oldest version from here on that Debian has
/// is taken.
const RUST: Minor = (1, 85);

/// Debian's names of the processors: first that of this machine.
const ARCHITECTURES: [&str; 3] = ["amd64", "arm64", "ppc64el"];

type Minor = (u32, u32);

/// A compiler with its libraries.
pub(super) struct Toolchain {
    folder: PathBuf,
}

impl Toolchain {
    /// The one unpacked before if it works, else a fresh one.
    pub(super) fn ensure() -> Result<Self> {
        let home = workspace::target()?.join("cross");
        let toolchain = Self { folder: home.join("rust") };
        if toolchain.version().is_err() {
            unpack(&home.join("packages"), &toolchain.folder)
                .context("the compiler for other processors could not be had from Debian's packages")?;
        }
        eprint!("{}", toolchain.version()?);
        Ok(toolchain)
    }

    pub(super) fn rustc(&self) -> PathBuf {
        self.folder.join("usr").join("bin").join("rustc")
    }

    /// Environment by which the compiler finds its own library.
    pub(super) fn variables(&self) -> [(&'static str, PathBuf); 1] {
        [("LD_LIBRARY_PATH", self.folder.join("usr").join("lib").join("x86_64-linux-gnu"))]
    }

    fn version(&self) -> Result<String> {
        program::quietly(Command::new(self.rustc()).envs(self.variables()).arg("--version"))
    }
}

/// Fetches the packages into `packages`, which is removed in the end, and unpacks them as `folder`.
fn unpack(packages: &Path, folder: &Path) -> Result<()> {
    for fresh in [packages, folder] {
        if fresh.exists() {
            fs::remove_dir_all(fresh)?;
        }
    }
    let apt = Apt { folder: packages };
    let update = apt.update();
    // Lists of parts that are not needed may be missing without harm.
    let Some((version, minor)) = apt.oldest()? else {
        update?;
        bail!("no rustc-web from {}.{} on is there for all of {}", RUST.0, RUST.1, ARCHITECTURES.join(", "));
    };
    let library = format!("libstd-rust-web-{}.{}", minor.0, minor.1);
    let mut names = vec![format!("rustc-web={version}"), format!("{library}={version}")];
    names.extend(ARCHITECTURES.map(|architecture| format!("libstd-rust-web-dev:{architecture}={version}")));
    apt.download(&names)?;
    let unpacked = packages.join("unpacked");
    for entry in fs::read_dir(packages)? {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "deb") {
            program::quietly(Command::new("dpkg-deb").arg("--extract").args([&file, &unpacked]))?;
        }
    }
    install::packages(&[&apt.llvm(&library, &version)?])?;
    fs::rename(&unpacked, folder)?;
    fs::remove_dir_all(packages)?;
    Ok(())
}

/// Debian's package manager with lists of its own, which hold the packages of all processors.
struct Apt<'a> {
    folder: &'a Path,
}

impl Apt<'_> {
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let folder = |name: &str| self.folder.join(name).display().to_string();
        command.arg("-o").arg(format!("Dir::State::Lists={}", folder("lists")));
        command.arg("-o").arg(format!("Dir::Cache={}", folder("cache")));
        command.args(ARCHITECTURES.map(|architecture| format!("-oAPT::Architectures::={architecture}")));
        command.args(["-o", "Acquire::Retries=3", "-o", "APT::Sandbox::User=root"]);
        command
    }

    fn update(&self) -> Result<()> {
        fs::create_dir_all(self.folder.join("lists").join("partial"))?;
        fs::create_dir_all(self.folder.join("cache").join("archives").join("partial"))?;
        program::quietly(self.command("apt-get").arg("update")).map(|_| ())
    }

    /// The oldest version of the compiler that will do and has the libraries of all processors.
    fn oldest(&self) -> Result<Option<(String, Minor)>> {
        let mut versions = self.versions("rustc-web")?;
        for architecture in ARCHITECTURES {
            let here = self.versions(&format!("libstd-rust-web-dev:{architecture}"))?;
            versions.retain(|version| here.contains(version));
        }
        let minors = versions.into_iter().filter_map(|version| minor(&version).map(|minor| (version, minor)));
        Ok(minors.filter(|(_, minor)| *minor >= RUST).min_by_key(|(_, minor)| *minor))
    }

    /// Lines `package | version | source`.
    fn versions(&self, package: &str) -> Result<Vec<String>> {
        let text = program::quietly(self.command("apt-cache").args(["madison", package]))?;
        Ok(text.lines().filter_map(|line| line.split('|').nth(1)).map(|version| version.trim().to_owned()).collect())
    }

    fn download(&self, names: &[String]) -> Result<()> {
        eprintln!("fetching {}", names.join(" "));
        program::quietly(self.command("apt-get").current_dir(self.folder).arg("download").args(names)).map(|_| ())
    }

    /// The package that the compiler's library needs and few machines have.
    fn llvm(&self, library: &str, version: &str) -> Result<String> {
        let text = program::quietly(self.command("apt-cache").arg("show").arg(format!("{library}={version}")))?;
        let needed = text.lines().find_map(|line| line.strip_prefix("Depends:")).unwrap_or_default();
        let mut names = needed.split([',', ' ']).filter(|name| name.starts_with("libllvm"));
        names.next().map(str::to_owned).with_context(|| format!("{library} needs no LLVM"))
    }
}

fn minor(version: &str) -> Option<Minor> {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_debian_are_read() {
        assert_eq!(minor("1.85.0+dfsg3-1~deb12u3"), Some((1, 85)));
        assert_eq!(minor("none"), None);
    }
}
