//! An observer that keeps what it is told.

use siltstone_engine::fs::Problem;
use siltstone_engine::{Notice, Observer};
use std::sync::Mutex;

#[derive(Default, Debug)]
pub struct Log {
    problems: Mutex<Vec<Problem>>,
    notices: Mutex<Vec<Notice>>,
}

impl Log {
    pub fn problems(&self) -> Vec<String> {
        self.problems.lock().expect("a lock").iter().map(ToString::to_string).collect()
    }

    pub fn notices(&self) -> Vec<Notice> {
        self.notices.lock().expect("a lock").clone()
    }

    /// Whether a problem mentions this.
    pub fn tells_of(&self, words: &str) -> bool {
        self.problems().iter().any(|problem| problem.contains(words))
    }
}

impl Observer for Log {
    fn problem(&self, problem: &Problem) {
        self.problems.lock().expect("a lock").push(problem.clone());
    }

    fn notice(&self, notice: &Notice) {
        self.notices.lock().expect("a lock").push(notice.clone());
    }
}
