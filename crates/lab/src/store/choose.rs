//! Which containers of a segment are worth a reference: capping, and MeGA's selector of bases. Pure counting.

use std::collections::{HashMap, HashSet};

/// Number of a container.
pub(super) type Container = u32;

/// Rule by which references are refused to keep locality.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    /// Nothing.
    Everything,
    /// References into all but so many containers, the most referenced of a segment: for duplicates and for bases
    /// (Lillibridge, FAST'13; as MeGA, ATC 2022, section 5.2 has it).
    Capping(usize),
    /// Bases in containers that a segment has fewer than so many bases in (MeGA, ATC 2022, section 4.2).
    Threshold(u32),
}

/// The containers that a segment may refer to, of the old ones it would: `duplicates` and `bases` name the container of
/// each reference.
#[derive(Debug)]
pub(super) struct Allowed {
    for_duplicates: Option<HashSet<Container>>,
    for_bases: Option<HashSet<Container>>,
}

impl Allowed {
    /// By this rule.
    pub(super) fn by(rule: Rule, duplicates: &[Container], bases: &[Container]) -> Self {
        match rule {
            Rule::Everything => Self { for_duplicates: None, for_bases: None },
            Rule::Capping(level) => {
                let kept = most_referenced(duplicates.iter().chain(bases).copied(), level);
                Self { for_duplicates: Some(kept.clone()), for_bases: Some(kept) }
            }
            Rule::Threshold(least) => {
                let counts = counts(bases.iter().copied());
                let dense = counts.into_iter().filter(|(_, count)| *count >= least).map(|(container, _)| container);
                Self { for_duplicates: None, for_bases: Some(dense.collect()) }
            }
        }
    }

    /// Tells whether a duplicate there is left out.
    pub(super) fn duplicate(&self, container: Container) -> bool {
        self.for_duplicates.as_ref().is_none_or(|kept| kept.contains(&container))
    }

    /// Tells whether a base there is read.
    pub(super) fn base(&self, container: Container) -> bool {
        self.for_bases.as_ref().is_none_or(|kept| kept.contains(&container))
    }
}

/// Returns the containers referred to most; of those referred to as often, the newer.
fn most_referenced(references: impl Iterator<Item = Container>, level: usize) -> HashSet<Container> {
    let mut counted: Vec<_> = counts(references).into_iter().map(|(container, count)| (count, container)).collect();
    counted.sort_unstable_by(|one, other| other.cmp(one));
    counted.into_iter().take(level).map(|(_, container)| container).collect()
}

fn counts(references: impl Iterator<Item = Container>) -> HashMap<Container, u32> {
    let mut counts = HashMap::new();
    references.for_each(|container| *counts.entry(container).or_default() += 1);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deterministic::Sequence;

    fn references(sequence: &mut Sequence) -> Vec<Container> {
        (0..sequence.below(60)).map(|_| u32::try_from(sequence.below(1 + sequence.clone().below(9))).unwrap()).collect()
    }

    fn count(of: Container, references: &[Container]) -> usize {
        references.iter().filter(|container| **container == of).count()
    }

    #[test]
    fn capping_keeps_as_many_as_it_may_and_nothing_less_referenced_than_what_it_drops() {
        let mut sequence = Sequence::new(5);
        for level in [0, 1, 2, 4, 8] {
            for _ in 0..50 {
                let (duplicates, bases) = (references(&mut sequence), references(&mut sequence));
                let all = [duplicates.clone(), bases.clone()].concat();
                let allowed = Allowed::by(Rule::Capping(level), &duplicates, &bases);
                let used: HashSet<_> = all.iter().copied().collect();
                let (kept, dropped): (Vec<_>, Vec<_>) =
                    used.iter().partition(|container| allowed.duplicate(**container));
                assert_eq!(kept.len(), level.min(used.len()));
                assert!(used.iter().all(|container| allowed.base(*container) == allowed.duplicate(*container)));
                let least = kept.iter().map(|container| count(*container, &all)).min();
                let most = dropped.iter().map(|container| count(*container, &all)).max();
                assert!(least.is_none() || most.is_none_or(|most| most <= least.unwrap()));
            }
        }
    }

    #[test]
    fn the_selector_counts_bases_alone() {
        let mut sequence = Sequence::new(6);
        for least in [0, 1, 3, 9] {
            for _ in 0..50 {
                let (duplicates, bases) = (references(&mut sequence), references(&mut sequence));
                let allowed = Allowed::by(Rule::Threshold(least), &duplicates, &bases);
                assert!(duplicates.iter().all(|container| allowed.duplicate(*container)));
                assert!(bases.iter().all(|base| allowed.base(*base) == (count(*base, &bases) >= least as usize)));
            }
        }
    }

    #[test]
    fn without_a_rule_all_is_allowed() {
        let allowed = Allowed::by(Rule::Everything, &[1], &[2]);
        assert!(allowed.duplicate(1) && allowed.base(2) && allowed.base(77));
    }
}
