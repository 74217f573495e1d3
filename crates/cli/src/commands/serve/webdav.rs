//! `silt serve webdav`: shows snapshots to programs that read WebDAV, and to browsers.

use super::{LOOK, Serving};
use crate::context::Context;
use crate::error::{CliError, Done};
use crate::interrupt::{self, Working};
use crate::patterns::FilterArgs;
use crate::repository::{Opened, open, place};
use clap::Args;
use siltstone_mount::webdav::{Credentials, WebdavOptions, WebdavServer};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Show snapshots over WebDAV, for reading, where 'silt mount' cannot: without FUSE, or from other systems
#[derive(Args, Debug)]
pub(crate) struct WebdavArgs {
    /// Address to listen at; port 0 for any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8020")]
    listen: SocketAddr,
    /// File with NAME:PASSWORD, which are asked for; without it everybody on this machine can read everything
    #[arg(long, value_name = "FILE")]
    auth_file: Option<PathBuf>,
    /// Serve other machines too, as behind a proxy that does TLS: what is sent can be seen on the way
    #[arg(long, requires = "auth_file")]
    allow_plain_http: bool,
    #[command(flatten)]
    filter: FilterArgs,
}

/// Serves until a signal asks to end; then requests under way end first.
pub(super) fn run(arguments: &WebdavArgs, context: &Context) -> Result<Done, CliError> {
    let credentials = arguments.auth_file.as_deref().map(credentials_in).transpose()?;
    // Threads of the server may read until the very end of the process.
    let repository: &'static Opened = Box::leak(Box::new(open(context)?));
    let output = context.output;
    let mut options = WebdavOptions::new(arguments.listen);
    options.filter = arguments.filter.filter();
    options.credentials = credentials;
    options.allow_plain_http = arguments.allow_plain_http;
    options.resources = context.resources_for(repository);
    options.tell = Arc::new(move |problem| output.error(problem));
    let _working = Working::begin(|| ());
    let server = WebdavServer::start(repository, options)?;
    let (address, repository_place) = (format!("http://{}/", server.address()), place(&context.options)?.to_string());
    let message = Serving { message_type: "serving", address: &address, repository: &repository_place };
    output.json_or_report(&message, format_args!("showing {repository_place} at {address}; Ctrl-C ends it"))?;
    while !interrupt::is_asked() {
        std::thread::sleep(LOOK);
    }
    server.stop();
    repository.tell_healed();
    Ok(Done::Whole)
}

/// Reads name and password.
fn credentials_in(file: &Path) -> Result<Credentials, CliError> {
    let failed = |reason: String| CliError::AuthFile { path: file.to_owned(), reason };
    let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    Credentials::new(text.trim_end_matches(['\r', '\n'])).ok_or_else(|| failed("it is not NAME:PASSWORD".to_owned()))
}
