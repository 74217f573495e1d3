//! Work that is not timed, on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};

/// `work` of every number below `count`, on all cores, in order.
///
/// # Panics
/// If `work` does.
pub fn in_parallel<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    /// Shares per core: pieces of work differ.
    const SHARES: usize = 64;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = count.div_ceil(threads * SHARES).max(1);
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let from = next.fetch_add(share, Ordering::Relaxed);
            if from >= count {
                return done;
            }
            done.push((from, (from..count.min(from + share)).map(&work).collect::<Vec<T>>()));
        }
    };
    let mut done: Vec<(usize, Vec<T>)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        handles.into_iter().flat_map(|handle| handle.join().expect("no worker panics")).collect()
    });
    done.sort_by_key(|(from, _)| *from);
    done.into_iter().flat_map(|(_, results)| results).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_their_numbers() {
        for count in [0, 1, 7, 1000] {
            assert_eq!(
                in_parallel(count, |number| 2 * number),
                (0..count).map(|number| 2 * number).collect::<Vec<_>>()
            );
        }
    }
}
