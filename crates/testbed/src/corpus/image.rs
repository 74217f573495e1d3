//! The disk of a machine, again and again as its software changes: one image of a root file system (ext4), mounted and
//! written into by the package manager, copied after each step. So what a step does not touch stays where it is, and
//! what the file system does beside it (its journal, tables of inodes, times of access) is in it too. Blocks that are
//! freed become holes, as with `discard`.
//!
//! Needs root and loop devices. Identifiers of the file system are fixed, its contents depend on the day they are
//! fetched.

use super::stop::go_on;
use super::{Amount, Corpora, Corpus, once, releases, system};
use crate::install::Missing;
use crate::program;
use crate::tree;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Arguments of `apt-get` before each copy, after the base system; the sources of security updates come with the first
/// upgrade.
const STEPS: [&[&str]; 21] = [
    &["install", "nano", "less"],
    &["install", "openssl", "ca-certificates"],
    &["install", "curl"],
    &["install", "rsync"],
    &["install", "sqlite3"],
    &["install", "python3-minimal"],
    &["install", "python3"],
    &["install", "vim-tiny"],
    &["install", "openssh-client"],
    &["install", "iproute2"],
    &["install", "--only-upgrade", "libc6", "libc-bin", "openssl"],
    &["upgrade"],
    &["install", "procps", "psmisc"],
    &["install", "tmux"],
    &["install", "redis-server"],
    &["install", "nginx-light"],
    &["install", "gnupg"],
    &["install", "man-db"],
    &["purge", "vim-tiny", "vim-common"],
    &["install", "jq"],
    &["install", "lua5.4"],
];
/// Room for all of it.
const IMAGE_BYTES: u64 = 320 << 20;
/// Room for a part of a source tree.
const LITTLE_IMAGE_BYTES: u64 = 48 << 20;

/// Lists of packages, and packages that were fetched, are kept outside of the image.
const OUTSIDE: [&str; 2] = ["var/lib/apt/lists", "var/cache/apt"];
const UPDATES: &str = "deb http://deb.debian.org/debian bookworm-updates main\n\
                       deb http://deb.debian.org/debian-security bookworm-security main\n";

/// Versions there can be.
pub(super) const VERSIONS_MAX: usize = 1 + STEPS.len();
const NEEDS: &str = "an image can be made by root, on a Debian machine with loop devices that reaches its mirror";

/// The images, made if they are not there yet.
pub(super) fn history(corpora: &Corpora, amount: Amount) -> Result<Corpus> {
    let (name, description) = match amount {
        Amount::Little => ("image-little", "image of a file system into which one release after another is copied"),
        Amount::Memory | Amount::Full => {
            ("image", "image of the root file system of Debian 12 while packages are installed, upgraded and removed")
        }
    };
    let kept = corpora.folder.join(name);
    once(&kept, |partial| match amount {
        Amount::Little => copy_releases(partial, &releases::history(corpora, amount)?).context(NEEDS),
        Amount::Memory | Amount::Full => make(partial, VERSIONS_MAX, corpora.missing),
    })?;
    let versions = tree::entries(&kept)?;
    Ok(Corpus { name: "system".into(), description: format!("{description}, {} versions", versions.len()), versions })
}

fn copy_releases(folder: &Path, releases: &Corpus) -> Result<()> {
    let image = Image::create(folder, LITTLE_IMAGE_BYTES)?;
    for (number, release) in releases.versions.iter().enumerate() {
        let mounted = image.mount()?;
        tree::make_equal(&mounted.root.join("source"), release)?;
        mounted.finish()?;
        image.copy_to(&folder.join(format!("{number:02}.img")))?;
    }
    Ok(())
}

/// The first so many images.
pub(super) fn make(folder: &Path, count: usize, missing: Missing) -> Result<()> {
    install_packages(folder, &STEPS[..count.saturating_sub(1)], missing).context(NEEDS)
}

fn install_packages(folder: &Path, steps: &[&[&str]], missing: Missing) -> Result<()> {
    let image = Image::create(folder, IMAGE_BYTES)?;
    eprintln!("making the image 0 of {}: the base", steps.len());
    let mounted = image.mount()?;
    system::bootstrap(&mounted.root, missing)?;
    mounted.finish()?;
    image.copy_to(&folder.join("00-base.img"))?;
    let mut is_updated = false;
    for (number, step) in (1..).zip(steps.iter().copied()) {
        go_on()?;
        eprintln!("making the image {number} of {}: {}", steps.len(), step.join(" "));
        let mut mounted = image.mount()?;
        let root = mounted.root.clone();
        for (name, place) in ["lists", "cache"].into_iter().zip(OUTSIDE) {
            mounted.bind(name, place)?;
        }
        let is_upgrade = step.contains(&"--only-upgrade");
        if is_upgrade {
            fs::write(root.join("etc/apt/sources.list.d/updates.list"), UPDATES)?;
        }
        if !is_updated || is_upgrade {
            system::apt_get(&root, &["update"])?;
            is_updated = true;
        }
        system::apt_get(&root, &[&["--yes", "--no-install-recommends"], step].concat())?;
        mounted.finish()?;
        image.copy_to(&folder.join(format!("{number:02}-{}.img", step[step.len() - 1])))?;
    }
    Ok(())
}

/// An image under construction, gone when dropped.
struct Image {
    folder: TempDir,
}

impl Image {
    /// An empty file system of so many bytes, near `beside`.
    fn create(beside: &Path, image_bytes: u64) -> Result<Self> {
        const UUID: &str = "5b1f3c1e-6d0a-4c55-9a3e-51175704e001";
        let folder = tempfile::Builder::new().prefix(".image").tempdir_in(beside.parent().unwrap_or(Path::new(".")))?;
        let image = Self { folder };
        fs::create_dir(image.mount_point())?;
        File::create(image.file())?.set_len(image_bytes)?;
        let settings = format!("hash_seed={UUID},lazy_itable_init=0,lazy_journal_init=0,root_owner=0:0");
        let mut make = Command::new("mke2fs");
        make.args(["-q", "-t", "ext4", "-m", "0", "-U", UUID, "-E", &settings]).arg(image.file());
        program::quietly(&mut make)?;
        Ok(image)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn mount_point(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn mount(&self) -> Result<Mounted<'_>> {
        let root = self.mount_point();
        program::quietly(Command::new("mount").args(["-o", "loop,discard"]).arg(self.file()).arg(&root))?;
        Ok(Mounted { image: self, root: root.clone(), places: vec![root] })
    }

    fn copy_to(&self, file: &Path) -> Result<()> {
        program::quietly(Command::new("cp").arg("--sparse=always").arg(self.file()).arg(file)).map(drop)
    }
}

/// An image that is mounted until dropped.
struct Mounted<'i> {
    image: &'i Image,
    root: PathBuf,
    /// Mount points, in the order of mounting.
    places: Vec<PathBuf>,
}

impl Mounted<'_> {
    /// Lets a folder beside the image stand at `place`.
    fn bind(&mut self, name: &str, place: &str) -> Result<()> {
        let outside = self.image.folder.path().join(name);
        fs::create_dir_all(&outside)?;
        let place = self.root.join(place);
        program::quietly(Command::new("mount").arg("--bind").arg(outside).arg(&place))?;
        self.places.push(place);
        Ok(())
    }

    /// All of it is in the image then.
    fn finish(mut self) -> Result<()> {
        self.unmount()
    }

    fn unmount(&mut self) -> Result<()> {
        while let Some(place) = self.places.last() {
            program::quietly(Command::new("umount").arg(place))?;
            self.places.pop();
        }
        Ok(())
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.unmount() {
            eprintln!("{} stays mounted: {error:#}", self.root.display());
        }
    }
}
