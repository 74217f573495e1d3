//! Progress of a run: bars on a terminal, plain lines elsewhere. All of it on standard error.

use super::interrupt;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use siltstone_lab::experiment::{Row, row_text};
use siltstone_lab::run::{PlannedStep, Watch};
use std::cell::Cell;
use std::io::{IsTerminal, stderr};
use std::time::Duration;

/// Shows until it is dropped.
pub(super) struct Progress {
    bars: Option<Bars>,
}

struct Bars {
    both: MultiProgress,
    /// All of it, in parts of a step: experiments, each on each input.
    whole: ProgressBar,
    /// Runs of the present one.
    runs: ProgressBar,
    /// Number of steps before the present one.
    step: Cell<u64>,
}

/// Parts of a step on the bar of all steps.
const STEP_PARTS: u64 = 1000;

impl Progress {
    pub(super) fn begin() -> Self {
        let bars = stderr().is_terminal().then(|| {
            let both = MultiProgress::new();
            let whole = both.add(bar("{msg} {wide_bar} {elapsed} gone, {eta} to go"));
            let runs = both.add(bar("run {pos} of {len} {bar:20} {eta} to go: {wide_msg}"));
            // So that time is seen to go by within a long run.
            whole.enable_steady_tick(Duration::from_secs(1));
            Bars { both, whole, runs, step: Cell::new(0) }
        });
        Self { bars }
    }
}

fn bar(template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(0).with_style(style.progress_chars("=> "))
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bars) = &self.bars {
            bars.runs.finish_and_clear();
            bars.whole.finish_and_clear();
        }
    }
}

impl Watch for Progress {
    fn is_interrupted(&self) -> bool {
        interrupt::is_asked()
    }

    fn begins(&self, step: &PlannedStep, number: usize, of: usize) {
        let name = step.text();
        match &self.bars {
            Some(bars) => {
                let is_first = bars.whole.length() == Some(0);
                bars.step.set(number as u64);
                bars.whole.set_length(of as u64 * STEP_PARTS);
                bars.whole.set_position(bars.step.get() * STEP_PARTS);
                bars.whole.set_message(format!("{} of {of}: {name}", number + 1));
                if is_first {
                    // What an earlier run did is not this one's speed.
                    bars.whole.reset_eta();
                }
                bars.runs.reset();
                bars.runs.set_length(0);
                bars.runs.set_message("preparing");
            }
            None => eprintln!("{} of {of}: {name}", number + 1),
        }
    }

    fn turns(&self, done: u64, of: u64, parameters: &Row) {
        if let Some(bars) = &self.bars {
            bars.runs.set_length(of);
            bars.runs.set_position(done);
            bars.whole.set_position(bars.step.get() * STEP_PARTS + done * STEP_PARTS / of.max(1));
            bars.runs.set_message(row_text(parameters));
        }
    }

    fn says(&self, line: &str) {
        match &self.bars {
            Some(bars) => bars.both.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }
}
