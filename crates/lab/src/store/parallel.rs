//! The same work on many items by several threads, results in the order of the items.

use anyhow::{Result, anyhow};

/// Does `work` on every item, with a state of each thread's own that `make` makes.
///
/// # Errors
/// The first of `make` or `work`, by the order of the items.
pub(super) fn each<T: Sync, S, R: Send>(
    threads: usize,
    items: &[T],
    make: impl Fn() -> Result<S> + Sync,
    work: impl Fn(&mut S, &T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let in_turn = |items: &[T]| -> Result<Vec<R>> {
        let mut state = make()?;
        items.iter().map(|item| work(&mut state, item)).collect()
    };
    if threads <= 1 || items.len() <= 1 {
        return in_turn(items);
    }
    std::thread::scope(|scope| {
        let parts = items.chunks(items.len().div_ceil(threads));
        let running: Vec<_> = parts.map(|part| scope.spawn(|| in_turn(part))).collect();
        let mut results = Vec::with_capacity(items.len());
        for part in running {
            results.extend(part.join().map_err(|_| anyhow!("a thread of the store panicked"))??);
        }
        Ok(results)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items_whatever_the_threads() {
        for count in [0, 1, 2, 7, 100] {
            let items: Vec<usize> = (0..count).collect();
            for threads in [1, 2, 3, 200] {
                let doubled = each(threads, &items, || Ok(2), |factor, item| Ok(*factor * item)).unwrap();
                assert!(doubled.iter().enumerate().all(|(at, doubled)| *doubled == 2 * at) && doubled.len() == count);
            }
        }
        assert!(
            each(2, &[1, 2, 3], || Ok(()), |(), item| if *item < 3 { Ok(()) } else { Err(anyhow!("no")) }).is_err()
        );
    }
}
