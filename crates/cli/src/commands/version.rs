//! `silt version`.

use crate::context::Context;
use crate::error::{CliError, Done};
use clap::Args;
use serde::Serialize;
use std::env::consts::{ARCH, OS};

/// Print the version
#[derive(Args, Debug)]
pub(crate) struct VersionArgs {}

#[derive(Serialize)]
struct VersionJson {
    message_type: &'static str,
    version: &'static str,
    os: &'static str,
    arch: &'static str,
}

pub(crate) fn run(_: &VersionArgs, context: &Context) -> Result<Done, CliError> {
    let version = env!("CARGO_PKG_VERSION");
    let message = VersionJson { message_type: "version", version, os: OS, arch: ARCH };
    context.output.json_or_line(&message, format_args!("silt {version} on {OS}/{ARCH}"))?;
    Ok(Done::Whole)
}
