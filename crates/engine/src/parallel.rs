//! Work on several threads whose results come back in the order it was handed in.
//!
//! A [`Pool`] runs closures on its workers, each with a state of its own (a compressor, a buffer). Submitting gives a
//! [`Ticket`]; whoever holds the tickets waits for them in whatever order it needs. Handing tickets on through a
//! bounded channel gives a pipeline that is parallel, ordered and bounded at once, with no reorder buffer: the
//! channel's length is the memory bound.
//!
//! Where the system refuses threads, fewer do the work; without any it fails. Of a worker that panics, what it worked
//! on and all it takes after that are errors: nothing that was not done passes for done.

use crossbeam_channel::{Receiver, Sender, bounded};
use siltstone_store::StoreError;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// The promise of a result.
#[derive(Debug)]
#[must_use = "only waiting tells whether the work was done"]
pub(crate) struct Ticket<R>(Receiver<R>);

impl<R> Ticket<R> {
    /// A result that is there already.
    pub(crate) fn ready(result: R) -> Self {
        let (sender, receiver) = bounded(1);
        let _ = sender.send(result);
        Self(receiver)
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// The worker panicked, now or before, which has been printed.
    pub(crate) fn wait(self) -> Result<R, StoreError> {
        self.0.recv().map_err(|_| lost_worker())
    }
}

/// Some work has no result because whoever did it is gone.
pub(crate) fn lost_worker() -> StoreError {
    let reason = "one ended before its work was done; run the command again, and report it if that happens again";
    StoreError::Machine { operation: "working on several threads", reason: reason.to_owned() }
}

fn no_thread(error: &io::Error) -> StoreError {
    let reason =
        format!("{error}; close other programs, or raise the limits on processes and memory (ulimit -u, ulimit -v)");
    StoreError::Machine { operation: "starting a thread", reason }
}

type PoolTask<'env, S> = Box<dyn FnOnce(&mut S) + Send + 'env>;

/// Workers that each own a state `S` and run what is submitted. Dropping every clone lets the workers end.
#[derive(Debug)]
pub(crate) struct Pool<'env, S> {
    queue: Sender<PoolTask<'env, S>>,
}

impl<S> Clone for Pool<'_, S> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone() }
    }
}

impl<'env, S> Pool<'env, S> {
    /// Starts `workers` threads in `scope`, or as many as the system gives; at most `queued` tasks wait before `submit`
    /// blocks.
    ///
    /// # Errors
    /// Not even one could be started.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, 'env>,
        name: &str,
        workers: usize,
        queued: usize,
        make_state: impl Fn() -> Result<S, StoreError>,
    ) -> Result<Self, StoreError>
    where
        S: Send + 'scope,
        'env: 'scope,
    {
        let (queue, tasks) = bounded::<PoolTask<'env, S>>(queued);
        for number in 0..workers.max(1) {
            let started = make_state().and_then(|state| {
                let tasks = tasks.clone();
                spawn_named(scope, &format!("{name}-{number}"), move || work_off(tasks, state))
            });
            match started {
                Ok(_) => {}
                Err(error) if number == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(Self { queue })
    }

    /// Hands in work; blocks while the queue is full.
    pub(crate) fn submit<R: Send + 'env>(&self, work: impl FnOnce(&mut S) -> R + Send + 'env) -> Ticket<R> {
        let (sender, receiver) = bounded(1);
        // A failed send drops the task and with it the sender: the ticket then says so.
        let _ = self.queue.send(Box::new(move |state| {
            let _ = sender.send(work(state));
        }));
        Ticket(receiver)
    }
}

impl<'env, S> Pool<'env, S> {
    /// Runs `work` on one item after the other, at most `ahead` before its result is asked for; gives the results in
    /// order.
    pub(crate) fn in_order<T: Send + 'env, R: Send + 'env>(
        &self,
        items: impl IntoIterator<Item = T>,
        ahead: usize,
        work: impl Fn(&mut S, T) -> R + Clone + Send + 'env,
    ) -> impl Iterator<Item = Result<R, StoreError>> {
        self.in_order_by_weight(items, ahead, |_| 1, work)
    }

    /// Does as [`in_order`](Self::in_order), with items ahead until they weigh `ahead` or more.
    pub(crate) fn in_order_by_weight<T: Send + 'env, R: Send + 'env>(
        &self,
        items: impl IntoIterator<Item = T>,
        ahead: usize,
        weight_of: impl Fn(&T) -> usize,
        work: impl Fn(&mut S, T) -> R + Clone + Send + 'env,
    ) -> impl Iterator<Item = Result<R, StoreError>> {
        let mut items = items.into_iter();
        let mut waiting = VecDeque::new();
        let mut weight = 0;
        std::iter::from_fn(move || {
            while weight < ahead.max(1)
                && let Some(item) = items.next()
            {
                let work = work.clone();
                let of_item = weight_of(&item);
                weight += of_item;
                waiting.push_back((of_item, self.submit(move |state| work(state, item))));
            }
            let (of_item, ticket) = waiting.pop_front()?;
            weight -= of_item;
            Some(ticket.wait())
        })
    }
}

/// Does one task after the other until there are no more. After a panic the state may be half changed: what comes then
/// is dropped, which its ticket tells. (Left in the queue, it would keep whoever waits for it waiting.)
fn work_off<S>(tasks: Receiver<PoolTask<'_, S>>, mut state: S) {
    let mut is_sound = true;
    for task in tasks {
        is_sound = is_sound && catch_unwind(AssertUnwindSafe(|| task(&mut state))).is_ok();
    }
}

/// Spawns a scoped thread with a name that shows in debuggers and profiles.
///
/// # Errors
/// The system refuses a thread.
pub(crate) fn spawn_named<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    body: impl FnOnce() -> R + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, R>, StoreError> {
    #[cfg(test)]
    tests::refusal().map_err(|error| no_thread(&error))?;
    Builder::new().name(name.to_owned()).spawn_scoped(scope, body).map_err(|error| no_thread(&error))
}

/// Locks a mutex whose data stays sound if a holder panics.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(crate) mod tests;
