//! Where a program's time goes, thread by thread: Linux counts for every thread how long it ran and how long it waited
//! for a core (`schedstat`), and says of each whether it waits for the disk at the moment (`stat`). Both are read every
//! few milliseconds while the program runs; what a thread did after the last look is not seen, nor is one that lives
//! shorter.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The stage of the main thread, and of those that only share the work of opening.
pub(super) const MAIN: &str = "silt";
/// Between two looks. Reading of some fifteen threads takes 50 to 100 microseconds: one or two percent of one core.
const INTERVAL: Duration = Duration::from_millis(5);

/// Times of a thread, or of all threads of a stage, as observed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Times {
    /// On a core.
    pub(super) run: Duration,
    /// Ready, but without a core.
    pub(super) queued: Duration,
    /// Not to be woken before the disk has answered: sampled, so only as exact as many looks make it.
    pub(super) disk: Duration,
    /// Threads.
    pub(super) threads: u64,
    /// On a core, of the thread that was longest.
    pub(super) longest: Duration,
}

impl Times {
    /// Both together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            run: self.run + other.run,
            queued: self.queued + other.queued,
            disk: self.disk + other.disk,
            threads: self.threads + other.threads,
            longest: self.longest.max(other.longest),
        }
    }
}

/// Watches a process until it has ended; the times by the names of its threads, those of a pool (`read-0`, `read-1`)
/// together.
pub(super) fn watch(process: u32, has_ended: &AtomicBool) -> BTreeMap<String, Times> {
    let folder = PathBuf::from(format!("/proc/{process}/task"));
    let mut seen: BTreeMap<u32, Thread> = BTreeMap::new();
    let mut before = Instant::now();
    while !has_ended.load(Ordering::Acquire) {
        // A process that is just ending has no folder any more.
        for number in numbers_in(&folder).unwrap_or_default() {
            if let Entry::Vacant(place) = seen.entry(number) {
                Thread::open(&folder, number).map(|thread| place.insert(thread));
            }
        }
        let since = before.elapsed();
        before += since;
        for thread in seen.values_mut() {
            thread.look(since);
        }
        sleep(INTERVAL);
    }
    // A thread without a name of its own has the main thread's, which is that of the program's file.
    let program = seen.get(&process).map(|thread| thread.name.clone());
    let mut stages: BTreeMap<String, Times> = BTreeMap::new();
    for Thread { name, times, .. } in seen.into_values() {
        let stage = if program.as_ref() == Some(&name) { MAIN } else { stage_of(&name) };
        let stage = stages.entry(stage.to_owned()).or_default();
        *stage = stage.and(times);
    }
    stages
}

/// The name without the number of a thread in its pool.
fn stage_of(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((pool, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => pool,
        _ => name,
    }
}

fn numbers_in(folder: &Path) -> io::Result<Vec<u32>> {
    Ok(fs::read_dir(folder)?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// A thread that was seen at least once.
struct Thread {
    name: String,
    /// `schedstat` and `stat`; `None` once it has gone.
    files: Option<(File, File)>,
    times: Times,
}

impl Thread {
    fn open(folder: &Path, number: u32) -> Option<Self> {
        let folder = folder.join(number.to_string());
        let files = (File::open(folder.join("schedstat")).ok()?, File::open(folder.join("stat")).ok()?);
        Some(Self { name: String::new(), files: Some(files), times: Times { threads: 1, ..Times::default() } })
    }

    fn look(&mut self, since: Duration) {
        let Some((times, status)) = &self.files else { return };
        let read = (text_of(times), text_of(status));
        let (Some((run, queued)), Some((name, state))) =
            (read.0.as_deref().and_then(run_and_queued), read.1.as_deref().and_then(name_and_state))
        else {
            self.files = None;
            return;
        };
        // It names itself, a little after it has begun.
        name.clone_into(&mut self.name);
        (self.times.run, self.times.longest, self.times.queued) = (run, run, queued);
        if state == 'D' {
            self.times.disk += since;
        }
    }
}

/// The beginning of such a file, which is made anew at each reading; `None` if its thread has gone.
fn text_of(file: &File) -> Option<String> {
    let mut bytes = [0; 512];
    let count = file.read_at(&mut bytes, 0).ok().filter(|count| *count > 0)?;
    Some(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

/// `schedstat`: nanoseconds on a core, nanoseconds waiting for one, times it got one.
fn run_and_queued(text: &str) -> Option<(Duration, Duration)> {
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok().map(Duration::from_nanos);
    Some((next()?, next()?))
}

/// `stat`: number, name in brackets (which may hold brackets itself), state.
fn name_and_state(text: &str) -> Option<(&str, char)> {
    let (begin, rest) = text.split_once('(')?;
    begin.trim().parse::<u32>().ok()?;
    let (name, state) = rest.rsplit_once(") ")?;
    Some((name, state.chars().next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn threads_of_a_pool_are_one_stage() {
        assert_eq!(["read-0", "read-12", "pack", "a-b", "a-"].map(stage_of), ["read", "read", "pack", "a-b", "a-"]);
    }

    #[test]
    fn the_systems_words_are_understood() {
        let text = "12345 678 9\n";
        assert_eq!(run_and_queued(text), Some((Duration::from_nanos(12345), Duration::from_nanos(678))));
        assert_eq!(run_and_queued("1"), None);
        assert_eq!(name_and_state("77 (sync) D 1 77 77 0"), Some(("sync", 'D')));
        assert_eq!(name_and_state("77 (a) b) R 1"), Some(("a) b", 'R')));
        assert_eq!(name_and_state("gone"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_that_works_is_seen_working_and_one_that_sleeps_is_not() {
        let has_ended = AtomicBool::new(false);
        let working = AtomicU32::new(0);
        let seen = std::thread::scope(|scope| {
            let work = || {
                // Until the watcher has certainly looked often enough: no clock decides.
                while !has_ended.load(Ordering::Acquire) {
                    working.fetch_add(1, Ordering::Relaxed);
                }
            };
            std::thread::Builder::new().name("worker-3".into()).spawn_scoped(scope, work).unwrap();
            let idle = || {
                while !has_ended.load(Ordering::Acquire) {
                    sleep(Duration::from_millis(1));
                }
            };
            std::thread::Builder::new().name("idler".into()).spawn_scoped(scope, idle).unwrap();
            let watching = scope.spawn(|| watch(std::process::id(), &has_ended));
            // Five ticks of a slow clock on a core of its own, as the system counts them itself.
            while working_time() < Duration::from_millis(100) {
                sleep(Duration::from_millis(5));
            }
            has_ended.store(true, Ordering::Release);
            watching.join().unwrap()
        });
        let (worker, idler) = (seen["worker"], seen["idler"]);
        assert_eq!((worker.threads, idler.threads), (1, 1));
        assert!(worker.run > Duration::ZERO && worker.run > idler.run, "{worker:?} {idler:?}");
    }

    /// Returns the time that the threads called `worker-3` of this process have run.
    #[cfg(target_os = "linux")]
    fn working_time() -> Duration {
        let tasks = numbers_in(Path::new("/proc/self/task")).unwrap().into_iter();
        let mut times = tasks.filter_map(|number| {
            let mut thread = Thread::open(Path::new("/proc/self/task"), number)?;
            thread.look(Duration::ZERO);
            (thread.name == "worker-3").then_some(thread.times.run)
        });
        times.next().unwrap_or_default()
    }
}
