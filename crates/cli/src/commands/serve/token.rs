//! `silt serve token`: the tokens by which a server knows its clients.

use crate::context::Context;
use crate::error::{CliError, Done};
use crate::render::{Table, visible};
use clap::{Args, Subcommand};
use serde::Serialize;
use siltstone_serve::{Right, SeriesScope, TokenEntry, TokenFile};
use std::collections::BTreeSet;
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(super) enum TokenCommand {
    /// Make a token and print it; it is shown this once
    Add(AddArgs),
    /// List the tokens by name
    List(FileArgs),
    /// Remove a token: it stops working at once
    Remove {
        /// Name of the token
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        file: FileArgs,
    },
}

#[derive(Args, Debug)]
pub(super) struct FileArgs {
    /// File of the tokens
    #[arg(long, value_name = "FILE")]
    tokens: PathBuf,
}

#[derive(Args, Debug)]
pub(super) struct AddArgs {
    /// Name of the token, such as that of the client; logs show it
    #[arg(value_name = "NAME")]
    name: String,
    /// Series that it reaches: `all`, or ids separated by commas, as 'silt serve series' prints them
    #[arg(long, value_name = "IDS", default_value = "all", value_delimiter = ',')]
    series: Vec<String>,
    /// Rights, separated by commas, of put, list, read, forget, admin, metrics
    #[arg(long, value_name = "RIGHTS", default_value = "put,list,read", value_delimiter = ',')]
    rights: Vec<Right>,
    #[command(flatten)]
    file: FileArgs,
}

/// `message_type` `token`.
#[derive(Serialize)]
struct TokenMessage<'a> {
    message_type: &'static str,
    action: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
}

/// A token in a list.
#[derive(Serialize)]
struct TokenJson {
    name: String,
    series: SeriesScope,
    rights: BTreeSet<Right>,
}

pub(super) fn run(command: &TokenCommand, context: &Context) -> Result<Done, CliError> {
    match command {
        TokenCommand::Add(arguments) => add(arguments, context),
        TokenCommand::List(file) => list(TokenFile::read(&file.tokens)?.tokens, context),
        TokenCommand::Remove { name, file } => remove(name, file, context),
    }
}

fn add(arguments: &AddArgs, context: &Context) -> Result<Done, CliError> {
    let series = SeriesScope::try_from(arguments.series.clone()).map_err(CliError::TokenSeries)?;
    let mut file = TokenFile::read_or_new(&arguments.file.tokens)?;
    let token = file.add(&arguments.name, series, arguments.rights.iter().copied().collect())?;
    file.write(&arguments.file.tokens)?;
    let message = TokenMessage { message_type: "token", action: "added", name: &arguments.name, token: Some(&token) };
    context.output.json_or_line(&message, &token)?;
    Ok(Done::Whole)
}

fn remove(name: &str, file: &FileArgs, context: &Context) -> Result<Done, CliError> {
    let mut tokens = TokenFile::read(&file.tokens)?;
    tokens.remove(name)?;
    tokens.write(&file.tokens)?;
    let message = TokenMessage { message_type: "token", action: "removed", name, token: None };
    context.output.json_or_report(&message, format_args!("removed token {name}"))?;
    Ok(Done::Whole)
}

fn list(tokens: Vec<TokenEntry>, context: &Context) -> Result<Done, CliError> {
    if context.output.json {
        let json = |TokenEntry { name, series, rights, .. }| TokenJson { name, series, rights };
        context.output.json(&tokens.into_iter().map(json).collect::<Vec<_>>())?;
        return Ok(Done::Whole);
    }
    let mut table = Table::new(vec!["Name", "Rights", "Series"]);
    for TokenEntry { name, series, rights, .. } in tokens {
        let rights: Vec<String> = rights.iter().map(ToString::to_string).collect();
        table.row(vec![vec![visible(name.as_bytes())], vec![rights.join(",")], Vec::from(series)]);
    }
    context.output.line(table)?;
    Ok(Done::Whole)
}
