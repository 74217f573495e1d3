//! The window: reads in flight at the same time. It grows while answers come and is halved when the place asks for
//! less, so that one client takes what there is and many clients share it (Chiu and Jain, 1989). It does not depend on
//! the number of cores: a request in flight costs no processor.

use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Requests in flight at the beginning, and at least.
const REQUESTS_MIN: usize = 4;
/// Requests in flight at most: 64 reads of 1 MiB at 30 ms fill 10 Gbit/s.
pub(crate) const REQUESTS_MAX: usize = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct Window {
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug)]
struct State {
    limit: usize,
    in_flight: usize,
    answers: usize,
    /// Number of halvings. Requests that began before the last one do not halve again.
    halvings: u64,
}

/// The right to one request; give it back by [`Seat::answered`] or [`Seat::throttled`], or drop it.
#[derive(Debug)]
pub(crate) struct Seat<'w> {
    window: &'w Window,
    halvings: u64,
}

impl Window {
    pub(crate) fn new() -> Self {
        let state = State { limit: REQUESTS_MIN, in_flight: 0, answers: 0, halvings: 0 };
        Self { state: Mutex::new(state), freed: Notify::new() }
    }

    /// Waits until one more request may be in flight.
    pub(crate) async fn enter(&self) -> Seat<'_> {
        loop {
            let freed = self.freed.notified();
            if let Some(seat) = self.try_enter() {
                return seat;
            }
            freed.await;
        }
    }

    fn try_enter(&self) -> Option<Seat<'_>> {
        let mut state = self.lock();
        (state.in_flight < state.limit).then(|| {
            state.in_flight += 1;
            Seat { window: self, halvings: state.halvings }
        })
    }

    /// Requests that may be in flight now.
    pub(crate) fn limit(&self) -> usize {
        self.lock().limit
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat<'_> {
    /// Gives the right back after an answer. The window grows by one for each answer, and after the first halving by
    /// one for each window of them.
    pub(crate) fn answered(self) {
        let mut state = self.window.lock();
        state.answers += 1;
        if state.halvings == 0 || state.answers >= state.limit {
            state.answers = 0;
            state.limit = (state.limit + 1).min(REQUESTS_MAX);
            self.window.freed.notify_one();
        }
    }

    /// Gives the right back after the place asked for less, or did not answer in time.
    pub(crate) fn throttled(self) {
        let mut state = self.window.lock();
        if state.halvings == self.halvings {
            state.halvings += 1;
            state.answers = 0;
            state.limit = (state.limit / 2).max(REQUESTS_MIN);
        }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.window.lock().in_flight -= 1;
        self.window.freed.notify_one();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_with_answers_and_is_halved_once_for_all_that_were_in_flight() {
        let window = Window::new();
        for _ in 0..100 {
            window.try_enter().unwrap().answered();
        }
        assert_eq!(window.limit(), REQUESTS_MAX);
        let seats: Vec<Seat<'_>> = std::iter::from_fn(|| window.try_enter()).collect();
        assert_eq!(seats.len(), REQUESTS_MAX);
        seats.into_iter().for_each(Seat::throttled);
        assert_eq!(window.limit(), REQUESTS_MAX / 2);
        for _ in 0..32 {
            window.try_enter().unwrap().answered();
        }
        assert_eq!(window.limit(), 33, "after a halving it grows slowly");
        for _ in 0..10 {
            window.try_enter().unwrap().throttled();
        }
        assert_eq!(window.limit(), REQUESTS_MIN);
    }
}
