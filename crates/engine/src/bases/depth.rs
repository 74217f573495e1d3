//! Walking down one chain after another, bases before what hangs on them.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// The depth of what hangs on itself, or cannot be looked at.
pub(crate) const BOTTOMLESS: u32 = u32::MAX;

/// Where a walk down stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step<N> {
    /// A node that leads back to itself. Not gone down again.
    Cycle(N),
    /// A node not met before, and how many there are from the start down to it, both included.
    Down(N, usize),
}

/// Whatever is walked down.
pub(crate) trait Descent {
    /// Chunks or regions that hang on others.
    type Node: Copy + Eq + Hash;
    /// A base as it is met.
    type Base;
    /// Why the walk ends early.
    type Error;

    /// The node that a base lies in.
    fn node_of(base: &Self::Base) -> Self::Node;

    /// Tells whether a node need not be looked at, because it is known from elsewhere.
    fn is_known(&mut self, node: Self::Node) -> bool;

    /// Takes note of a step; an error ends the walk.
    fn step(&mut self, step: Step<Self::Node>) -> Result<(), Self::Error>;

    /// The bases of a node.
    fn bases(&mut self, node: Self::Node) -> Result<Vec<Self::Base>, Self::Error>;

    /// Takes a node whose bases were all taken before, but for those on a cycle.
    fn leave(&mut self, node: Self::Node, bases: Vec<Self::Base>);
}

/// A node on the way down.
struct Descending<D: Descent> {
    node: D::Node,
    bases: Vec<D::Base>,
    /// Which base is looked at next.
    next: usize,
}

/// Walks down from `start`: every node below it is left once, after all its bases, `start` last.
///
/// # Errors
/// The first of the descent.
pub(crate) fn descend<D: Descent>(descent: &mut D, start: D::Node) -> Result<(), D::Error> {
    let (mut on_the_way, mut left) = (HashSet::from([start]), HashSet::new());
    descent.step(Step::Down(start, 1))?;
    let mut descending = vec![Descending::<D> { node: start, bases: descent.bases(start)?, next: 0 }];
    while let Some(lowest) = descending.last_mut() {
        let Some(base) = lowest.bases.get(lowest.next) else {
            if let Some(Descending { node, bases, .. }) = descending.pop() {
                on_the_way.remove(&node);
                left.insert(node);
                descent.leave(node, bases);
            }
            continue;
        };
        lowest.next += 1;
        let node = D::node_of(base);
        if on_the_way.contains(&node) {
            descent.step(Step::Cycle(node))?;
        } else if !left.contains(&node) && !descent.is_known(node) {
            descent.step(Step::Down(node, descending.len() + 1))?;
            on_the_way.insert(node);
            descending.push(Descending { node, bases: descent.bases(node)?, next: 0 });
        }
    }
    Ok(())
}

/// Depths being found.
struct Depths<'d, N, F> {
    found: &'d mut HashMap<N, u32>,
    bases_of: F,
}

impl<N: Copy + Eq + Hash, E, F: FnMut(N) -> Result<Option<Vec<N>>, E>> Descent for Depths<'_, N, F> {
    type Node = N;
    type Base = N;
    type Error = E;

    fn node_of(base: &N) -> N {
        *base
    }

    fn is_known(&mut self, node: N) -> bool {
        self.found.contains_key(&node)
    }

    fn step(&mut self, step: Step<N>) -> Result<(), E> {
        if let Step::Cycle(node) = step {
            self.found.insert(node, BOTTOMLESS);
        }
        Ok(())
    }

    fn bases(&mut self, node: N) -> Result<Vec<N>, E> {
        let bases = (self.bases_of)(node)?;
        if bases.is_none() {
            self.found.insert(node, BOTTOMLESS);
        }
        Ok(bases.unwrap_or_default())
    }

    fn leave(&mut self, node: N, bases: Vec<N>) {
        if !self.found.contains_key(&node) {
            let deepest = bases.iter().filter_map(|base| self.found.get(base)).max();
            self.found.insert(node, deepest.map_or(0, |deepest| deepest.saturating_add(1)));
        }
    }
}

/// Returns the longest chain that a node hangs on, in steps; [`BOTTOMLESS`] if it has no end.
/// `bases_of` gives nothing for a node that cannot be looked at. `found` keeps all depths that were found on the way.
///
/// # Errors
/// The first of `bases_of`.
pub(crate) fn depth_of<N: Copy + Eq + Hash, E>(
    node: N,
    found: &mut HashMap<N, u32>,
    bases_of: impl FnMut(N) -> Result<Option<Vec<N>>, E>,
) -> Result<u32, E> {
    if let Some(depth) = found.get(&node) {
        return Ok(*depth);
    }
    descend(&mut Depths { found, bases_of }, node)?;
    Ok(found.get(&node).copied().unwrap_or(BOTTOMLESS))
}
