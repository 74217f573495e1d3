//! Options that campaigns against the real program share, and work done side by side.

use anyhow::{Result, bail};
use clap::Args;
use std::thread::{self, ScopedJoinHandle};

/// Build that is tried, and whether the result is kept.
#[derive(Args, Default)]
#[group(skip)]
pub(crate) struct Options {
    /// Use the release build.
    #[arg(long)]
    pub(crate) release: bool,
    /// Keep the result under bench/record.
    #[arg(long)]
    pub(crate) record: bool,
}

/// Does the work on each item, all at once; the first error of them is told when all have ended.
pub(crate) fn each<I: Send, T: Send>(
    items: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = items.into_iter().map(|item| scope.spawn(move || work(item))).collect();
        let results: Vec<Result<T>> = threads.into_iter().map(joined).collect();
        results.into_iter().collect()
    })
}

/// Waits for a thread; one that panicked is an error.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| bail!("a task panicked"))
}
