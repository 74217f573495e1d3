//! An observer that keeps what it is told.

use siltstone_engine::fs::Problem;
use siltstone_engine::{Notice, Observer};
use std::sync::{Arc, Mutex};

#[derive(Default, Debug, Clone)]
pub struct Log(Arc<Kept>);

#[derive(Default, Debug)]
struct Kept {
    problems: Mutex<Vec<Problem>>,
    notices: Mutex<Vec<Notice>>,
}

impl Log {
    pub fn problems(&self) -> Vec<String> {
        self.0.problems.lock().expect("a lock").iter().map(ToString::to_string).collect()
    }

    /// All notices but that a backup is the first of its series, which every test begins with.
    pub fn notices(&self) -> Vec<Notice> {
        let all = self.0.notices.lock().expect("a lock").clone();
        all.into_iter().filter(|notice| !matches!(notice, Notice::NewSeries { .. })).collect()
    }

    /// Whether a problem mentions this.
    pub fn tells_of(&self, words: &str) -> bool {
        self.problems().iter().any(|problem| problem.contains(words))
    }
}

impl From<&Log> for Arc<dyn Observer> {
    fn from(log: &Log) -> Self {
        Arc::new(log.clone())
    }
}

impl Observer for Log {
    fn problem(&self, problem: &Problem) {
        self.0.problems.lock().expect("a lock").push(problem.clone());
    }

    fn notice(&self, notice: &Notice) {
        self.0.notices.lock().expect("a lock").push(notice.clone());
    }
}
