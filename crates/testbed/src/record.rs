//! Results kept under `bench/record`, each with the commit and the machine that explain it.

use crate::machine;
use crate::workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Keeps a page `bench/record/<name>.md` of what `cargo xtask <task>` found. `notes` tell how it was run, a line each;
/// `work` is the folder where.
pub fn keep(task: &str, name: &str, tables: &str, notes: &[String], work: &Path) -> Result<()> {
    let mut lines = vec![format!("commit: {}", workspace::commit())];
    lines.extend(machine::lines(work));
    lines.extend_from_slice(notes);
    let list: Vec<String> = lines.iter().map(|line| format!("- {line}")).collect();
    let text = format!("# cargo xtask {task}, {}\n\n{}\n\n{tables}", machine::today(), list.join("\n"));
    let folder = workspace::root().join("bench").join("record");
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    fs::write(folder.join(format!("{name}.md")), text)?;
    println!("recorded as bench/record/{name}.md");
    Ok(())
}
