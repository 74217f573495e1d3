//! The thread that fetches chunks of the source: each batch in the order in which it is stored, every region decoded
//! once with all its bases.

use super::content::{Fetched, Outage, RecipePart, Request};
use crate::chunks::ChunkSource;
use crate::decode::{Bytes, Gatherer};
use crate::observer::Observer;
use crossbeam_channel::Receiver;
use siltstone_store::recipe::Recipe;
use siltstone_store::{ChunkNumber, ChunkRun, StoreError};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Fetches what readers ask for, one request after the other.
pub(super) struct Fetcher<'env> {
    pub(super) gatherer: Gatherer<'env>,
    pub(super) chunks: Arc<ChunkSource<'env>>,
    pub(super) observer: &'env dyn Observer,
    pub(super) outage: Outage,
}

/// Chunks that fit, and the first that cannot be found.
struct Chosen {
    numbers: Vec<ChunkNumber>,
    missing: Option<(ChunkNumber, Arc<StoreError>)>,
}

impl Fetcher<'_> {
    /// Works off requests until nobody can make any more.
    pub(super) fn run(&self, requests: &Receiver<Request>) {
        for request in requests {
            // Whoever asked may have gone away.
            match request {
                Request::Chunks { runs, bytes_max, reply } => drop(reply.send(self.fetch(&runs, bytes_max))),
                Request::Part { recipe, offset, reply } => drop(reply.send(self.part(&recipe, offset))),
            }
        }
    }

    fn part(&self, recipe: &Recipe, offset: u64) -> RecipePart {
        self.unless_out()?;
        let found = recipe.stretch_at(&&*self.chunks, offset).map_err(|error| self.noted(error))?;
        Ok(found.map(|stretch| (stretch.start, stretch.pieces)))
    }

    fn fetch(&self, runs: &[ChunkRun], bytes_max: u64) -> Vec<(ChunkNumber, Fetched)> {
        let Chosen { numbers, missing } = self.choose(runs, bytes_max);
        let wanted: BTreeSet<ChunkNumber> = numbers.iter().copied().collect();
        let found = self.gatherer.chunks(&wanted).map(|(found, _)| found).unwrap_or_default();
        let mut known: HashMap<ChunkNumber, Fetched> = HashMap::new();
        let mut fetched = Vec::with_capacity(numbers.len() + 1);
        for number in numbers {
            let one = known.entry(number).or_insert_with(|| match found.get(&number) {
                Some(bytes) => Ok(bytes.clone()),
                None => self.fetch_alone(number),
            });
            fetched.push((number, one.clone()));
        }
        fetched.extend(missing.map(|(number, error)| (number, Err(error))));
        fetched
    }

    /// The first numbers of the runs whose chunks fit, up to the first that no container answers for.
    fn choose(&self, runs: &[ChunkRun], bytes_max: u64) -> Chosen {
        let mut chosen = Chosen { numbers: Vec::new(), missing: None };
        let mut bytes = 0u64;
        for number in runs.iter().flat_map(|run| run.range()).map(ChunkNumber) {
            let place =
                self.unless_out().and_then(|()| self.chunks.place_of(number).map_err(|error| self.noted(error)));
            match place {
                Ok((_, place)) => bytes = bytes.saturating_add(u64::from(place.chunk.length)),
                Err(error) => {
                    chosen.missing = Some((number, error));
                    break;
                }
            }
            if bytes > bytes_max && !chosen.numbers.is_empty() {
                break;
            }
            chosen.numbers.push(number);
        }
        chosen
    }

    /// A chunk that did not come with the others: its container may have been replaced meanwhile, which the source of
    /// chunks follows, or it is damaged, which the error then says.
    fn fetch_alone(&self, number: ChunkNumber) -> Fetched {
        if self.observer.is_cancelled() {
            let reason = "interrupted".to_owned();
            return Err(Arc::new(StoreError::Machine { operation: "reading the source repository", reason }));
        }
        self.unless_out()?;
        self.chunks.with_chunk(number, Bytes::copy_from_slice).map_err(|error| self.noted(error))
    }

    /// Fails without another try once the source as a whole has failed.
    fn unless_out(&self) -> Result<(), Arc<StoreError>> {
        self.outage.failure().map_or(Ok(()), Err)
    }

    fn noted(&self, error: StoreError) -> Arc<StoreError> {
        let error = Arc::new(error);
        self.outage.note(&error);
        error
    }
}
