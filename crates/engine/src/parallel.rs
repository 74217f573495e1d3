//! Work on several threads whose results come back in the order it was handed in.
//!
//! A [`Pool`] runs closures on its workers, each with a state of its own (a compressor, a buffer). Submitting gives a [`Ticket`];
//! whoever holds the tickets waits for them in whatever order it needs. Handing tickets on through a bounded channel gives a
//! pipeline that is parallel, ordered and bounded at once, with no reorder buffer: the channel's length is the memory bound.

use crossbeam_channel::{Receiver, Sender, bounded};
use std::collections::VecDeque;
use std::thread::{Scope, ScopedJoinHandle};

/// The promise of a result. Waiting gives `None` if the worker went away (a panic, which the scope then reports).
#[derive(Debug)]
pub(crate) struct Ticket<R>(Receiver<R>);

impl<R> Ticket<R> {
    /// A result that is there already.
    pub(crate) fn ready(result: R) -> Self {
        let (sender, receiver) = bounded(1);
        let _ = sender.send(result);
        Self(receiver)
    }

    /// Waits for the result.
    pub(crate) fn wait(self) -> Option<R> {
        self.0.recv().ok()
    }
}

type Task<'env, S> = Box<dyn FnOnce(&mut S) + Send + 'env>;

/// Workers that each own a state `S` and run what is submitted. Dropping every clone lets the workers end.
#[derive(Debug)]
pub(crate) struct Pool<'env, S> {
    queue: Sender<Task<'env, S>>,
}

impl<S> Clone for Pool<'_, S> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone() }
    }
}

impl<'env, S> Pool<'env, S> {
    /// Starts `workers` threads in `scope`; at most `queued` tasks wait before `submit` blocks.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, 'env>,
        name: &str,
        workers: usize,
        queued: usize,
        make_state: impl Fn() -> S,
    ) -> Self
    where
        S: Send + 'scope,
        'env: 'scope,
    {
        let (queue, tasks) = bounded::<Task<'env, S>>(queued);
        for number in 0..workers {
            let tasks = tasks.clone();
            let mut state = make_state();
            spawn_named(scope, &format!("{name}-{number}"), move || {
                for task in tasks {
                    task(&mut state);
                }
            });
        }
        Self { queue }
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
    /// Runs `work` on one item after the other, at most `ahead` before its result is asked for; gives the results in order, `None` for
    /// one whose worker went away.
    pub(crate) fn in_order<T: Send + 'env, R: Send + 'env>(
        &self,
        items: impl IntoIterator<Item = T>,
        ahead: usize,
        work: impl Fn(&mut S, T) -> R + Clone + Send + 'env,
    ) -> impl Iterator<Item = Option<R>> {
        let mut items = items.into_iter();
        let mut waiting = VecDeque::new();
        std::iter::from_fn(move || {
            while waiting.len() < ahead.max(1)
                && let Some(item) = items.next()
            {
                let work = work.clone();
                waiting.push_back(self.submit(move |state| work(state, item)));
            }
            waiting.pop_front().map(Ticket::wait)
        })
    }
}

/// Spawns a scoped thread with a name that shows in debuggers and profiles.
///
/// # Panics
/// If the system refuses a thread: nothing can go on without.
pub(crate) fn spawn_named<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    body: impl FnOnce() -> R + Send + 'scope,
) -> ScopedJoinHandle<'scope, R> {
    std::thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, body).expect("the system gives threads")
}

/// How many threads a stage that computes should have: the cores this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_worked_on_ahead_of_their_results_but_not_far() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let begun = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let pool = Pool::start(scope, "test", 3, 4, || ());
            let results = pool.in_order(0..100usize, 5, |(), n| {
                begun.fetch_add(1, Ordering::Relaxed);
                n * n
            });
            for (n, result) in results.enumerate() {
                assert_eq!(result, Some(n * n));
                assert!(begun.load(Ordering::Relaxed) <= n + 5);
            }
        });
        assert_eq!(begun.into_inner(), 100);
    }

    #[test]
    fn tickets_give_results_in_the_order_they_are_waited_for() {
        std::thread::scope(|scope| {
            let pool = Pool::start(scope, "test", 3, 4, || 0u64);
            let tickets: Vec<_> = (0..100u64).map(|n| pool.submit(move |_| n * n)).collect();
            let results: Vec<_> = tickets.into_iter().filter_map(Ticket::wait).collect();
            assert_eq!(results, (0..100).map(|n| n * n).collect::<Vec<_>>());
        });
    }
}
