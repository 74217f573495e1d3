//! Independent trials of a campaign, on all cores.

use anyhow::Result;
use std::ops::Range;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// Time between two lines that say how far a campaign is.
const TELL_EVERY: Duration = Duration::from_mins(1);

struct State<T> {
    left: Range<u64>,
    done: Vec<(u64, Result<T>)>,
    told: Instant,
}

/// Runs `trial` with each number below `count`, as many at once as there are cores, and returns the results in order.
///
/// After the first error no trial begins; of the errors there are, that of the lowest number is returned.
///
/// # Panics
/// If a trial does.
pub fn run<T: Send>(name: &str, count: u64, trial: impl Fn(u64) -> Result<T> + Sync) -> Result<Vec<T>> {
    let state = Mutex::new(State { left: 0..count, done: Vec::new(), told: Instant::now() });
    let lock = || state.lock().expect("no trial panics with the lock");
    let next = || lock().left.next();
    let work = || {
        while let Some(number) = next() {
            let result = trial(number);
            let mut state = lock();
            if result.is_err() {
                state.left = 0..0;
            }
            state.done.push((number, result));
            if state.told.elapsed() >= TELL_EVERY {
                state.told = Instant::now();
                eprintln!("{name}: {} of {count}", state.done.len());
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let mut done = state.into_inner().expect("no trial panics with the lock").done;
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::run;
    use anyhow::ensure;

    #[test]
    fn results_are_in_order() {
        let squares = run("squares", 100, |number| Ok(number * number)).expect("none fails");
        assert!(squares.iter().enumerate().all(|(at, square)| *square == (at * at) as u64));
        assert_eq!(squares.len(), 100);
    }

    #[test]
    fn the_first_error_ends_a_campaign() {
        let failing = |number| {
            ensure!(number != 10, "number {number} fails");
            Ok(number)
        };
        let error = run("failing", u64::MAX, failing).expect_err("one fails");
        assert_eq!(error.to_string(), "number 10 fails");
    }
}
