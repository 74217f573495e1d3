//! Files by which Homebrew and the AUR build the program from the archive of its sources. `packaging/` has them with
//! `@VERSION@`, `@HOMEPAGE@`, `@SOURCE_URL@` and `@SHA256@` in place of what only a release knows.

use super::{Release, packaging};
use anyhow::{Context, Result};
use siltstone_testbed::program;
use std::fs;
use std::path::Path;
use std::process::Command;

pub(super) const RECIPES: [&str; 2] = ["homebrew/silt.rb", "aur/PKGBUILD"];

/// Fills them in, if it is known where the archive will lie.
pub(super) fn fill(release: &Release, sources: &Path) -> Result<()> {
    let (Some(homepage), Some(source)) = (&release.homepage, &release.source_url) else {
        eprintln!("no files for Homebrew and the AUR: they need --homepage and --source-url");
        return Ok(());
    };
    let sum = program::quietly(Command::new("sha256sum").arg(sources))?;
    let sum = sum.split_whitespace().next().context("sha256sum said nothing")?;
    for name in RECIPES {
        let text = fs::read_to_string(packaging(name))?;
        let text = text.replace("@VERSION@", &release.version).replace("@HOMEPAGE@", homepage);
        let file = release.folder.join(name);
        fs::create_dir_all(file.parent().context("a file lies in a folder")?)?;
        fs::write(file, text.replace("@SOURCE_URL@", source).replace("@SHA256@", sum))?;
    }
    Ok(())
}
