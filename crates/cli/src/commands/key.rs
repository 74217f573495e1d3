//! `silt key`: the passwords of a repository, its master key, and a sheet of paper that opens it without a password.

mod add;
mod key_file;
mod recovery;
mod rotate;

use crate::context::Context;
use crate::error::{CliError, Done};
use crate::kdf::KdfArgs;
use crate::key_hint;
use crate::password::{Password, PasswordSource, Whose};
use crate::render::{Table, local, rfc3339, visible};
use crate::repository::{label, open};
use clap::{Args, Subcommand};
use serde::Serialize;
use siltstone_store::KeyId;
use siltstone_store::keys::{Argon2Cost, KeyLabel};
use siltstone_store::repository::{KeySlotView, Repository};
use std::path::PathBuf;

/// Manage the passwords that open the repository
#[derive(Args, Debug)]
pub(crate) struct KeyArgs {
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(Subcommand, Debug)]
enum KeyCommand {
    /// List the keys
    List,
    /// Add a password
    Add(add::AddArgs),
    /// Remove a password by the id of its key
    Remove {
        /// Id, or its beginning
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Put a new password in place of the one given
    Passwd(NewKeyArgs),
    /// Make a new master key for all that is written from now on; the keys of others must be added again
    Rotate(rotate::RotateArgs),
    /// Print a recovery sheet: what opens the repository without a password
    Export(recovery::ExportArgs),
    /// Make a key from a recovery sheet
    Import(recovery::ImportArgs),
}

#[derive(Args, Debug)]
struct NewKeyArgs {
    /// File that holds the new password
    #[arg(long, value_name = "FILE")]
    new_password_file: Option<PathBuf>,
    /// Use a key file instead of a password: it is made if it is not there, readable by you alone
    ///
    /// A key file holds 256 random bits, which nobody guesses, so the repository opens without hashing a password,
    /// which takes 0.1 s and more. Give it as --password-file, and keep it as you keep a password.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["new_password_file", "kdf_memory", "kdf_passes"])]
    #[arg(conflicts_with_all = ["kdf_lanes", "kdf_time"])]
    key_file: Option<PathBuf>,
    /// Make the new password empty (insecure)
    #[arg(long, conflicts_with_all = ["new_password_file", "key_file"])]
    new_insecure_no_password: bool,
    /// Name of the host to record
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Name of the user to record
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    #[command(flatten)]
    kdf: KdfArgs,
}

impl NewKeyArgs {
    /// Everything a new key is made of; the password last, once the rest is known to be sound.
    fn ask(&self, context: &Context) -> Result<(Argon2Cost, Password, KeyLabel), CliError> {
        Ok((self.kdf.cost(context)?, self.password()?, label(self.host.as_deref(), self.user.as_deref())))
    }

    fn password(&self) -> Result<Password, CliError> {
        if let Some(path) = &self.key_file {
            return key_file::read_or_make(path);
        }
        let source = match &self.new_password_file {
            Some(path) => PasswordSource::File(path.clone()),
            None if self.new_insecure_no_password => PasswordSource::Empty,
            None => PasswordSource::Ask,
        };
        source.read_new(Whose::NewKey)
    }
}

#[derive(Serialize)]
struct KeyJson {
    current: bool,
    id: String,
    #[serde(rename = "userName")]
    user_name: String,
    #[serde(rename = "hostName")]
    host_name: String,
    created: String,
    /// Series that a write-only key adds backups to.
    #[serde(skip_serializing_if = "Option::is_none")]
    write_only: Option<String>,
    /// `null` if a key file opens it.
    kdf: Option<KdfJson>,
}

/// The parameters of Argon2id.
#[derive(Serialize)]
struct KdfJson {
    memory_bytes: u64,
    passes: u32,
    lanes: u32,
}

#[derive(Serialize)]
struct KeyMessage {
    message_type: &'static str,
    action: &'static str,
    id: String,
}

pub(crate) fn run(arguments: &KeyArgs, context: &Context) -> Result<Done, CliError> {
    match &arguments.command {
        KeyCommand::List => list(&*open(context)?, context),
        KeyCommand::Add(arguments) => add::run(arguments, context),
        KeyCommand::Passwd(new) => {
            let mut repository = open(context)?;
            let (cost, password, label) = new.ask(context)?;
            let id = repository.change_password(&password, &label, cost)?;
            key_hint::keep(id, &repository.storage().location());
            told(context, "changed", id, "saved new key as")
        }
        KeyCommand::Remove { id } => remove(&*open(context)?, id, context),
        KeyCommand::Rotate(arguments) => rotate::run(arguments, context),
        KeyCommand::Export(arguments) => recovery::export(arguments, context),
        KeyCommand::Import(arguments) => recovery::import(arguments, context),
    }
}

fn remove(repository: &Repository, wanted: &str, context: &Context) -> Result<Done, CliError> {
    let listed = repository.key_slots()?.0;
    let ids = listed.iter().map(|slot| slot.id).chain(repository.key_slots_unlisted()?);
    let id = find(&ids.collect::<Vec<_>>(), wanted)?;
    let series = listed.iter().find(|slot| slot.id == id).and_then(|slot| slot.write_only.as_deref());
    repository.remove_key(id)?;
    told(context, "removed", id, "removed key")?;
    if context.output.json {
        return Ok(Done::Whole);
    }
    if let Some(series) = series {
        context.output.report(format_args!(
            "It is gone, but who kept its file, or what was in it, can still add to the series \"{}\"\n\
             with write access to the place: take that access away, or the token of a server.",
            visible(series.as_bytes())
        ))?;
    } else {
        context.output.report(format_args!(
            "Its password opens nothing any more, even if its file is put back. Who had it may still know the master key:\n\
             'silt key rotate' keeps from them what is written from then on."
        ))?;
    }
    Ok(Done::Whole)
}

fn told(context: &Context, action: &'static str, id: KeyId, words: &str) -> Result<Done, CliError> {
    let message = KeyMessage { message_type: "summary", action, id: id.to_string() };
    context.output.json_or_report(&message, format_args!("{words} {}", short(id)))?;
    Ok(Done::Whole)
}

fn short(id: KeyId) -> String {
    id.to_string().chars().take(8).collect()
}

fn find(ids: &[KeyId], wanted: &str) -> Result<KeyId, CliError> {
    let mut found = ids.iter().filter(|id| !wanted.is_empty() && id.to_string().starts_with(wanted));
    match (found.next(), found.count()) {
        (Some(id), 0) => Ok(*id),
        (Some(_), more) => Err(CliError::AmbiguousKey { wanted: wanted.to_owned(), count: more + 1 }),
        (None, _) => Err(CliError::NoSuchKey { wanted: wanted.to_owned() }),
    }
}

fn list(repository: &Repository, context: &Context) -> Result<Done, CliError> {
    let (slots, damaged) = repository.key_slots()?;
    context.output.json_or_line(&slots.iter().map(KeyJson::from).collect::<Vec<_>>(), table(&slots))?;
    for id in repository.key_slots_unlisted()? {
        context.output.warn(format_args!(
            "key {} opens nothing: it was removed and put back, or never finished; 'silt key remove' clears it away",
            short(id)
        ));
    }
    for error in &damaged {
        context.output.warn(format_args!("error: {error}"));
    }
    match damaged.len() {
        0 => Ok(Done::Whole),
        findings => Err(CliError::Damaged { findings }),
    }
}

impl From<&KeySlotView> for KeyJson {
    fn from(slot: &KeySlotView) -> Self {
        Self {
            current: slot.current,
            id: slot.id.to_string(),
            user_name: slot.label.user.clone(),
            host_name: slot.label.host.clone(),
            created: rfc3339(slot.label.created),
            write_only: slot.write_only.clone(),
            kdf: slot.cost.map(|cost| KdfJson {
                memory_bytes: u64::from(cost.memory_kib) << 10,
                passes: cost.passes,
                lanes: cost.lanes,
            }),
        }
    }
}

fn table(slots: &[KeySlotView]) -> Table {
    let mut table = Table::new(vec![" ID", "User", "Host", "Created", "Cost", "Adds to"]);
    for slot in slots {
        let mark = if slot.current { '*' } else { ' ' };
        let text = |text: &str| vec![visible(text.as_bytes())];
        let (user, host) = (text(&slot.label.user), text(&slot.label.host));
        let (created, cost) = (
            vec![local(slot.label.created)],
            vec![slot.cost.map_or_else(|| "key file".to_owned(), |cost| cost.to_string())],
        );
        let adds_to = slot.write_only.as_deref().map_or_else(Vec::new, text);
        table.row(vec![vec![format!("{mark}{}", short(slot.id))], user, host, created, cost, adds_to]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_store::Time;

    fn slot(number: u8, current: bool) -> KeySlotView {
        let label = KeyLabel { created: Time::default(), host: "vm".into(), user: "ro\not".into() };
        KeySlotView { id: KeyId([number; 16]), label, cost: Some(Argon2Cost::DEFAULT), current, write_only: None }
    }

    #[test]
    fn the_key_in_use_is_marked() {
        let text = table(&[slot(0x8d, true), slot(0x11, false)]).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].starts_with("*8d8d8d8d  ro\\not  vm    19"), "{text}");
        assert!(lines[3].starts_with(" 11111111  "), "{text}");
    }

    #[test]
    fn a_key_is_found_by_the_beginning_of_its_id() {
        let slots = [0x8d, 0x81].map(|byte| KeyId([byte; 16]));
        assert_eq!(find(&slots, "81").expect("one"), KeyId([0x81; 16]));
        assert!(matches!(find(&slots, "8"), Err(CliError::AmbiguousKey { count: 2, .. })));
        assert!(matches!(find(&slots, "9"), Err(CliError::NoSuchKey { .. })));
        assert!(matches!(find(&slots, ""), Err(CliError::NoSuchKey { .. })));
    }
}
