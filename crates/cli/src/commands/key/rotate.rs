//! `silt key rotate`: a new master key.

use crate::context::Context;
use crate::error::{CliError, Done};
use crate::kdf::KdfArgs;
use crate::key_hint;
use crate::render::size;
use crate::repository::{label, open_and_tell};
use clap::Args;
use serde::Serialize;
use siltstone_store::repository::Rotation;

#[derive(Args, Debug)]
pub(crate) struct RotateArgs {
    #[command(flatten)]
    kdf: KdfArgs,
}

#[derive(Serialize)]
struct RotatedJson {
    message_type: &'static str,
    action: &'static str,
    id: String,
    epoch: u32,
    /// Keys that no longer count.
    invalidated: Vec<String>,
    /// Bytes of containers and of parts of manifests under older master keys; missing if they cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    older_key_bytes: Option<u64>,
}

pub(super) fn run(arguments: &RotateArgs, context: &Context) -> Result<Done, CliError> {
    let cost = arguments.kdf.cost(context)?;
    let (mut repository, password) = open_and_tell(context)?;
    let rotation = repository.rotate(&password, &label(None, None), cost)?;
    key_hint::keep(rotation.slot, &repository.storage().location());
    // It stands: what it left behind is looked at once that is told.
    if !context.output.json {
        tell(&rotation, context)?;
    }
    let older_key_bytes = repository.older_epoch_bytes();
    let bytes = older_key_bytes.as_ref().ok().copied();
    if context.output.json {
        context.output.json(&json(&rotation, bytes))?;
    } else {
        tell_older(bytes, context)?;
    }
    if let Some(left) = &rotation.left {
        context.output.error(format_args!(
            "files of keys that do not count any more are left ({left}): 'silt key list' names them, and \
             'silt key remove' clears them away; until then a write-only key among them can add to its series"
        ));
    }
    older_key_bytes?;
    Ok(Done::Whole)
}

fn json(rotation: &Rotation, older_key_bytes: Option<u64>) -> RotatedJson {
    RotatedJson {
        message_type: "summary",
        action: "rotated",
        id: rotation.slot.to_string(),
        epoch: rotation.epoch.0,
        invalidated: rotation.invalidated.iter().map(ToString::to_string).collect(),
        older_key_bytes,
    }
}

fn tell(rotation: &Rotation, context: &Context) -> Result<(), CliError> {
    let Rotation { slot, epoch, invalidated, .. } = rotation;
    let output = &context.output;
    output.report(format_args!(
        "the master key is now number {}; your password opens key {}",
        epoch.0,
        super::short(*slot)
    ))?;
    if !invalidated.is_empty() {
        let ids: Vec<String> = invalidated.iter().map(|id| super::short(*id)).collect();
        output.report(format_args!(
            "{} other keys open nothing any more ({}): their holders need new ones, by 'silt key add'",
            ids.len(),
            ids.join(", ")
        ))?;
    }
    Ok(())
}

/// Tells what the change does not do: it keeps nothing from those who knew the key before.
fn tell_older(older_key_bytes: Option<u64>, context: &Context) -> Result<(), CliError> {
    let told = older_key_bytes.map_or_else(String::new, |bytes| format!(" ({})", size(bytes)));
    context.output.report(format_args!(
        "What is written from now on is sealed under the new master key. Who knew the old one can still read what was\n\
         there before{told} until it is written anew, and a recovery sheet printed before opens nothing: print another."
    ))
}
