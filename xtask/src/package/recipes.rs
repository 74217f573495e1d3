//! Files by which Homebrew and the AUR build the program from the archive of its sources. `packaging/` has them with
//! `@VERSION@`, `@HOMEPAGE@`, `@SOURCE_URL@` and `@SHA256@` in place of what only a release knows.

use super::{Release, packaging};
use anyhow::{Context, Result};
use siltstone_testbed::program;
use std::fs;
use std::path::Path;
use std::process::Command;

const RECIPES: [&str; 2] = ["homebrew/silt.rb", "aur/PKGBUILD"];
/// Placeholders for what only a release knows.
const PLACES: [&str; 4] = ["@VERSION@", "@HOMEPAGE@", "@SOURCE_URL@", "@SHA256@"];

/// Fills them in, if it is known where the archive will lie.
pub(super) fn fill(release: &Release, sources: &Path) -> Result<()> {
    let (Some(homepage), Some(source)) = (&release.homepage, &release.source_url) else {
        eprintln!("no files for Homebrew and the AUR: they need --homepage and --source-url");
        return Ok(());
    };
    let sum = program::quietly(Command::new("sha256sum").arg(sources))?;
    let sum = sum.split_whitespace().next().context("sha256sum said nothing")?;
    let known = [&release.version, homepage, source, sum];
    for name in RECIPES {
        let file = release.folder.join(name);
        fs::create_dir_all(file.parent().context("a file lies in a folder")?)?;
        fs::write(file, filled(&fs::read_to_string(packaging(name))?, known))?;
    }
    Ok(())
}

/// Puts in what is known, in the order of [`PLACES`].
fn filled(recipe: &str, known: [&str; 4]) -> String {
    PLACES.iter().zip(known).fold(recipe.to_owned(), |text, (place, known)| text.replace(place, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_are_filled_in_everywhere_and_shells_read_them() {
        for name in RECIPES {
            let recipe = fs::read_to_string(packaging(name)).unwrap();
            for place in PLACES {
                assert!(recipe.contains(place), "{name} has no {place}");
            }
            let text = filled(&recipe, ["0.1.0", "https://example.com/", "https://example.com/sources.tar.gz", "0a1b"]);
            assert!(!PLACES.iter().any(|place| text.contains(place)), "{text}");
        }
        program::quietly(Command::new("bash").arg("-n").arg(packaging("aur/PKGBUILD"))).unwrap();
    }
}
