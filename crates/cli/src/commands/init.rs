//! `silt init`: makes a repository.

use crate::context::Context;
use crate::error::{CliError, Done};
use crate::kdf::KdfArgs;
use crate::parse::{Parity, Size};
use crate::password::{PasswordSource, Whose};
use crate::place::{connect, connect_served, probed_anew, reach, traced};
use crate::render::visible;
use crate::repository::{label, place, with_prefetch};
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;
use siltstone_engine::backup;
use siltstone_remote::{ObjectStorage, Place, create_server};
use siltstone_store::StoreError;
use siltstone_store::config::ChunkerSettings;
use siltstone_store::container::CONTAINER_BYTES_TARGETS;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Disk, Listing, Storage};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Make a new repository
#[derive(Args, Debug)]
pub(crate) struct InitArgs {
    /// Place of the new repository; the same as -r
    #[arg(value_name = "REPOSITORY", conflicts_with = "repo")]
    place: Option<PathBuf>,

    /// How files are cut into chunks, for as long as the repository lives. `aes16` is slower, and gives nothing away to
    /// someone who sees the lengths of chunks beside files he knows
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(backup::chunker_names()))]
    #[arg(default_value_t = backup::default_chunker().name)]
    chunker: String,

    /// Average size of the chunks that files are cut into, from 4K to 1M, for as long as the repository lives: each has
    /// at least half of it, and at most four times it. Smaller ones find more again where little changes in many
    /// places; larger ones make backups faster and the index smaller
    #[arg(long, value_name = "SIZE", default_value = "16K", value_parser = parse_chunk_size)]
    chunk_size: u64,

    /// Parity of files' data, or `off`, from which flipped bits and lost pages of a disk are healed; catalogs have it
    /// in any case. `silt maintain --parity` changes it
    #[arg(long, value_name = "SHARE", default_value = "2%")]
    parity: Parity,

    /// Size that objects of files' data are filled to, from 16M to 128M, for as long as the repository lives. Larger
    /// ones are fewer, which buckets charge for; they take more memory (three times what they have beyond 16M), and
    /// more is rewritten when some of their content is forgotten
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = parse_container_size)]
    container_size: u64,

    #[command(flatten)]
    kdf: KdfArgs,
}

/// An average that a repository can have.
fn parse_chunk_size(text: &str) -> Result<u64, String> {
    let Size(bytes) = text.parse()?;
    let sized = backup::chunker_sized(&backup::default_chunker().name, bytes);
    sized.map(|_| bytes).map_err(|error| error.to_string())
}

/// A size that containers can have.
fn parse_container_size(text: &str) -> Result<u64, String> {
    let Size(bytes) = text.parse()?;
    if CONTAINER_BYTES_TARGETS.contains(&bytes) {
        Ok(bytes)
    } else {
        Err("containers have from 16M to 128M".to_owned())
    }
}

#[derive(Serialize)]
struct Initialized {
    message_type: &'static str,
    id: String,
    repository: String,
}

pub(crate) fn run(arguments: &InitArgs, context: &Context) -> Result<Done, CliError> {
    let place = match &arguments.place {
        Some(given) => Place::parse(given.as_os_str())?,
        None => place(&context.options)?,
    };
    let chunker = backup::chunker_sized(&arguments.chunker, arguments.chunk_size)?;
    let repository = make(&place, chunker, &arguments.kdf, context)?;
    repository.amend(|config| {
        config.parity.data_percent = arguments.parity.0;
        config.set_container_bytes(arguments.container_size)
    })?;
    let (id, place) = (repository.id().to_string(), place.to_string());
    if context.output.json {
        context.output.json(&Initialized { message_type: "initialized", id, repository: place })?;
        return Ok(Done::Whole);
    }
    context.output.report(format_args!(
        "created silt repository {} at {}\n\n\
         Please note that knowledge of your password is required to access the repository.\n\
         Losing your password means that your data is irrecoverably lost.",
        id.get(..10).unwrap_or(&id),
        visible(place.as_bytes())
    ))?;
    Ok(Done::Whole)
}

/// The password is asked for only once it is known that there can be a repository.
fn make(place: &Place, chunker: ChunkerSettings, kdf: &KdfArgs, context: &Context) -> Result<Repository, CliError> {
    let storage = match place {
        Place::Folder(path) => vacant_folder(path)?,
        Place::Bucket(bucket) => vacant_remote(probed_anew(connect(bucket, context)?, context))?,
        Place::Server(server) => vacant_remote(probed_anew(reach(server, context, create_server)?, context))?,
        Place::Served(address) => vacant_remote(connect_served(address, context)?)?,
    };
    let password = PasswordSource::choose(&context.options)?.read_new(Whose::NewRepository)?;
    let storage = with_prefetch(storage, context);
    Ok(Repository::init(storage, &password, &label(None, None), kdf.cost(context)?, chunker)?)
}

fn vacant_folder(path: &Path) -> Result<Arc<dyn Storage>, CliError> {
    let disk = Disk::create(path)?;
    refuse_repository(&disk)?;
    // Objects without a config are what an interrupted init left; they are in nobody's way.
    if disk.list(Listing::All)?.is_empty() && !disk.is_empty()? {
        return Err(CliError::FolderNotEmpty { path: path.to_owned() });
    }
    Ok(traced(disk))
}

/// A place at a distance may hold foreign objects: nothing looks at them. It must keep commits apart.
fn vacant_remote(storage: ObjectStorage) -> Result<Arc<dyn Storage>, CliError> {
    refuse_repository(&storage)?;
    storage.probe()?;
    Ok(traced(storage))
}

fn refuse_repository(storage: &dyn Storage) -> Result<(), CliError> {
    let listed = storage.list_both([Listing::Configs, Listing::ConfigCopies])?;
    if listed.iter().all(Vec::is_empty) {
        return Ok(());
    }
    Err(StoreError::AlreadyARepository { location: storage.location() }.into())
}
