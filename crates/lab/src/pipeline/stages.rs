//! Threads joined by bounded channels: how stages are started, how they end, and how much of the time each was at work.
//!
//! A stage that fails, or panics, drops its ends of the channels. The stage before it then cannot send and stops too;
//! the one after it sees the end of its input. So nothing waits for ever, and [`Stages::join`] gives the error that was
//! first in the order of stages.

use crate::thread_time;
use anyhow::{Error, Result, anyhow};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

/// Items that wait between two stages at most.
pub(super) const QUEUE: usize = 4;

/// Work of one thread of the pipeline, in the order in which the data passes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Stage {
    /// Copies the stream out of memory, piece by piece.
    Read,
    /// Finds the cuts.
    Chunk,
    /// Names chunks by their content.
    Fingerprint,
    /// Tells new chunks from known ones, and writes recipes.
    Index,
    /// Makes sketches of new chunks.
    Sketch,
    /// Finds bases, and encodes deltas.
    Delta,
    /// Compresses regions.
    Compress,
    /// Writes containers.
    Write,
}

impl Stage {
    /// All of them, in order.
    pub(super) const ALL: [Self; 8] = [
        Self::Read,
        Self::Chunk,
        Self::Fingerprint,
        Self::Index,
        Self::Sketch,
        Self::Delta,
        Self::Compress,
        Self::Write,
    ];

    /// As in tables and legends.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Chunk => "chunk",
            Self::Fingerprint => "fingerprint",
            Self::Index => "index",
            Self::Sketch => "sketch",
            Self::Delta => "delta",
            Self::Compress => "compress",
            Self::Write => "write",
        }
    }

    /// The measure of how much of the time its threads were at work.
    pub(super) fn busy_percent(self) -> String {
        format!("{}_busy_percent", self.name())
    }
}

/// Processor time of a stage.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Busy {
    pub(super) stage: Stage,
    /// Number of threads.
    pub(super) threads: u32,
    /// Time they took together.
    pub(super) time: Duration,
}

/// The other end of a channel is gone: whoever dropped it has the reason.
#[derive(Debug)]
struct StageStopped;

impl fmt::Display for StageStopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a neighbouring stage stopped")
    }
}

impl std::error::Error for StageStopped {}

/// Hands an item on; an error if nobody takes it any more.
pub(super) fn send<T>(to: &Sender<T>, item: T) -> Result<()> {
    to.send(item).map_err(|_| Error::new(StageStopped))
}

/// The stages that run.
pub(super) struct Stages<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    started: Vec<(Stage, ScopedJoinHandle<'scope, Result<Duration>>)>,
}

impl<'scope, 'env> Stages<'scope, 'env> {
    /// None yet.
    pub(super) fn new(scope: &'scope Scope<'scope, 'env>) -> Self {
        Self { scope, started: Vec::new() }
    }

    /// Starts a thread of a stage.
    ///
    /// # Errors
    /// If the system has no more threads to give.
    pub(super) fn start(&mut self, stage: Stage, work: impl FnOnce() -> Result<()> + Send + 'scope) -> Result<()> {
        let timed = move || work().map(|()| thread_time::taken());
        let thread = Builder::new().name(stage.name().to_owned()).spawn_scoped(self.scope, timed)?;
        self.started.push((stage, thread));
        Ok(())
    }

    /// Starts a stage of so many threads, each with what `make` gives it to work on items with. What they make comes
    /// out in the order in which the items went in: whoever takes an item queues the promise of its result in the same
    /// moment.
    ///
    /// # Errors
    /// If the system has no more threads to give.
    pub(super) fn start_ordered<I, O, W>(
        &mut self,
        stage: Stage,
        threads: usize,
        items: Receiver<I>,
        make: impl Fn() -> Result<W>,
    ) -> Result<Ordered<O>>
    where
        I: Send + 'scope,
        O: Send + 'scope,
        W: FnMut(I) -> Result<O> + Send + 'scope,
    {
        let (promised, promises) = bounded::<Receiver<O>>(QUEUE);
        let both = Arc::new(Mutex::new((items, promised)));
        for _ in 0..threads.max(1) {
            let (both, mut work) = (Arc::clone(&both), make()?);
            self.start(stage, move || {
                while let Some((item, result)) = take(&both)? {
                    send(&result, work(item)?)?;
                }
                Ok(())
            })?;
        }
        Ok(Ordered(promises))
    }

    /// Waits for all of them.
    ///
    /// # Errors
    /// Error of the first stage that stopped by itself; a panic is one, with what it said.
    pub(super) fn join(self) -> Result<Vec<Busy>> {
        let mut all: Vec<Busy> = Vec::new();
        let (mut failure, mut has_stopped) = (None, None);
        for (stage, thread) in self.started {
            let ended = thread.join().unwrap_or_else(|panic| Err(anyhow!("it panicked: {}", said(panic.as_ref()))));
            match ended {
                Ok(time) => match all.last_mut().filter(|last| last.stage == stage) {
                    Some(last) => (last.threads, last.time) = (last.threads + 1, last.time + time),
                    None => all.push(Busy { stage, threads: 1, time }),
                },
                Err(error) if error.is::<StageStopped>() => has_stopped = Some(error),
                Err(error) => {
                    failure
                        .get_or_insert(error.context(format!("the stage {:?} of the pipeline failed", stage.name())));
                }
            }
        }
        failure.or(has_stopped).map_or(Ok(all), Err)
    }
}

/// The next item, and where its result is to go; `None` when there are no more.
fn take<I, O>(both: &Mutex<(Receiver<I>, Sender<Receiver<O>>)>) -> Result<Option<(I, Sender<O>)>> {
    let both = both.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(item) = both.0.recv() else { return Ok(None) };
    let (result, promise) = bounded(1);
    send(&both.1, promise)?;
    Ok(Some((item, result)))
}

/// Results of several threads, in the order of what they were made of.
#[derive(Debug)]
pub(super) struct Ordered<O>(Receiver<Receiver<O>>);

impl<O> Ordered<O> {
    /// The next, or `None` at the end.
    ///
    /// # Errors
    /// If the thread that was to make it is gone.
    pub(super) fn next(&self) -> Result<Option<O>> {
        let Ok(promise) = self.0.recv() else { return Ok(None) };
        promise.recv().map(Some).map_err(|_| Error::new(StageStopped))
    }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "for an unknown reason".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;
    use std::thread::scope;

    #[test]
    fn several_threads_keep_the_order() {
        let numbers = scope(|scope| -> Result<Vec<u64>> {
            let mut stages = Stages::new(scope);
            let (to, items) = bounded(QUEUE);
            stages.start(Stage::Read, move || (0..200).try_for_each(|number| send(&to, number)))?;
            let squares = stages.start_ordered(Stage::Sketch, 3, items, || {
                Ok(|number: u64| {
                    // Early items take longer than those after them.
                    std::thread::sleep(Duration::from_micros((7 - number % 8) * 20));
                    Ok(number * number)
                })
            })?;
            let mut all = Vec::new();
            while let Some(square) = squares.next()? {
                all.push(square);
            }
            let busy = stages.join()?;
            assert_eq!(
                busy.iter().map(|busy| (busy.stage, busy.threads)).collect::<Vec<_>>(),
                [(Stage::Read, 1), (Stage::Sketch, 3)]
            );
            Ok(all)
        });
        assert!(numbers.unwrap().into_iter().eq((0..200).map(|number| number * number)));
    }

    #[test]
    fn what_nobody_takes_is_not_piled_up() {
        const THREADS: usize = 2;
        scope(|scope| {
            let mut stages = Stages::new(scope);
            let (to, items) = bounded(QUEUE);
            let results = stages.start_ordered(Stage::Sketch, THREADS, items, || Ok(|item: usize| Ok(item))).unwrap();
            let taken = (0..1000).take_while(|item| to.send_timeout(*item, Duration::from_millis(100)).is_ok()).count();
            // What waits on either side, and what the threads have in hand.
            assert!((QUEUE..=2 * QUEUE + THREADS).contains(&taken), "{taken}");
            drop((to, results));
        });
    }

    #[test]
    fn a_thread_that_fails_ends_all_with_its_error() {
        for panics in [false, true] {
            let error = scope(|scope| {
                let mut stages = Stages::new(scope);
                let (to, items) = bounded(QUEUE);
                stages.start(Stage::Read, move || (0..).try_for_each(|number| send(&to, number)))?;
                let results = stages.start_ordered(Stage::Compress, 2, items, || {
                    Ok(move |number: u64| match number {
                        100 if panics => panic!("number {number}"),
                        100 => bail!("number {number}"),
                        _ => Ok(number),
                    })
                })?;
                stages.start(Stage::Write, move || {
                    while results.next()?.is_some() {}
                    Ok(())
                })?;
                stages.join()
            });
            let text = format!("{:#}", error.unwrap_err());
            assert!(text.contains("compress") && text.contains("number 100"), "{text}");
        }
    }
}
