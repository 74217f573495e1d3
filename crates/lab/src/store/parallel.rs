//! Work on many items by several threads, results in the order of the items; and as many CPUs for all methods.

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

/// Tells whether [`on_cpus`] can keep work to so many.
pub(super) fn can_limit(cpus: usize) -> bool {
    cfg!(target_os = "linux") || std::thread::available_parallelism().is_ok_and(|all| all.get() <= cpus)
}

/// Does `work` on so many of the CPUs that this process may use, with all threads it starts: Siltstone's engine takes
/// as many threads as there are CPUs, and has no other setting. What starts more threads than that (pipelines, writers
/// to the disk) has no more CPUs for it.
///
/// # Errors
/// If the system does not say or does not let choose which CPUs are used, or `work` panics.
pub(super) fn on_cpus<R: Send>(cpus: usize, work: impl FnOnce() -> Result<R> + Send) -> Result<R> {
    let limited = || {
        #[cfg(target_os = "linux")]
        keep_to(cpus)?;
        work()
    };
    let done = std::thread::scope(|scope| scope.spawn(limited).join());
    done.map_err(|_| anyhow!("a thread of the store panicked, on {cpus} CPUs"))?
}

/// Keeps this thread, and those it will start, to so many CPUs.
#[cfg(target_os = "linux")]
fn keep_to(cpus: usize) -> Result<()> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let allowed = sched_getaffinity(None)?;
    let mut kept = CpuSet::new();
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).take(cpus.max(1)).for_each(|cpu| kept.set(cpu));
    Ok(sched_setaffinity(None, &kept)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn who_works_on_one_cpu_sees_no_other_and_who_waits_keeps_all() {
        let cpus = || std::thread::available_parallelism().unwrap().get();
        let before = cpus();
        let inner = || std::thread::scope(|scope| scope.spawn(cpus).join().unwrap());
        assert_eq!(on_cpus(1, || Ok((cpus(), inner()))).unwrap(), (1, 1));
        assert_eq!(on_cpus(1000, || Ok(cpus())).unwrap(), before);
        assert_eq!(cpus(), before);
        assert!(on_cpus(1, || -> Result<()> { Err(anyhow!("no")) }).is_err());
    }

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
