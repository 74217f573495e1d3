//! Problems that are told to whoever looks after a mount or a server, each once.

use crate::Tell;
use crate::snapshots::lock;
use std::collections::HashSet;
use std::sync::Mutex;

/// Problems that are remembered; what comes beyond is not told.
const TOLD_MAX: usize = 1000;

/// Tells problems, each once.
pub(crate) struct Told {
    tell: Tell,
    known: Mutex<HashSet<String>>,
}

impl Told {
    /// Tells by this function.
    pub(crate) fn new(tell: Tell) -> Self {
        Self { tell, known: Mutex::default() }
    }

    /// Tells a problem, unless it was told before.
    pub(crate) fn once(&self, text: String) {
        let mut known = lock(&self.known);
        if known.len() < TOLD_MAX && !known.contains(&text) {
            (self.tell)(&text);
            known.insert(text);
        }
    }

    /// Tells several.
    pub(crate) fn all(&self, problems: Vec<String>) {
        for problem in problems {
            self.once(problem);
        }
    }
}
