//! How far a run is: bars on a terminal, plain lines elsewhere. All of it on standard error.

use super::interrupt;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use siltstone_lab::experiment::{Row, row_text};
use siltstone_lab::run::{PlannedStep, Watch};
use std::io::{IsTerminal, stderr};
use std::time::Duration;

/// Shows until it is dropped.
pub(super) struct Progress {
    bars: Option<Bars>,
}

struct Bars {
    both: MultiProgress,
    /// Experiments, each on each input.
    steps: ProgressBar,
    /// Runs of the present one.
    runs: ProgressBar,
}

impl Progress {
    pub(super) fn begin() -> Self {
        let bars = stderr().is_terminal().then(|| {
            let both = MultiProgress::new();
            let steps = both.add(bar("{pos:>4} of {len} experiments {wide_bar} {elapsed} gone, {eta:>4} to go"));
            let runs = both.add(bar("{pos:>4} of {len} runs {bar:20} {eta:>4} to go: {wide_msg}"));
            // So that time is seen to go by within a long run.
            steps.enable_steady_tick(Duration::from_secs(1));
            Bars { both, steps, runs }
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
            bars.steps.finish_and_clear();
        }
    }
}

impl Watch for Progress {
    fn is_interrupted(&self) -> bool {
        interrupt::is_asked()
    }

    fn begins(&self, step: &PlannedStep, number: usize, of: usize) {
        let on = if step.key.data.is_empty() { String::new() } else { format!(" on {}", step.key.data) };
        let name = format!("{}{on}", step.key.experiment);
        match &self.bars {
            Some(bars) => {
                bars.steps.set_length(of as u64);
                bars.steps.set_position(number as u64);
                bars.runs.reset();
                bars.runs.set_length(0);
                bars.runs.set_message(name);
            }
            None => eprintln!("{} of {of}: {name}", number + 1),
        }
    }

    fn turns(&self, done: u64, of: u64, parameters: &Row) {
        if let Some(bars) = &self.bars {
            bars.runs.set_length(of);
            bars.runs.set_position(done);
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
