//! Cost of keeping a store in order while the last versions are retained: laying chunks out by their lifecycles,
//! against collecting garbage. Versions go oldest first, as in the paper, or from the middle, as a policy of daily and
//! weekly snapshots has it. Migration runs at every version, collection once there is something to delete; where
//! little of that is garbage enough it takes no time at all. So what is compared is the sum up to a version.

use super::figures;
use super::history::mb;
use super::method::{Kept, Method};
use super::parallel::on_cpus;
use super::scale::Scale;
use super::stored::Upkeep;
use super::versions::{Digest, Versions, leave_page_cache};
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Outcome, Rounds, Row, Sample, Subject};
use crate::report::Figure;
use crate::settings::Settings;
use crate::table::as_float;
use anyhow::Result;
use std::collections::BTreeMap;
use std::fs;

/// Versions that are retained (MeGA, ATC 2022, section 5.6).
const RETAINED_MAX: usize = 20;
/// Divisor for short histories: a fifth is retained, as 20 are of the paper's 100 (200 of one data set).
const VERSIONS_PER_RETAINED: usize = 5;
/// Dead chunks that garbage collection tolerates in a container, percent (section 5.6).
const LIVENESS_PERCENT: [u32; 3] = [0, 25, 50];

/// Retained is one in so many of the versions older than the last few, the first of them among these.
const RETAINED_ONE_IN: usize = 4;

const COLUMNS: &str = "method parameter gc_percent version maintenance_seconds total_seconds settle_seconds \
                       forget_seconds read_mb written_mb syncs containers containers_untouched retained stored_mb \
                       metadata_mb";

/// Choice of the versions that are retained.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Retention {
    /// The last of them: 20 of 100 (section 5.6).
    Last,
    /// Half as many of the last, and one in four of those before: what goes lies between what stays.
    Thinned,
}

impl Retention {
    /// The version that goes once the history of `count` versions has reached `newest`.
    fn goes(self, newest: usize, count: usize) -> Option<usize> {
        let retained = count.div_ceil(VERSIONS_PER_RETAINED).clamp(1, RETAINED_MAX);
        match self {
            Self::Last => newest.checked_sub(retained).filter(|version| *version > 0),
            Self::Thinned => {
                let version = newest.checked_sub(retained.div_ceil(2)).filter(|version| *version > 0)?;
                (version % RETAINED_ONE_IN != 1).then_some(version)
            }
        }
    }
}

/// `store-maintenance` and `store-thinning`.
pub(super) struct Maintenance {
    /// Versions that are retained.
    pub(super) retention: Retention,
}

impl Experiment for Maintenance {
    fn head(&self) -> Head {
        let (name, title, reproduces): (_, _, &[&str]) = match self.retention {
            Retention::Last => (
                "store-maintenance",
                "What keeping chunks by their lifecycles costs, against collecting garbage",
                &["MeGA (ATC 2022), Figure 17"],
            ),
            Retention::Thinned => {
                ("store-thinning", "The same where versions between others are deleted, not the oldest", &[])
            }
        };
        Head {
            name,
            title,
            reproduces,
            needs: Needs::Versions,
            methods: Method::names(&Method::kept_in_order()),
            rounds: Rounds::One,
            columns: COLUMNS,
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let versions = Versions::of(input.corpus(), settings)?;
        let scale = Scale::of(versions.mean_bytes(), settings);
        let mut subjects: Vec<Box<dyn Subject + 'i>> = Vec::new();
        for method in Method::kept_in_order().into_iter().filter(|method| method.is_asked_for(settings)) {
            let collected: Vec<Option<u32>> = match method {
                Method::Fgd(_) => LIVENESS_PERCENT.map(Some).to_vec(),
                _ => vec![None],
            };
            for gc_percent in collected {
                let retention = self.retention;
                subjects.push(Box::new(Run { method, gc_percent, retention, versions: versions.clone(), scale }));
            }
        }
        Ok(subjects)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        figures::of_maintenance(findings, self.retention)
    }
}

/// One method on one history, of which versions go as new ones come.
struct Run {
    method: Method,
    gc_percent: Option<u32>,
    retention: Retention,
    versions: Versions,
    scale: Scale,
}

impl Subject for Run {
    fn parameters(&self) -> Row {
        let mut parameters = self.method.parameters();
        if let Some(percent) = self.gc_percent {
            parameters.insert("gc_percent".into(), percent.into());
        }
        parameters
    }

    fn run(&mut self) -> Result<Outcome> {
        on_cpus(self.scale.threads, || self.measure())
    }
}

impl Run {
    fn measure(&self) -> Result<Outcome> {
        let folder = tempfile::tempdir()?;
        let store = folder.path().join("store");
        fs::create_dir(&store)?;
        let mut kept = self.method.create(&store, self.scale)?;
        let (mut samples, mut digests, mut total_seconds) = (Vec::new(), BTreeMap::new(), 0.0);
        for version in 1..=self.versions.count() {
            let bytes = self.versions.load(version)?;
            kept.back_up(version, &bytes)?;
            digests.insert(version, Digest::of(&bytes));
            leave_page_cache(&store)?;
            let syncs_before = kept.syncs();
            let settled = kept.settle(version)?;
            let mut forgotten = Upkeep::default();
            if let Some(gone) = self.retention.goes(version, self.versions.count()) {
                let liveness_threshold = self.gc_percent.map(|percent| f64::from(percent) / 100.0);
                forgotten = kept.forget(gone, liveness_threshold)?;
                digests.remove(&gone);
            }
            total_seconds += settled.seconds + forgotten.seconds;
            let mut sample = sample(version, &kept, settled, forgotten, total_seconds)?;
            sample.values.push(("syncs".into(), as_float(kept.syncs() - syncs_before)));
            sample.values.push(("retained".into(), as_float(digests.len() as u64)));
            samples.push(sample);
        }
        let digests = digests.iter().map(|(version, digest)| (*version, digest));
        Ok(match kept.first_wrong(digests, &folder.path().join("restored"))? {
            None => Outcome::Right(samples),
            Some(version) => {
                Outcome::Wrong(format!("version {version} is not restored as it was, others were deleted"))
            }
        })
    }
}

fn sample(version: usize, kept: &Kept, settled: Upkeep, forgotten: Upkeep, total_seconds: f64) -> Result<Sample> {
    let held = kept.held()?;
    let sample = Sample::of([
        ("maintenance_seconds", settled.seconds + forgotten.seconds),
        ("total_seconds", total_seconds),
        ("settle_seconds", settled.seconds),
        ("forget_seconds", forgotten.seconds),
        ("read_mb", mb(settled.read_bytes + forgotten.read_bytes)),
        ("written_mb", mb(settled.written_bytes + forgotten.written_bytes)),
        ("containers", as_float(settled.containers + forgotten.containers)),
        ("containers_untouched", as_float(settled.untouched + forgotten.untouched)),
        ("stored_mb", mb(held.bytes)),
        ("metadata_mb", mb(held.metadata_bytes)),
    ]);
    Ok(sample.at("version", version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn of_a_hundred_versions_the_last_twenty_are_left_or_some_of_all_ages() {
        let left = |retention: Retention| {
            let mut left: BTreeSet<usize> = BTreeSet::new();
            for version in 1..=100 {
                left.insert(version);
                if let Some(gone) = retention.goes(version, 100) {
                    assert!(left.remove(&gone), "{retention:?}: {gone} was there");
                }
            }
            left
        };
        assert_eq!(left(Retention::Last), (81..=100).collect());
        let thinned = left(Retention::Thinned);
        let older: Vec<usize> = (1..=89).step_by(4).collect();
        assert_eq!(thinned, older.into_iter().chain(91..=100).collect());
    }
}
