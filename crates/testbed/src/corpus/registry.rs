//! Releases of a package, listed and fetched by the registry's ordinary client: cargo, npm or pip. A crate is a folder,
//! as cargo unpacks it; a package of npm is its archive, decompressed; one of pip a folder, as it is installed for one
//! fixed platform.

use crate::install::{self, Missing};
use crate::program;
use crate::tree;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

/// Options by which every machine gets the same wheels.
const PLATFORM: [&str; 8] = [
    "--only-binary",
    ":all:",
    "--platform",
    "manylinux2014_x86_64",
    "--implementation",
    "cp",
    "--python-version",
    "3.11",
];

/// Where packages are published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Registry {
    Cargo,
    Npm,
    Pip,
}

/// A package of a registry: `cargo:NAME`, `npm:NAME` or `pip:NAME`; a name alone is a crate's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Package {
    pub(super) registry: Registry,
    pub(super) name: String,
}

impl Package {
    pub(super) fn new(registry: Registry, name: &str) -> Self {
        Self { registry, name: name.to_owned() }
    }

    /// The program that fetches it.
    pub(super) fn client(&self) -> &'static str {
        match self.registry {
            Registry::Cargo => "cargo",
            Registry::Npm => "npm",
            Registry::Pip => "pip3",
        }
    }

    /// Makes sure that the client is there.
    pub(super) fn ensure_client(&self, missing: Missing) -> Result<()> {
        match self.registry {
            Registry::Cargo => Ok(()),
            Registry::Npm => missing.obtain(&[install::NPM]),
            Registry::Pip => missing.obtain(&[install::PIP]),
        }
    }

    /// The newest releases that are no previews, as many as there are up to `count`, oldest first.
    pub(super) fn newest(&self, count: usize) -> Result<Vec<String>> {
        let mut releases = match self.registry {
            Registry::Cargo => self.newest_crates(count)?,
            Registry::Npm => self.published_by_npm()?,
            Registry::Pip => self.published_by_pip()?,
        };
        releases.drain(..releases.len().saturating_sub(count));
        ensure!(!releases.is_empty(), "{self} has no release that could be fetched");
        Ok(releases)
    }

    /// Fetches a release into an empty folder; what it consists of is this folder, or a file in it.
    pub(super) fn fetch(&self, release: &str, into: &Path) -> Result<PathBuf> {
        let fetched = match self.registry {
            Registry::Cargo => {
                let unpacked = unpacked_crate(&self.name, &format!("={release}"))?.folder;
                tree::entries(&unpacked)?.iter().try_for_each(|entry| tree::copy(entry, into)).map(|()| into.into())
            }
            Registry::Npm => self.packed(release, into),
            Registry::Pip => self.installed(release, into),
        };
        fetched.with_context(|| format!("release {release} of {self} cannot be fetched"))
    }

    fn packed(&self, release: &str, into: &Path) -> Result<PathBuf> {
        let mut npm = Command::new("npm");
        npm.args(["pack", "--silent", "--pack-destination"]).arg(into).arg(format!("{}@{release}", self.name));
        program::quietly(npm.current_dir(into))?;
        let archive = tree::entries(into)?.pop().context("npm packed nothing")?;
        program::quietly(Command::new("gzip").arg("-d").arg(&archive))?;
        Ok(archive.with_extension("tar"))
    }

    fn installed(&self, release: &str, into: &Path) -> Result<PathBuf> {
        let mut pip = Command::new("pip3");
        pip.args(["install", "--quiet", "--no-deps", "--no-compile", "--disable-pip-version-check"]).args(PLATFORM);
        program::quietly(pip.arg("--target").arg(into).arg(format!("{}=={release}", self.name)))?;
        Ok(into.to_path_buf())
    }

    /// Cargo lists no releases. It is asked for the newest, then for the newest below that, and so on.
    fn newest_crates(&self, count: usize) -> Result<Vec<String>> {
        let mut releases: Vec<String> = Vec::new();
        let mut requirement = "*".to_owned();
        while releases.len() < count {
            match unpacked_crate(&self.name, &requirement) {
                Ok(found) => {
                    requirement = format!("<{}", found.version);
                    releases.push(found.version);
                }
                Err(error) if !releases.is_empty() && error.to_string().contains("failed to select a version") => break,
                Err(error) => return Err(error.context(format!("{self} cannot be fetched"))),
            }
        }
        releases.reverse();
        Ok(releases)
    }

    fn published_by_npm(&self) -> Result<Vec<String>> {
        let said = program::quietly(Command::new("npm").args(["view", &self.name, "versions", "--json"]))?;
        let releases = match serde_json::from_str(&said).context("npm lists no versions")? {
            Value::Array(all) => all.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect(),
            Value::String(one) => vec![one],
            _ => bail!("npm lists no versions of {self}"),
        };
        Ok(releases.into_iter().filter(|release: &String| !release.contains('-')).collect())
    }

    fn published_by_pip(&self) -> Result<Vec<String>> {
        let mut pip = Command::new("pip3");
        pip.args(["index", "versions", "--disable-pip-version-check"]).args(PLATFORM).arg(&self.name);
        listed_by_pip(&program::quietly(&mut pip)?).with_context(|| format!("pip lists no versions of {self}"))
    }
}

/// Versions from what `pip index versions` says, oldest first.
fn listed_by_pip(said: &str) -> Option<Vec<String>> {
    let listed = said.lines().find_map(|line| line.trim().strip_prefix("Available versions:"))?;
    Some(listed.split(',').rev().map(|version| version.trim().to_owned()).collect())
}

impl FromStr for Package {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (registry, name) = match text.split_once(':') {
            None | Some(("cargo", _)) => (Registry::Cargo, text.trim_start_matches("cargo:")),
            Some(("npm", name)) => (Registry::Npm, name),
            Some(("pip", name)) => (Registry::Pip, name),
            Some((other, _)) => bail!("'{other}' is no registry: cargo, npm or pip"),
        };
        let is_part = |part: char| part.is_ascii_alphanumeric() || "._-@/".contains(part);
        if name.is_empty() || name.starts_with(['-', '.', '/']) || !name.chars().all(is_part) {
            bail!("'{name}' is no package's name");
        }
        Ok(Self::new(registry, name))
    }
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let registry = match self.registry {
            Registry::Cargo => "cargo",
            Registry::Npm => "npm",
            Registry::Pip => "pip",
        };
        write!(f, "{registry}:{}", self.name)
    }
}

/// A crate where cargo keeps it.
pub(super) struct Unpacked {
    /// Without what follows a plus sign.
    pub(super) version: String,
    pub(super) folder: PathBuf,
}

/// Lets cargo fetch a crate as the dependency of an empty package: the newest release that meets the requirement.
pub(super) fn unpacked_crate(name: &str, requirement: &str) -> Result<Unpacked> {
    let package = tempfile::tempdir()?;
    let manifest = package.path().join("Cargo.toml");
    let text = format!(
        "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[lib]\npath = \"empty.rs\"\n\n\
         [dependencies]\nfetched = {{ package = \"{name}\", version = \"{requirement}\" }}\n\n[workspace]\n"
    );
    fs::write(&manifest, text)?;
    fs::write(package.path().join("empty.rs"), "")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1", "--manifest-path"]).arg(&manifest);
    let metadata: Value = serde_json::from_str(&program::quietly(&mut command)?)?;
    let packages = metadata["packages"].as_array().context("`cargo metadata` lists no packages")?;
    // A crate may depend on another release of itself: the newest is the one that was asked for.
    let direct = metadata["resolve"]["nodes"].as_array().and_then(|nodes| {
        let root = nodes.iter().find(|node| node["id"] == metadata["resolve"]["root"])?;
        root["deps"][0]["pkg"].as_str()
    });
    let package = packages.iter().find(|package| package["id"].as_str() == direct && direct.is_some());
    let package = package.with_context(|| format!("`cargo metadata` does not list {name}"))?;
    let manifest = package["manifest_path"].as_str().context("a package has no manifest path")?;
    let version = package["version"].as_str().context("a package has no version")?;
    let version = version.split_once('+').map_or(version, |(version, _)| version).to_owned();
    Ok(Unpacked { version, folder: Path::new(manifest).parent().context("a manifest lies in a folder")?.to_path_buf() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_with_their_registry() {
        for (text, shown) in
            [("openssl-src", "cargo:openssl-src"), ("npm:@types/node", "npm:@types/node"), ("pip:numpy", "pip:numpy")]
        {
            assert_eq!(text.parse::<Package>().unwrap().to_string(), shown);
        }
        for text in ["", "npm:", "gem:rails", "--config", "npm:-x", "a b", "x\" }"] {
            assert!(text.parse::<Package>().is_err(), "{text}");
        }
    }

    #[test]
    fn pip_lists_the_newest_first() {
        let said = "numpy (2.0.0)\nAvailable versions: 2.0.0, 1.26.4, 1.9\n  INSTALLED: 1.0\n";
        assert_eq!(listed_by_pip(said).unwrap(), ["1.9", "1.26.4", "2.0.0"]);
        assert!(listed_by_pip("nothing").is_none());
    }
}
