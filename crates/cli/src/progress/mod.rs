//! Progress as the user sees it while the engine works: a line on the terminal, or JSON messages; problems and notices
//! as they come.
//!
//! The engine's threads only count; a thread of our own draws, a few times a second. Lines of other kinds are printed
//! with the drawn line taken away for that moment. On SIGUSR1 one reading is printed, whatever else is shown.

mod counts;
mod line;
mod messages;
mod notices;
mod rate;
mod ticker;

pub(crate) use counts::Counts;
pub(crate) use messages::Work;

use crate::context::Context;
use crate::environment;
use crate::error::CliError;
use crate::interrupt::{self, Working};
use crate::output::Output;
use crate::render::{Path, Transfer, counted};
use counts::{Counters, Minor};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use messages::{EntryMessage, ErrorMessage, NoticeMessage, StatusMessage};
use rate::Rate;
use serde::Serialize;
use siltstone_engine::fs::{Problem, ProblemKind, SkipReason};
use siltstone_engine::{EntryAction, Notice, Observer};
use siltstone_remote::Traffic;
use siltstone_store::catalog::EntryPath;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use terminal_size::{Width, terminal_size_of};
use ticker::Ticker;

/// Redraws per second on a terminal: enough to look alive, few enough to select text and leave the processor alone.
const TERMINAL_FPS: f64 = 10.0;
/// JSON status messages per second.
const JSON_FPS: f64 = 1.0;
const FPS_MAX: f64 = 60.0;
/// Width of a terminal that does not tell its own.
const COLUMNS_DEFAULT: u16 = 80;
/// Causes of damage that are remembered.
const CAUSES_MAX: usize = 1000;

/// Shows the progress of one piece of work, from `begin` until it is dropped.
pub(crate) struct Progress {
    state: Arc<State>,
    ticker: Option<Ticker>,
    _working: Working,
}

struct State {
    work: Work,
    output: Output,
    began: Instant,
    counters: Counters,
    traffic: Traffic,
    minor: Minor,
    /// Watched leases that were told: who tries again meets them again.
    watched: Mutex<HashSet<String>>,
    /// Reasons that were told of what cannot be read: damage of one object hurts many files.
    causes: Mutex<HashSet<String>>,
    /// The entry that the work has come to, where that is shown; none before the first.
    current: Mutex<Option<EntryPath>>,
    shows_paths: bool,
    line: Option<ProgressBar>,
}

impl Progress {
    /// Begins to show. From here on the first interrupt is a request that the engine polls.
    ///
    /// # Errors
    /// [`CliError::BadVariable`] if `$SILT_PROGRESS_FPS` is no rate.
    pub(crate) fn begin(work: Work, context: &Context) -> Result<Self, CliError> {
        let (wanted, output) = (wanted_fps()?, context.output);
        let line = output.draws_progress().then(terminal_line);
        let state = Arc::new(State {
            work,
            output,
            began: Instant::now(),
            counters: Counters::default(),
            traffic: context.traffic.clone(),
            minor: Minor::default(),
            watched: Mutex::default(),
            causes: Mutex::default(),
            current: Mutex::default(),
            shows_paths: !output.quiet && (output.json || line.is_some()),
            line,
        });
        let usual = if output.json { Some(JSON_FPS) } else { state.line.as_ref().map(|_| TERMINAL_FPS) };
        let fps = wanted.or(usual).filter(|_| !output.quiet);
        let ticker = fps.map(|fps| {
            let (state, mut rate) = (Arc::clone(&state), Rate::default());
            Ticker::start(Duration::from_secs_f64(1.0 / fps), move || state.tick(&mut rate))
        });
        let asked = Arc::clone(&state);
        Ok(Self { state, ticker, _working: Working::begin(move || asked.status()) })
    }

    /// Returns whoever is to be told of the work.
    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        Arc::<State>::clone(&self.state)
    }

    /// Returns the counts so far.
    pub(crate) fn counts(&self) -> Counts {
        self.state.counts()
    }

    /// How long it has taken so far.
    pub(crate) fn elapsed(&self) -> Duration {
        self.state.began.elapsed()
    }

    /// Ends the show and gives the terminal back.
    pub(crate) fn end(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        if let Some(ticker) = self.ticker.take() {
            ticker.stop();
        }
        if let Some(line) = &self.state.line {
            line.finish_and_clear();
        }
        for (kind, untold) in self.state.minor.take_untold() {
            let (more, words) = (counted(untold, "more entry"), kind.words());
            self.state.output.warn(format_args!("warning: {more}: {words}"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stop();
    }
}

impl State {
    fn counts(&self) -> Counts {
        self.counters.read(Transfer::of(&self.traffic))
    }

    fn tick(&self, rate: &mut Rate) {
        let counts = self.counts();
        let elapsed = self.began.elapsed();
        rate.sample(elapsed, counts.bytes_done);
        match &self.line {
            Some(line) => {
                let columns =
                    terminal_size_of(std::io::stderr()).map_or(COLUMNS_DEFAULT, |(Width(columns), _)| columns);
                let current = self.current().map(|path| path.visible());
                let reading = line::Reading { noun: self.work.noun(), counts: &counts, elapsed, rate };
                line.set_message(reading.lines(current.as_deref(), usize::from(columns)));
            }
            None => self.show(&counts, elapsed, rate),
        }
    }

    /// One reading, asked for from outside; its speed is the mean so far.
    fn status(&self) {
        let (counts, elapsed, mut rate) = (self.counts(), self.began.elapsed(), Rate::default());
        rate.sample(Duration::ZERO, 0);
        rate.sample(elapsed, counts.bytes_done);
        self.aside(|| self.show(&counts, elapsed, &rate));
    }

    fn show(&self, counts: &Counts, elapsed: Duration, rate: &Rate) {
        if self.output.json {
            let (current, left) = (self.current(), rate.remaining(counts));
            self.message(&StatusMessage::new(self.work, counts, current.as_ref(), elapsed, left));
        } else {
            self.output.warn(line::Reading { noun: self.work.noun(), counts, elapsed, rate }.line());
        }
    }

    /// A JSON message. A closed output is noticed by the summary at the end.
    fn message(&self, message: &impl Serialize) {
        if self.work.prints_one_document() {
            self.output.json_aside(message);
        } else {
            let _ = self.output.json(message);
        }
    }

    /// The entry that the work has come to.
    fn current(&self) -> Option<Path> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Path::of)
    }

    /// Tells whether this is the first problem with content of this cause. Where too many are known all are first.
    fn is_first_of_cause(&self, problem: &Problem) -> bool {
        if problem.kind != ProblemKind::ContentDamaged {
            return true;
        }
        let mut causes = self.causes.lock().unwrap_or_else(PoisonError::into_inner);
        !causes.contains(&problem.reason) && (causes.len() >= CAUSES_MAX || causes.insert(problem.reason.clone()))
    }

    fn is_first_watch(&self, text: &str) -> bool {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned())
    }

    /// Prints with the drawn line out of the way.
    fn aside(&self, print: impl FnOnce()) {
        match &self.line {
            Some(line) => line.suspend(print),
            None => print(),
        }
    }
}

impl Observer for State {
    fn estimate(&self, files: u64, bytes: u64, complete: bool) {
        self.counters.estimate(files, bytes, complete);
    }

    fn advance(&self, files: u64, bytes: u64) {
        self.counters.advance(files, bytes);
    }

    fn entry(&self, path: &EntryPath, action: EntryAction, bytes: u64) {
        if action == EntryAction::Unchanged && self.output.verbosity < 2 {
            return;
        }
        let message = EntryMessage::new(self.work, path, action, bytes);
        self.aside(|| {
            if self.output.json {
                self.message(&message);
            } else {
                let _ = self.output.line(message.text());
            }
        });
    }

    fn wants_entries(&self) -> bool {
        self.output.verbosity > 0
    }

    fn at(&self, path: &EntryPath) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(path.clone());
    }

    fn wants_paths(&self) -> bool {
        self.shows_paths
    }

    fn duplicate(&self, bytes: u64) {
        self.counters.duplicate(bytes);
    }

    fn settle(&self, done: u64, found: u64) {
        self.counters.settle(done, found);
    }

    fn problem(&self, problem: &Problem) {
        self.counters.problem(problem.kind.is_minor());
        if problem.kind.is_minor() && !self.minor.is_told(problem.kind) {
            return;
        }
        self.aside(|| {
            if self.output.json {
                self.output.json_aside(&ErrorMessage::new(self.work, problem));
            } else {
                let word = if problem.kind.is_minor() { "warning" } else { "error" };
                if self.is_first_of_cause(problem) {
                    self.output.warn(format_args!("{word}: {problem}"));
                } else {
                    let (subject, what) = (&problem.subject, problem.kind.words());
                    self.output.warn(format_args!("{word}: {subject}: {what}, by the same cause"));
                }
            }
        });
    }

    fn notice(&self, notice: &Notice) {
        if matches!(notice, Notice::LeftOut { why, .. } if *why == SkipReason::Socket.words()) {
            self.counters.socket();
        }
        let words = notices::describe(notice);
        if words.is_detail && self.output.verbosity == 0 || self.output.quiet && !words.is_warning {
            return;
        }
        if matches!(notice, Notice::LeaseWatched { .. }) && !self.is_first_watch(&words.text) {
            return;
        }
        self.aside(|| {
            if self.output.json {
                self.message(&NoticeMessage::new(&words));
            } else {
                self.output.warn(&words.text);
            }
        });
    }

    fn is_cancelled(&self) -> bool {
        interrupt::is_asked()
    }
}

/// A line on standard error that holds nothing but our text; how often it changes is the ticker's decision.
fn terminal_line() -> ProgressBar {
    let style = ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style)
}

fn wanted_fps() -> Result<Option<f64>, CliError> {
    let name = "SILT_PROGRESS_FPS";
    match environment::parsed::<f64>(name)? {
        Some(fps) if fps > 0.0 && fps.is_finite() => Ok(Some(fps.min(FPS_MAX))),
        Some(fps) => {
            Err(CliError::BadVariable { name, value: fps.to_string(), reason: "expected a rate above 0".into() })
        }
        None => Ok(None),
    }
}
