//! `silt key export` and `silt key import`: a sheet of paper that opens the repository without a password.

use super::NewKeyArgs;
use crate::context::Context;
use crate::environment;
use crate::error::{CliError, Done};
use crate::key_hint;
use crate::render::local;
use crate::repository::{open, storage};
use clap::Args;
use serde::Serialize;
use siltstone_store::RecoveryKey;
use siltstone_store::repository::{Repository, check_recovery};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes of a sheet at most.
const SHEET_BYTES_MAX: u64 = 64 << 10;
/// Beginning of the lines of a sheet that hold the key.
const KEY_LINE: &str = "key";
const GROUPS_IN_LINE: usize = 4;

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// Write the sheet to this new file, readable by you alone, rather than to standard output, which - means too
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// File that holds the sheet, or its lines that begin with "key"; - for standard input
    #[arg(value_name = "FILE")]
    sheet: PathBuf,
    #[command(flatten)]
    new: NewKeyArgs,
}

#[derive(Serialize)]
struct SheetJson {
    message_type: &'static str,
    repository: String,
    epoch: u32,
    groups: Vec<String>,
}

pub(super) fn export(arguments: &ExportArgs, context: &Context) -> Result<Done, CliError> {
    let repository = open(context)?;
    let key = repository.recovery_key()?;
    match arguments.output.as_deref().filter(|path| *path != Path::new("-")) {
        Some(path) => {
            let failed = |source| CliError::OutputFile { path: path.to_owned(), source };
            let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            let mut file = created.map_err(failed)?;
            file.write_all(sheet(&repository, &key).as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
            context.output.report(format_args!("wrote the recovery sheet to {}", path.display()))?;
        }
        None if context.output.json => context.output.json(&SheetJson {
            message_type: "recovery_key",
            repository: key.repository.to_string(),
            epoch: key.epoch.0,
            groups: key.groups(),
        })?,
        None => context.output.line(sheet(&repository, &key))?,
    }
    Ok(Done::Whole)
}

fn sheet(repository: &Repository, key: &RecoveryKey) -> String {
    let lines: Vec<String> = key
        .groups()
        .chunks(GROUPS_IN_LINE)
        .zip(1..)
        .map(|(groups, number)| format!("{KEY_LINE} {number}   {}", groups.join("  ")))
        .collect();
    format!(
        "Siltstone recovery sheet\n\n\
         Repository   {}\n\
         Place        {}\n\
         Master key   number {}\n\
         Printed      {}\n\n\
         {}\n\n\
         Whoever has this sheet can read and change all of the repository, without a password. Keep it as you keep a key.\n\
         If no password is known any more: type the lines that begin with \"{KEY_LINE}\" into a file (small letters will do) and run\n\n    \
         silt -r REPOSITORY key import FILE\n\n\
         It makes a key with a password of your choice. After 'silt key rotate' this sheet opens nothing: print another.\n",
        key.repository,
        repository.storage().location(),
        key.epoch.0,
        local(environment::now()),
        lines.join("\n"),
    )
}

pub(super) fn import(arguments: &ImportArgs, context: &Context) -> Result<Done, CliError> {
    let disk = storage(context)?;
    let key: RecoveryKey = key_text(&read(&arguments.sheet)?).parse()?;
    if !check_recovery(disk.as_ref(), &key)? {
        let (repository, number) = (key.repository.to_string(), key.epoch.0);
        return Err(CliError::ForeignSheet { repository, number, location: disk.location() });
    }
    let (cost, password, label) = arguments.new.ask(context)?;
    let repository = Repository::recover(disk, &key, &password, &label, cost)?;
    key_hint::keep(repository.key_in_use(), &repository.storage().location());
    super::told(context, "imported", repository.key_in_use(), "saved new key")
}

fn read(path: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(SHEET_BYTES_MAX).read_to_string(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(SHEET_BYTES_MAX).read_to_string(&mut text))
    };
    read.map_err(|source| CliError::Sheet { path: path.to_owned(), source })?;
    Ok(text)
}

/// The groups of the lines of the key, without what begins them; all of a text that has no such lines.
fn key_text(sheet: &str) -> String {
    let words = |line: &str| -> Option<String> {
        let mut words = line.split_whitespace();
        let is_key = words.next()?.eq_ignore_ascii_case(KEY_LINE) && words.next()?.parse::<u8>().is_ok();
        is_key.then(|| words.collect::<Vec<_>>().join(" "))
    };
    let lines: Vec<String> = sheet.lines().filter_map(words).collect();
    if lines.is_empty() { sheet.to_owned() } else { lines.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_found_within_a_sheet_or_alone() {
        assert_eq!(key_text("Title\n\nkey 1   AAAAA  BBBBB\n KEY 2 CCCCC\nkeys are kept\n"), "AAAAA BBBBB CCCCC");
        assert_eq!(key_text("AAAAA BBBBB"), "AAAAA BBBBB");
    }
}
