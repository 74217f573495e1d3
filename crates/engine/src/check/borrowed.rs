//! Checks of what series borrow: that the lenders have it, that loans keep it there, and what damage of a lender costs
//! those who borrow of it.
//!
//! The containers of a lender are looked at once, when the lender is checked. Its damage is then translated into the
//! numbers of each series that borrows of it.

use super::Checked;
use super::help::Help;
use super::report::{CheckReport, Finding};
use super::series::{ContainerDamage, Cost, Learnt, SeriesCheck, findings_of};
use crate::EngineError;
use crate::borrowed::{answered_by, numbers, numbers_there, read_loan, runs_of, translated};
use roaring::RoaringTreemap;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{ObjectMeta, ObjectName};
use siltstone_store::{ChunkRun, LoanId, SeriesId};
use std::collections::{BTreeMap, BTreeSet, HashMap};

impl SeriesCheck<'_> {
    /// Damage by lenders that are gone, cannot be read, or no longer have what is borrowed.
    pub(super) fn check_lenders(&self) -> Result<Vec<ContainerDamage>, EngineError> {
        let mut damage = Vec::new();
        for lender in &self.manifest.lenders {
            let runs = runs_of(self.manifest, lender.series);
            if runs.is_empty() {
                continue;
            }
            let words = self.repository.series_words(lender.series);
            let mut cost = Cost::Lost;
            let (there, what) = match self.repository.manifest_listed(lender.series) {
                Ok(Some(newest)) => {
                    let missing = self.manifest.borrowed_of(lender.series) - answered_by(&newest);
                    let what = format!(
                        "series {words}, of which chunks are borrowed, no longer has {} of them",
                        missing.len()
                    );
                    (missing, what)
                }
                Ok(None) => {
                    let what = format!("series {words}, of which chunks are borrowed, is gone");
                    (self.manifest.borrowed_of(lender.series), what)
                }
                Err(error) if error.is_damage() => {
                    let what = format!("series {words}, of which chunks are borrowed, cannot be read: {error}");
                    cost = if error.is_of_newer_format() { Cost::ForeignFormat } else { cost };
                    (self.manifest.borrowed_of(lender.series), what)
                }
                Err(error) => return Err(error.into()),
            };
            let chunks = ChunkRun::runs_of(&translated(&runs, &there));
            if !chunks.is_empty() {
                let object = format!("series/{}", lender.series);
                damage.push(ContainerDamage { object, error: what, chunks, cost });
            }
        }
        Ok(damage)
    }
}

/// Findings of the check of each series that lends.
pub(super) struct Lenders {
    known: HashMap<SeriesId, (String, Vec<ContainerDamage>, Learnt)>,
}

impl Lenders {
    pub(super) fn of(checked: &[Checked]) -> Self {
        let lent: BTreeSet<SeriesId> =
            checked.iter().flat_map(|series| &series.manifest.lenders).map(|lender| lender.series).collect();
        let lenders = checked.iter().filter(|series| lent.contains(&series.manifest.series));
        let known = lenders.map(|series| {
            let learnt = Learnt { damaged: series.learnt.damaged.clone(), sound: series.learnt.sound.clone() };
            (series.manifest.series, (series.manifest.name.clone(), series.damage.clone(), learnt))
        });
        Self { known: known.collect() }
    }

    /// Tells the damage of lenders for the snapshots of a series that borrows of them.
    pub(super) fn add_findings(&self, series: &mut Checked) {
        let manifest = &series.manifest;
        let mut damage = Vec::new();
        for lender in &manifest.lenders {
            let Some((name, of_lender, learnt)) = self.known.get(&lender.series) else { continue };
            let runs = runs_of(manifest, lender.series);
            for hurt in of_lender {
                let chunks = translated(&runs, &numbers(hurt.chunks.iter().copied()));
                if chunks.is_empty() {
                    continue;
                }
                let error = format!(
                    "{}; series \"{}\" borrows {} chunks there of series \"{name}\"",
                    hurt.error,
                    manifest.name,
                    chunks.len()
                );
                series.learnt.damaged |= &chunks;
                let chunks = ChunkRun::runs_of(&chunks);
                damage.push(ContainerDamage { error, chunks, ..hurt.clone() });
            }
            series.learnt.sound |= translated(&runs, &learnt.sound);
        }
        series.learnt.sound -= &series.learnt.damaged;
        let needs = manifest.necessary_chunks();
        series.report.findings.extend(findings_of(&damage, manifest, needs));
    }
}

/// The loans that are there, by lender.
pub(super) struct Loans {
    by_lender: BTreeMap<SeriesId, BTreeMap<LoanId, u64>>,
}

impl Loans {
    pub(super) fn listed(listed: &[ObjectMeta]) -> Self {
        let mut by_lender: BTreeMap<SeriesId, BTreeMap<LoanId, u64>> = BTreeMap::new();
        for meta in listed {
            if let ObjectName::Loan(lender, id) = meta.name {
                by_lender.entry(lender).or_default().insert(id, meta.bytes);
            }
        }
        Self { by_lender }
    }

    /// Counts loans that no manifest names among the orphans: the borrower's next writer removes them. Where the
    /// borrower knows nothing of such a lender, nobody looks for them, and the lender keeps what they name. Of a series
    /// that cannot be read nothing is known.
    pub(super) fn note_unnamed(&self, manifests: &[Manifest], report: &mut CheckReport) {
        let readable: HashMap<SeriesId, &Manifest> =
            manifests.iter().map(|manifest| (manifest.series, manifest)).collect();
        for (lender, loans) in &self.by_lender {
            for (id, bytes) in loans {
                let Some(borrower) = readable.get(&id.borrower) else { continue };
                match borrower.lenders.iter().find(|known| known.series == *lender) {
                    Some(known) if known.loans.contains(id) => {}
                    Some(_) => {
                        report.orphans += 1;
                        report.orphan_bytes += bytes;
                    }
                    None => report.harmless.push(Finding {
                        object: ObjectName::Loan(*lender, *id).to_string(),
                        what: format!("series \"{}\" knows nothing of this loan; it holds chunks there", borrower.name),
                        snapshots: Vec::new(),
                        help: Help::Repair,
                    }),
                }
            }
        }
    }

    /// Tells loans that a manifest names and that are missing or cannot be read, or that have not all that is borrowed:
    /// nothing keeps the lender from removing that.
    pub(super) fn add_findings(repository: &Repository, series: &mut Checked) -> Result<(), EngineError> {
        let manifest = &series.manifest;
        let mut findings = Vec::new();
        for lender in &manifest.lenders {
            let mut held = RoaringTreemap::new();
            let mut faults = Vec::new();
            for id in &lender.loans {
                let name = ObjectName::Loan(lender.series, *id);
                match read_loan(repository, &name) {
                    Ok(runs) => held |= numbers_there(&runs),
                    Err(error) if error.is_damage() || error.is_not_found() => {
                        faults.push((name.to_string(), error.to_string()));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            let loose = manifest.borrowed_of(lender.series) - held;
            if !loose.is_empty() && faults.is_empty() {
                let words = repository.series_words(lender.series);
                let what = format!("{} chunks that it borrows of series {words} are in none of its loans", loose.len());
                faults.push((manifest.object_name().to_string(), what));
            }
            let chunks = ChunkRun::runs_of(&translated(&runs_of(manifest, lender.series), &loose));
            for (object, error) in faults {
                let damage = ContainerDamage { object, error, chunks: chunks.clone(), cost: Cost::Nothing };
                let told = findings_of(&[damage], manifest, manifest.necessary_chunks());
                findings.extend(told.into_iter().map(|finding| Finding { help: Help::Repair, ..finding }));
            }
        }
        if findings.is_empty() || is_beyond(repository, manifest) {
            return Ok(());
        }
        series.report.findings.extend(findings);
        Ok(())
    }
}

/// Tells whether a writer went on meanwhile, who may have given loans back.
fn is_beyond(repository: &Repository, manifest: &Manifest) -> bool {
    repository.manifest(manifest.series).ok().flatten().is_some_and(|newest| newest.sequence > manifest.sequence)
}
