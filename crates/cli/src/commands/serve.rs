//! `silt serve`: serves the place of a repository to other machines, which reach it as `silt:https://...`.

mod token;
mod webdav;

use crate::context::Context;
use crate::error::{CliError, Done};
use crate::interrupt::{self, Working};
use crate::place;
use crate::repository::{open, place};
use clap::{Args, Subcommand};
use serde::Serialize;
use siltstone_serve::{ServeOptions, Server, TlsFiles, Tokens};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Time between two looks whether the program is asked to end.
const LOOK: Duration = Duration::from_millis(50);

/// Serve the repository's place to other machines, which reach it as silt:https://host:port/ with a token each
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    command: Option<ServeCommand>,
    #[command(flatten)]
    listen: ListenArgs,
}

#[derive(Subcommand, Debug)]
enum ServeCommand {
    /// Manage the tokens by which clients are known
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Print the id of a series, for the tokens that are to reach it; it takes the repository's password
    Series {
        /// Name of the series, which need not be there yet
        #[arg(value_name = "NAME")]
        name: String,
    },
    Webdav(webdav::WebdavArgs),
}

#[derive(Args, Debug)]
struct ListenArgs {
    /// Address to listen at; port 0 for any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8010")]
    listen: SocketAddr,
    /// File of the tokens; a change counts from the next request on
    #[arg(long, value_name = "FILE", required = true)]
    tokens: Option<PathBuf>,
    /// Certificate of the server and those that lead to its root, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Serve plain HTTP to other machines too, as behind a proxy that does TLS: tokens can be seen on the way
    #[arg(long)]
    allow_plain_http: bool,
}

/// `message_type` `serving`.
#[derive(Serialize)]
struct Serving<'a> {
    message_type: &'static str,
    address: &'a str,
    repository: &'a str,
}

/// `message_type` `series`.
#[derive(Serialize)]
struct SeriesMessage<'a> {
    message_type: &'static str,
    series: &'a str,
    id: &'a str,
}

pub(crate) fn run(arguments: &ServeArgs, context: &Context) -> Result<Done, CliError> {
    match &arguments.command {
        None => serve(&arguments.listen, context),
        Some(ServeCommand::Token(command)) => token::run(command, context),
        Some(ServeCommand::Series { name }) => tell_series(name, context),
        Some(ServeCommand::Webdav(arguments)) => webdav::run(arguments, context),
    }
}

/// Serves until a signal asks to end; then requests under way end first.
fn serve(arguments: &ListenArgs, context: &Context) -> Result<Done, CliError> {
    let place = place(&context.options)?;
    let storage = place::open(&place, context)?;
    let tokens = Tokens::open(arguments.tokens.clone().unwrap_or_default())?;
    let tls = arguments.tls_cert.clone().zip(arguments.tls_key.clone());
    let scheme = if tls.is_some() { "https" } else { "http" };
    let options = ServeOptions::new(arguments.listen)
        .with_tls(tls.map(|(certificate, key)| TlsFiles { certificate, key }))
        .with_allow_plain_http(arguments.allow_plain_http)
        .with_memory_bytes(context.options.memory.0 / 2);
    let _working = Working::begin(|| ());
    let server = Server::start(storage, tokens, &options)?;
    let (address, repository) = (format!("silt:{scheme}://{}/", server.address()), place.to_string());
    let message = Serving { message_type: "serving", address: &address, repository: &repository };
    context.output.json_or_report(&message, format_args!("serving {repository} at {address}"))?;
    while !interrupt::is_asked() {
        std::thread::sleep(LOOK);
    }
    server.stop();
    Ok(Done::Whole)
}

fn tell_series(name: &str, context: &Context) -> Result<Done, CliError> {
    let repository = open(context)?;
    repository.require_reading("naming a series")?;
    let id = repository.keys().series_id(name).to_string();
    context.output.json_or_line(&SeriesMessage { message_type: "series", series: name, id: &id }, &id)?;
    Ok(Done::Whole)
}
