//! Running other programs: aloud (their output is the user's), quietly (their output is ours), measured (wall time,
//! processor time and peak memory of that one child, from `wait4`), or beside us. A failure of one that is waited for
//! always names the whole command line and shows what it said.

use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use wait4::{ResUse, Wait4};

/// No program takes longer until it serves.
const START_MAX: Duration = Duration::from_mins(1);

/// Longest silence of a program that takes long.
const TELL_EVERY: Duration = Duration::from_secs(4);

/// Cost of one run of a program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Wall time.
    pub wall: Duration,
    /// Processor time, user and system.
    pub processor: Duration,
    /// Largest resident set of the program, in bytes.
    pub peak_bytes: u64,
}

impl Cost {
    /// The cost of one program after another: times add up, the peak is the larger.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            wall: self.wall + next.wall,
            processor: self.processor + next.processor,
            peak_bytes: self.peak_bytes.max(next.peak_bytes),
        }
    }
}

/// The command line as one would type it, for messages.
pub fn command_line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let words = std::iter::once(program.file_name().unwrap_or(program.as_os_str())).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// Runs `command` with our own input and output, after printing it.
pub fn run(command: &mut Command) -> Result<()> {
    let line = command_line(command);
    eprintln!("$ {line}");
    let status = command.status().with_context(|| format!("`{line}` could not be started"))?;
    ensure!(status.success(), "`{line}` failed: {status}");
    Ok(())
}

/// Runs `command` like [`run`]. A program that draws its progress on a terminal is silent for long where there is none:
/// then every few seconds a line says what is being done.
pub fn run_telling(command: &mut Command, what: &str) -> Result<()> {
    if std::io::stderr().is_terminal() {
        return run(command);
    }
    let (ended, waiting) = mpsc::channel::<()>();
    let begin = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while waiting.recv_timeout(TELL_EVERY) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{what}: {} s", begin.elapsed().as_secs());
            }
        });
        let result = run(command);
        drop(ended);
        result
    })
}

/// Runs `command` and returns all it said and its exit status, whatever that is.
pub fn try_quietly(command: &mut Command) -> Result<Output> {
    let line = command_line(command);
    command.stdin(Stdio::null()).output().with_context(|| format!("`{line}` could not be started"))
}

/// Runs `command` and returns its standard output; fails if it does.
pub fn quietly(command: &mut Command) -> Result<String> {
    let output = try_quietly(command)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed: {}\n{}", command_line(command), output.status, said.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs `command` on the input that `write` gives it, without its output; fails if it does.
pub fn fed(command: &mut Command, write: impl FnOnce(&mut BufWriter<ChildStdin>) -> Result<()>) -> Result<()> {
    let line = command_line(command);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let mut child = child.with_context(|| format!("`{line}` could not be started"))?;
    let mut input = BufWriter::with_capacity(1 << 20, child.stdin.take().context("it has an input")?);
    write(&mut input)?;
    drop(input.into_inner()?);
    let status = child.wait()?;
    ensure!(status.success(), "`{line}` failed: {status}");
    Ok(())
}

/// Runs `command` and measures it; its output goes to a file and is shown only if it fails.
pub fn measured(command: &mut Command) -> Result<Cost> {
    measured_saying(command).map(|(cost, _)| cost)
}

/// Like [`measured`], and returns its standard output too.
pub fn measured_saying(command: &mut Command) -> Result<(Cost, String)> {
    measured_by(command, |child| Ok((child.wait4()?, ()))).map(|(cost, said, ())| (cost, said))
}

/// Like [`measured_saying`]; meanwhile `watch`, on a thread of its own, is given the process and whether it has ended.
pub fn measured_watched<W: Send>(
    command: &mut Command,
    watch: impl FnOnce(u32, &AtomicBool) -> W + Send,
) -> Result<(Cost, String, W)> {
    measured_by(command, |child| {
        let (process, has_ended) = (child.id(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let watching = scope.spawn(|| watch(process, &has_ended));
            let used = child.wait4();
            has_ended.store(true, Ordering::Release);
            let watched = watching.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok((used?, watched))
        })
    })
}

/// Like [`ended_by`], and fails if the program does.
fn measured_by<W>(command: &mut Command, wait: impl FnOnce(Child) -> Result<(ResUse, W)>) -> Result<(Cost, String, W)> {
    let (status, cost, [said, complained], watched) = ended_by(command, wait)?;
    if !status.success() {
        bail!("`{}` failed: {status}\n{}", command_line(command), format!("{said}{complained}").trim_end());
    }
    Ok((cost, said, watched))
}

/// Starts `command` and measures it until `wait` is back, which has to wait for its end; returns standard output and
/// standard error, too.
fn ended_by<W>(
    command: &mut Command,
    wait: impl FnOnce(Child) -> Result<(ResUse, W)>,
) -> Result<(ExitStatus, Cost, [String; 2], W)> {
    let line = command_line(command);
    let (mut said, mut complained) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(complained.try_clone()?);
    forget_own_peak();
    let begin = Instant::now();
    let child = command.spawn().with_context(|| format!("`{line}` could not be started"))?;
    let (ResUse { status, rusage }, watched) = wait(child)?;
    let cost = Cost { wall: begin.elapsed(), processor: rusage.utime + rusage.stime, peak_bytes: rusage.maxrss };
    Ok((status, cost, [text_of(&mut said)?, text_of(&mut complained)?], watched))
}

/// Linux counts the peak of whoever starts a program as that program's own (`setmax_mm_hiwater_rss` in its `exec`). So
/// ours is set back to what we hold now, a few MiB, below which no peak is told apart. Where that cannot be done, peaks
/// may be ours.
fn forget_own_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn text_of(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// End of a program that may fail.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its exit status; `None` if a signal ended it.
    pub code: Option<i32>,
    /// True if its time was over and it was to be killed.
    pub overdue: bool,
    /// Standard output, then standard error.
    pub said: String,
    /// Time and memory it took.
    pub cost: Cost,
}

/// Runs `command` to its end, whatever that is, but kills it (SIGKILL) after `limit`.
pub fn ended_within(command: &mut Command, limit: Duration) -> Result<Ended> {
    const PAUSE: Duration = Duration::from_millis(2);
    let (status, cost, said, overdue) = ended_by(command, |mut child| {
        let (begin, mut overdue) = (Instant::now(), false);
        loop {
            if let Some(used) = child.try_wait4()? {
                return Ok((used, overdue));
            }
            let left = limit.saturating_sub(begin.elapsed());
            if !overdue && left.is_zero() {
                overdue = true;
                // A child that has already ended is still ours to wait for, so the signal cannot reach a stranger.
                child.kill()?;
            }
            std::thread::sleep(if overdue { PAUSE } else { PAUSE.min(left) });
        }
    })?;
    Ok(Ended { code: status.code(), overdue, said: said.concat(), cost })
}

/// A program that runs beside us; it is killed (SIGKILL) with the value.
#[derive(Debug)]
pub struct Owned(pub Child);

impl Owned {
    /// Kills it, if it still runs, and waits for its end.
    pub fn kill(&mut self) -> io::Result<()> {
        self.0.kill()?;
        self.0.wait().map(drop)
    }

    /// Waits until it serves, as `is_ready` sees; fails if it ends before, or takes long. Messages call it `name`.
    pub fn wait_until(&mut self, name: &str, mut is_ready: impl FnMut() -> bool) -> Result<()> {
        let begin = Instant::now();
        while !is_ready() {
            if let Some(status) = self.0.try_wait()? {
                bail!("{name} ended while it started: {status}");
            }
            ensure!(begin.elapsed() < START_MAX, "{name} did not start within {} s", START_MAX.as_secs());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command_and_what_it_said() {
        let error = quietly(Command::new("sh").args(["-c", "echo no such luck >&2; exit 3"])).unwrap_err().to_string();
        assert!(error.contains("sh -c") && error.contains("no such luck") && error.contains('3'), "{error}");
        let error = measured(Command::new("sh").args(["-c", "echo nor now; exit 4"])).unwrap_err().to_string();
        assert!(error.contains("nor now"), "{error}");
    }

    #[test]
    fn a_failure_is_told_where_progress_is_told_too() {
        let begin = Instant::now();
        run_telling(Command::new("sh").args(["-c", "exit 0"]), "nothing").unwrap();
        let error = run_telling(Command::new("sh").args(["-c", "exit 5"]), "nothing").unwrap_err().to_string();
        assert!(error.contains("exit 5") && begin.elapsed() < TELL_EVERY, "{error}");
    }

    #[test]
    fn measures_time_and_memory_of_the_child() {
        let cost = measured(Command::new("sleep").arg("0.05")).unwrap();
        assert!(cost.wall >= Duration::from_millis(50));
        assert!(cost.peak_bytes > 0);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_that_we_held_before_is_not_the_childs() {
        const HELD: usize = 256 << 20;
        drop(std::hint::black_box(vec![1_u8; HELD]));
        let cost = measured(&mut Command::new("true")).unwrap();
        assert!(cost.peak_bytes < HELD as u64, "{} bytes", cost.peak_bytes);
    }

    #[test]
    fn a_measured_program_is_heard() {
        let (_, said) = measured_saying(Command::new("sh").args(["-c", "echo this; echo not this >&2"])).unwrap();
        assert_eq!(said, "this\n");
    }

    #[test]
    fn a_watcher_sees_the_process_and_its_end() {
        let watch = |process: u32, has_ended: &AtomicBool| {
            let was_there = Path::new(&format!("/proc/{process}")).exists() || cfg!(not(target_os = "linux"));
            while !has_ended.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            was_there
        };
        let (_, said, was_there) =
            measured_watched(Command::new("sh").args(["-c", "sleep 0.05; echo x"]), watch).unwrap();
        assert!(was_there && said == "x\n");
    }

    #[test]
    fn a_program_that_may_fail_is_told_apart_from_one_that_does_not_end() {
        let failed = ended_within(Command::new("sh").args(["-c", "echo why >&2; exit 4"]), Duration::from_mins(1));
        let failed = failed.unwrap();
        assert!(failed.code == Some(4) && !failed.overdue && failed.said == "why\n", "{failed:?}");
        let overdue = ended_within(Command::new("sleep").arg("60"), Duration::from_millis(20)).unwrap();
        assert!(overdue.overdue && overdue.code.is_none());
    }

    #[test]
    fn a_program_beside_us_that_ends_is_not_waited_for() {
        let mut ended = Owned(Command::new("sh").args(["-c", "exit 6"]).spawn().unwrap());
        let error = ended.wait_until("it", || false).unwrap_err().to_string();
        assert!(error.contains("it ended while it started") && error.contains('6'), "{error}");
        ended.kill().unwrap();
    }
}
