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
    /// Bytes of containers and of parts of manifests under older master keys.
    older_key_bytes: u64,
}

pub(super) fn run(arguments: &RotateArgs, context: &Context) -> Result<Done, CliError> {
    let cost = arguments.kdf.cost(context)?;
    let (mut repository, password) = open_and_tell(context)?;
    let rotation = repository.rotate(&password, &label(None, None), cost)?;
    key_hint::keep(rotation.slot, &repository.storage().location());
    tell(&rotation, repository.older_epoch_bytes()?, context)?;
    Ok(Done::Whole)
}

fn tell(rotation: &Rotation, older_key_bytes: u64, context: &Context) -> Result<(), CliError> {
    let Rotation { slot, epoch, invalidated, .. } = rotation;
    if context.output.json {
        return context.output.json(&RotatedJson {
            message_type: "summary",
            action: "rotated",
            id: slot.to_string(),
            epoch: epoch.0,
            invalidated: invalidated.iter().map(ToString::to_string).collect(),
            older_key_bytes,
        });
    }
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
    output.report(format_args!(
        "What is written from now on is sealed under the new master key. Who knew the old one can still read what was\n\
         there before ({}) until it is written anew, and a recovery sheet printed before opens nothing: print another.",
        size(older_key_bytes)
    ))
}
