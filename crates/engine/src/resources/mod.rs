//! Resources of a command: threads, memory, folders for what does not stay, and whoever listens. One value, made once
//! by the program and passed everywhere; how its memory is shared out stands in [`shares`].

pub(crate) mod shares;

pub use shares::Command;

use crate::setters::setters;
use crate::{EngineError, Observer, Silent};
use siltstone_store::container::ContainerKind;
use siltstone_store::repository::Repository;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

/// Memory to stay below, bytes, unless said otherwise.
pub const MEMORY_BYTES_DEFAULT: u64 = 512 << 20;

/// Resources that commands may use.
#[derive(Clone)]
#[non_exhaustive]
pub struct Resources {
    /// Threads of each stage that computes; by default the cores that this process may use.
    pub workers: usize,
    /// Threads that read containers and decode what comes: so many range reads are under way at once. By default as
    /// many as workers; more hide the latency of a distant storage.
    pub fetches: usize,
    /// Bytes of memory to stay below; [`MEMORY_BYTES_DEFAULT`].
    pub memory_bytes: u64,
    /// Folder of temporary files where there is no cache; by default the system's.
    pub scratch: PathBuf,
    /// Folder of what is kept on this machine from one backup to the next; `None`: nothing is kept.
    pub cache: Option<PathBuf>,
    /// Receiver of progress, problems and notices, which also says whether to stop.
    pub observer: Arc<dyn Observer>,
}

impl Default for Resources {
    fn default() -> Self {
        let workers = cores();
        Self {
            workers,
            fetches: workers,
            memory_bytes: MEMORY_BYTES_DEFAULT,
            scratch: std::env::temp_dir(),
            cache: None,
            observer: Arc::new(Silent),
        }
    }
}

setters!(Resources {
    with_workers(workers: usize),
    with_fetches(fetches: usize),
    with_memory_bytes(memory_bytes: u64),
    with_scratch(scratch: PathBuf),
    with_cache(cache: Option<PathBuf>),
    with_observer(observer: Arc<dyn Observer>),
});

impl Resources {
    /// Returns the folder for temporary files of work on this repository: its own within the cache, else `scratch`.
    pub(crate) fn scratch_of(&self, repository: &Repository) -> PathBuf {
        let folder = self.cache.as_ref().map(|cache| cache.join(repository.id().to_string()));
        folder.filter(|folder| std::fs::create_dir_all(folder).is_ok()).unwrap_or_else(|| self.scratch.clone())
    }

    /// Refuses to begin with less memory than the command can work with on this repository.
    ///
    /// # Errors
    /// [`EngineError::MemoryTooSmall`].
    pub fn suffice_for(&self, command: Command, repository: &Repository) -> Result<(), EngineError> {
        self.suffice_beside(command, repository.container_bytes(ContainerKind::Data))
    }

    /// Bytes of memory beyond the least that a command can work with on this repository.
    pub(crate) fn spare_bytes(&self, command: Command, repository: &Repository) -> u64 {
        let least = command.memory_bytes_min(repository.container_bytes(ContainerKind::Data));
        self.memory_bytes.saturating_sub(least)
    }

    /// Refuses to begin with less memory than the command can work with, where containers are filled to
    /// `container_bytes`.
    fn suffice_beside(&self, command: Command, container_bytes: u64) -> Result<(), EngineError> {
        let least = command.memory_bytes_min(container_bytes);
        if self.memory_bytes < least {
            return Err(EngineError::MemoryTooSmall { given_mib: self.memory_bytes >> 20, least_mib: least >> 20 });
        }
        Ok(())
    }

    /// Returns the resources of a command that writes containers, without the memory that those of this repository take
    /// beyond the usual.
    ///
    /// # Errors
    /// [`EngineError::MemoryTooSmall`].
    pub(crate) fn beside_containers(&self, command: Command, repository: &Repository) -> Result<Self, EngineError> {
        self.suffice_for(command, repository)?;
        let containers_bytes = shares::larger_containers_bytes(repository.container_bytes(ContainerKind::Data));
        Ok(self.clone().with_memory_bytes(self.memory_bytes.saturating_sub(containers_bytes)))
    }

    /// Stops a command whose user asked for it.
    pub(crate) fn unless_cancelled(&self) -> Result<(), EngineError> {
        if self.observer.is_cancelled() { Err(EngineError::Interrupted) } else { Ok(()) }
    }
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Resources");
        debug.field("workers", &self.workers).field("fetches", &self.fetches);
        debug.field("memory_bytes", &self.memory_bytes).field("scratch", &self.scratch).field("cache", &self.cache);
        debug.finish_non_exhaustive()
    }
}

/// Cores that this process may use. Asking reads files of the kernel, so it is done once.
fn cores() -> usize {
    static CORES: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
    *CORES
}
