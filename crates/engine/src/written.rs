//! Reading back what a run wrote before it is committed: of each container every seal must hold, so that every byte is
//! the one sealed.
//!
//! It finds what goes wrong between the sealing and the storage's answer: memory, a controller, a file system, a
//! network. Where the storage can, the bytes come from the disk and not from the system's memory
//! ([`Storage::drop_cached`]); no program can tell what a disk answers from its own.
//!
//! Cost: reading and unsealing what was written, by two threads. Over a network that is as many bytes again, and an
//! object store already holds what it receives against a checksum: there it is done only where it is asked for
//! ([`VerifyWritten`]).

use crate::EngineError;
use crate::parallel::{Pool, Ticket};
use siltstone_store::container::{ContainerReader, ContainerRecord};
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Latency, Storage};
use siltstone_store::{SeriesId, StoreError};

/// Containers read at a time.
const READERS: usize = 2;

/// The choice whether to read back what was written before it is committed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum VerifyWritten {
    /// Read it back from a disk of this machine; over a network rely on the checksum that the place verifies.
    #[default]
    Nearby,
    /// Read it back from wherever it is.
    Always,
    /// Never read it back.
    Never,
}

impl VerifyWritten {
    fn applies_to(self, storage: &dyn Storage) -> bool {
        match self {
            Self::Nearby => storage.capabilities().latency == Latency::Disk,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// Reads these containers of a series back, which were put by this process, as far as `verify` asks for it.
///
/// # Errors
/// [`StoreError::WrittenWrong`] of the first container that differs; what reading gives.
pub(crate) fn verify_written<'r>(
    verify: VerifyWritten,
    repository: &Repository,
    series: SeriesId,
    containers: impl IntoIterator<Item = &'r ContainerRecord>,
) -> Result<(), EngineError> {
    let mut containers = containers.into_iter().peekable();
    if containers.peek().is_none() || !verify.applies_to(repository.storage()) {
        return Ok(());
    }
    repository.storage().barrier().map_err(StoreError::from)?;
    std::thread::scope(|scope| {
        let pool = Pool::start(scope, "verify", READERS, READERS, || Ok(()))?;
        let verify = |record: &ContainerRecord| {
            let record = record.clone();
            pool.submit(move |()| verify_one(repository, series, &record))
        };
        let tickets: Vec<_> = containers.map(verify).collect();
        let mut results = tickets.into_iter().map(Ticket::wait);
        results.try_for_each(|result| Ok(result??))
    })
}

fn verify_one(repository: &Repository, series: SeriesId, record: &ContainerRecord) -> Result<(), StoreError> {
    let name = record.object_name(series);
    repository.storage().drop_cached(&name);
    let object = repository.storage().read(&name, name.bytes_max())?;
    match seals_hold(repository, series, record, &object) {
        Err(error) if error.is_damage() => Err(StoreError::WrittenWrong { object: name.to_string() }),
        other => other,
    }
}

/// Opens every piece of a container. All its bytes are sealed, or bound to what is.
fn seals_hold(
    repository: &Repository,
    series: SeriesId,
    record: &ContainerRecord,
    object: &[u8],
) -> Result<(), StoreError> {
    let reader = ContainerReader::open_in(repository.keys(), series, record, object)?;
    reader.check_frame(object)?;
    let mut regions = 0..reader.index().regions().len();
    regions.try_for_each(|region| reader.unseal_region(region, reader.sealed_in(object, region)?.to_vec()).map(drop))
}
