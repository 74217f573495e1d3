//! Walking down without a graph in memory: container by container, so that indexes are opened as seldom as may be.

use std::collections::BTreeMap;

/// Chunks yet to be looked at, by container.
#[derive(Debug)]
pub(crate) struct Pending<N> {
    by_container: BTreeMap<usize, Vec<N>>,
}

impl<N> Pending<N> {
    /// Nothing.
    pub(crate) fn new() -> Self {
        Self { by_container: BTreeMap::new() }
    }

    /// Adds what lies in a container.
    pub(crate) fn push(&mut self, container: usize, node: N) {
        self.by_container.entry(container).or_default().push(node);
    }

    /// Takes all that lies in the first container.
    pub(crate) fn pop(&mut self) -> Option<(usize, Vec<N>)> {
        self.by_container.pop_first()
    }
}
