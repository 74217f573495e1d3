//! Choosing what to forget: a [`ForgetPlan`] is a value that says what would be done, and why; making it writes
//! nothing.
//!
//! A policy decides for each group of snapshots by itself. What it must not do by accident is refused before anything
//! is removed: an empty policy, and rules that leave nothing of a group.

use super::choice::Choice;
use super::policy::{self, AHEAD, Decision, KeepPolicy, PARTIAL};
use super::recorded::RecordedPolicies;
use super::{ForgetOptions, ForgetSummary, forget};
use crate::snapshots::{Group, GroupKey, SnapshotFilter, SnapshotKey, SnapshotView, group, list_readable};
use crate::{EngineError, Resources};
use jiff::Zoned;
use siltstone_store::repository::Repository;
use siltstone_store::{SeriesId, SnapshotId, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Snapshots to forget.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "a command makes one")]
pub enum SnapshotSelection {
    /// Snapshots by their identities; of one marked as deleted, the mark ends if [`super::Marking::ends_given`].
    Given(Vec<SnapshotKey>),
    /// Snapshots that pass the filter and that the policy does not keep. Marks that are over end in their series; with
    /// [`super::Marking::ends_given`], the marks of all that pass.
    ByPolicy {
        /// Filter of the snapshots that are looked at.
        filter: SnapshotFilter,
        /// Fields whose equal values make a group; none: all are one group.
        group_by: Vec<GroupKey>,
        /// Rules. An empty policy removes all, where that is allowed and a filter chooses.
        policy: KeepPolicy,
        /// Moment and time zone that rules go by.
        now: Zoned,
    },
    /// Snapshots that pass the filter and that the policy recorded for their series does not keep; a series without one
    /// keeps all. Marks end as by a policy.
    ByRecordedPolicies {
        /// Filter of the snapshots that are looked at.
        filter: SnapshotFilter,
        /// Moment and time zone that rules go by.
        now: Zoned,
    },
    /// Marks alone, no live snapshot: marks end that pass the filter and are over; with
    /// [`super::Marking::ends_given`], all that pass.
    Marks {
        /// Filter of the snapshots that are looked at.
        filter: SnapshotFilter,
    },
}

/// Group of snapshots with the policy's decision on each, in the same order.
#[derive(Clone, Debug)]
pub struct DecidedGroup {
    /// The group, its snapshots oldest first.
    pub group: Group,
    /// The policy that was applied.
    pub policy: KeepPolicy,
    /// Decisions, one for each.
    pub decisions: Vec<Decision>,
}

impl DecidedGroup {
    /// Returns the snapshots that stay, or those that go, with the reasons of each.
    pub fn part(&self, keep: bool) -> (Vec<SnapshotView>, Vec<Vec<String>>) {
        self.each()
            .filter(|(_, decision)| decision.keep == keep)
            .map(|(view, decision)| (view.clone(), decision.reasons.clone()))
            .unzip()
    }

    /// Returns the snapshots that a clock far ahead has made: rules pass them over for ever.
    pub fn ahead(&self) -> impl Iterator<Item = &SnapshotView> {
        let ahead = self.each().filter(|(_, decision)| decision.reasons.iter().any(|reason| reason == AHEAD));
        ahead.map(|(view, _)| view)
    }

    fn each(&self) -> impl Iterator<Item = (&SnapshotView, &Decision)> {
        self.group.snapshots.iter().zip(&self.decisions)
    }

    /// Tells whether nothing stays of what rules decide on.
    fn is_emptied(&self) -> bool {
        let is_passed_over =
            |decision: &&Decision| decision.reasons.iter().any(|reason| [AHEAD, PARTIAL].contains(&reason.as_str()));
        let mut decided = self.decisions.iter().filter(|decision| !is_passed_over(decision)).peekable();
        decided.peek().is_some() && !decided.any(|decision| decision.keep)
    }
}

/// Live snapshot that stays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Identity of the snapshot.
    pub id: SnapshotId,
    /// The rules that keep it; none where no rule was asked.
    pub reasons: Vec<String>,
}

/// Outlook of a series: what would become of its snapshots.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SeriesOutlook {
    /// The series.
    pub series: SeriesId,
    /// Its name.
    pub name: String,
    /// Live snapshots that stay, oldest first.
    pub kept: Vec<Kept>,
    /// Snapshots that go at once.
    pub removed: BTreeSet<SnapshotId>,
    /// Snapshots that are marked as deleted.
    pub marked: BTreeSet<SnapshotId>,
    /// Snapshots marked as deleted before, which go now.
    pub ended: BTreeSet<SnapshotId>,
}

/// Plan of what is to be forgotten: made by [`plan_forget`], carried out by [`ForgetPlan::execute`].
#[derive(Debug)]
#[non_exhaustive]
pub struct ForgetPlan {
    /// Groups that the policy was applied to; none where no policy was.
    pub groups: Vec<DecidedGroup>,
    /// The series concerned, as they are now.
    pub series: Vec<SeriesOutlook>,
    /// Names of series for which no policy is recorded, where those were asked for: all of theirs stays.
    pub without_policy: Vec<String>,
    /// Damage of series that cannot be read: their snapshots were not looked at.
    pub unreadable: Vec<StoreError>,
    /// Options of carrying it out.
    pub options: ForgetOptions,
    /// Chosen snapshots; a later run of another may have removed some of it by the time this is carried out.
    chosen: Vec<SnapshotKey>,
}

/// Chooses what to forget. Nothing is written.
///
/// # Errors
/// [`EngineError::EmptyPolicy`], unless the options allow to remove all, then [`EngineError::RemovesAllUnfiltered`];
/// [`EngineError::NoRecordedPolicy`] and [`EngineError::RecordedPolicy`]; those of the repository. That no group and no
/// series may lose all of its snapshots is looked at when the plan is carried out.
pub fn plan_forget(
    repository: &Repository,
    selection: SnapshotSelection,
    options: &ForgetOptions,
) -> Result<ForgetPlan, EngineError> {
    repository.require_reading("forgetting snapshots")?;
    let mut plan = ForgetPlan {
        groups: Vec::new(),
        series: Vec::new(),
        without_policy: Vec::new(),
        unreadable: Vec::new(),
        options: options.clone(),
        chosen: Vec::new(),
    };
    match selection {
        SnapshotSelection::Given(chosen) => plan.chosen = chosen,
        SnapshotSelection::ByPolicy { filter, group_by, policy, now } => {
            plan.refuse_empty(&policy, &filter)?;
            for group in plan.groups_of(repository, &filter, &group_by)? {
                plan.decide(group, &policy, &now);
            }
            plan.add_marked(repository, filter)?;
        }
        SnapshotSelection::ByRecordedPolicies { filter, now } => {
            plan.decide_as_recorded(repository, &filter, &now)?;
            plan.add_marked(repository, filter)?;
        }
        SnapshotSelection::Marks { filter } => plan.add_marked(repository, filter)?,
    }
    plan.look_at_series(repository);
    // Plans are mostly carried out at once.
    repository.reuse_listing();
    Ok(plan)
}

impl ForgetPlan {
    /// Returns a group of which the policy leaves nothing, unless that is allowed. The plan is then not carried out.
    pub fn emptied(&self) -> Option<&Group> {
        let emptied = self.groups.iter().find(|decided| decided.is_emptied());
        emptied.filter(|_| !self.options.allow_remove_all).map(|decided| &decided.group)
    }

    /// Does what the plan says, or in a dry run everything but writing.
    ///
    /// # Errors
    /// [`EngineError::GroupEmptied`] before anything is done; those of [`forget`].
    pub fn execute(&self, repository: &Repository, resources: &Resources) -> Result<ForgetSummary, EngineError> {
        self.refuse_emptied()?;
        forget(repository, &self.chosen, &self.options, resources)
    }

    /// Returns what executing it would do, to the byte, as a dry run states it.
    ///
    /// # Errors
    /// Those of [`Self::execute`].
    pub fn forecast(&self, repository: &Repository, resources: &Resources) -> Result<ForgetSummary, EngineError> {
        self.refuse_emptied()?;
        forget(repository, &self.chosen, &self.options.clone().with_dry_run(true), resources)
    }

    fn refuse_emptied(&self) -> Result<(), EngineError> {
        let refused = |group: &Group| Err(EngineError::GroupEmptied { snapshots: group.snapshots.len() });
        self.emptied().map_or(Ok(()), refused)
    }

    fn refuse_empty(&self, policy: &KeepPolicy, filter: &SnapshotFilter) -> Result<(), EngineError> {
        match (policy.is_empty(), self.options.allow_remove_all) {
            (true, false) => Err(EngineError::EmptyPolicy),
            (true, true) if filter.is_empty() => Err(EngineError::RemovesAllUnfiltered),
            _ => Ok(()),
        }
    }

    fn groups_of(
        &mut self,
        repository: &Repository,
        filter: &SnapshotFilter,
        by: &[GroupKey],
    ) -> Result<Vec<Group>, EngineError> {
        let (views, unreadable) = list_readable(repository, filter)?;
        self.unreadable = unreadable;
        Ok(group(views, by))
    }

    /// Applies to each series the policy that is recorded for it.
    fn decide_as_recorded(
        &mut self,
        repository: &Repository,
        filter: &SnapshotFilter,
        now: &Zoned,
    ) -> Result<(), EngineError> {
        let policies = RecordedPolicies::read(&repository.config())?;
        if policies.is_empty() {
            return Err(EngineError::NoRecordedPolicy);
        }
        for group in self.groups_of(repository, filter, &[GroupKey::Series])? {
            let Some(view) = group.snapshots.first() else { continue };
            match policies.of_series(&view.series_name) {
                Some(policy) => self.decide(group, policy, now),
                None => self.without_policy.push(view.series_name.clone()),
            }
        }
        Ok(())
    }

    /// Applies the policy to a group.
    fn decide(&mut self, group: Group, policy: &KeepPolicy, now: &Zoned) {
        let mut decisions = policy::apply(&group.snapshots, policy, now);
        if policy.is_empty() {
            decisions.fill(Decision { keep: false, reasons: Vec::new() });
        }
        let decided = DecidedGroup { group, policy: policy.clone(), decisions };
        self.chosen.extend(decided.part(false).0.iter().map(SnapshotView::key));
        self.options.marking.series.extend(decided.group.snapshots.iter().map(|view| view.series));
        self.groups.push(decided);
    }

    /// Adds what the filter lets through of the snapshots that are marked as deleted: their marks end if they are over,
    /// or are asked to.
    fn add_marked(&mut self, repository: &Repository, filter: SnapshotFilter) -> Result<(), EngineError> {
        repository.reuse_listing();
        // What cannot be read has been told, or concerns no live snapshot.
        let (views, _) = list_readable(repository, &SnapshotFilter { deleted: true, ..filter })?;
        self.options.marking.series.extend(views.iter().map(|view| view.series));
        if self.options.marking.ends_given {
            self.chosen.extend(views.iter().map(SnapshotView::key));
        }
        Ok(())
    }

    /// Notes what would become of each series that is concerned.
    fn look_at_series(&mut self, repository: &Repository) {
        let marking = &mut self.options.marking;
        marking.series.sort_unstable();
        marking.series.dedup();
        let mut chosen: BTreeMap<SeriesId, BTreeSet<SnapshotId>> =
            marking.series.iter().map(|series| (*series, BTreeSet::new())).collect();
        for (series, id) in &self.chosen {
            chosen.entry(*series).or_default().insert(*id);
        }
        let decided = self.groups.iter().flat_map(DecidedGroup::each);
        let mut reasons: HashMap<SnapshotId, &[String]> =
            decided.map(|(view, decision)| (view.snapshot.id, decision.reasons.as_slice())).collect();
        for (series, ids) in chosen {
            // One that cannot be read is told when the plan is carried out.
            let Ok(Some(of)) = repository.summary_listed(series) else { continue };
            let choice = Choice::new(&of.snapshots, &ids, &self.options);
            let live = of.snapshots.iter().filter(|snapshot| snapshot.deleted.is_none());
            let stays = live.filter(|snapshot| !choice.takes(&snapshot.id)).map(|snapshot| snapshot.id);
            let kept = stays.map(|id| Kept { id, reasons: reasons.remove(&id).unwrap_or_default().to_vec() });
            let (kept, name) = (kept.collect(), of.name);
            let Choice { removed, marked, ended, .. } = choice;
            self.series.push(SeriesOutlook { series, name, kept, removed, marked, ended });
        }
    }
}
