//! `silt init`: makes a repository.

use super::Context;
use crate::error::{CliError, Done};
use crate::password::PasswordSource;
use crate::repository::{folder, label, place};
use clap::Args;
use serde::Serialize;
use siltstone_store::keys::Argon2Cost;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Disk, Storage};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Make a new repository
#[derive(Args, Debug)]
pub(crate) struct InitArgs {
    /// Folder of the new repository; the same as -r
    #[arg(value_name = "REPOSITORY", conflicts_with = "repo")]
    place: Option<PathBuf>,
}

#[derive(Serialize)]
struct Initialized {
    message_type: &'static str,
    id: String,
    repository: String,
}

pub(super) fn run(arguments: &InitArgs, context: &Context) -> Result<Done, CliError> {
    let path = match &arguments.place {
        Some(given) => folder(given)?,
        None => place(&context.options)?,
    };
    let is_new = make_folder(&path)?;
    let made = make(&path, context);
    if made.is_err() && is_new {
        // Only an empty folder goes this way: what was begun in it stays.
        let _ = std::fs::remove_dir(&path);
    }
    let repository = made?;
    let (id, place) = (repository.id().to_string(), path.display().to_string());
    if context.output.json {
        context.output.json(&Initialized { message_type: "initialized", id, repository: place })?;
        return Ok(Done::Whole);
    }
    context.output.report(format_args!(
        "created silt repository {} at {place}\n\n\
         Please note that knowledge of your password is required to access the repository.\n\
         Losing your password means that your data is irrecoverably lost.",
        id.get(..10).unwrap_or(&id)
    ))?;
    Ok(Done::Whole)
}

/// Makes sure that there is a folder; whether it had to be made.
fn make_folder(path: &Path) -> Result<bool, CliError> {
    let failed = |source| CliError::RepositoryFolder { path: path.to_owned(), source };
    let is_new = !path.exists();
    std::fs::create_dir_all(path).map_err(failed)?;
    Ok(is_new)
}

fn make(path: &Path, context: &Context) -> Result<Repository, CliError> {
    let disk = Disk::create(path)?;
    let password = PasswordSource::choose(&context.options)?.read_new("enter password for new repository: ")?;
    let storage: Arc<dyn Storage> = Arc::new(disk);
    let chunker = siltstone_engine::backup::default_chunker();
    Ok(Repository::init(storage, &password, label(None, None), Argon2Cost::DEFAULT, chunker)?)
}
