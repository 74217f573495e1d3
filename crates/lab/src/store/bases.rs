//! How unevenly bases lie in containers (MeGA, ATC 2022, section 3.2). A selector of deltas lives on this: it pays
//! where containers with few bases are many, and hold few of all bases.

use super::figures::histories;
use super::history::percent;
use super::method::Method;
use super::on_history::OnHistory;
use super::scale::Sizes;
use super::stored::BasesOfContainer;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Outcome, Rounds, Sample, Subject};
use crate::report::{Axis, Figure, Line, Plot};
use crate::settings::Settings;
use anyhow::Result;
use std::path::Path;

/// Numbers of bases below which a container is counted; in a container of the paper's size, [`PER_BYTES`]. Of others
/// as many less as they are smaller. The paper has 30.
const FEWER_THAN: [u32; 9] = [5, 10, 20, 30, 60, 120, 240, 480, 960];
/// Bytes of the paper's container.
const PER_BYTES: u64 = 4 << 20;

/// `store-bases`.
pub(super) struct Bases;

impl Experiment for Bases {
    fn head(&self) -> Head {
        Head {
            name: "store-bases",
            title: "How unevenly the bases that the last version's backup wants lie in containers",
            reproduces: &["MeGA (ATC 2022), Figure 5"],
            needs: Needs::Versions,
            methods: vec![Method::Greedy.name()],
            rounds: Rounds::One,
            columns: "method parameter version fewer_than containers_percent bases_percent",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        OnHistory::subjects([Method::Greedy], Sizes::Paper, (input, settings), measure)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let figure = |data: &str| {
            let line = |name: &str, measure: &str| {
                let of_data = findings.iter().filter(|finding| finding.data == data);
                let point = |finding: &Finding| {
                    let fewer_than = finding.parameters.get("fewer_than")?.as_f64()?;
                    Some((fewer_than, finding.median(measure)?))
                };
                Line { name: name.into(), is_theory: false, points: of_data.filter_map(point).collect() }
            };
            Figure {
                title: format!("Containers with few bases, and the bases in them: {data}"),
                redraws: "MeGA, Fig. 5".into(),
                caption: "Of the containers in which the backup of the last version wants bases; Greedy.".into(),
                plot: Plot::Lines {
                    x: Axis::logarithmic("bases per 4 MiB of a container, fewer than"),
                    y: Axis::linear("%"),
                    series: vec![line("containers", "containers_percent"), line("bases", "bases_percent")],
                },
            }
        };
        histories(findings).into_iter().map(figure).collect()
    }
}

fn measure(of: &OnHistory, folder: &Path) -> Result<Outcome> {
    let (_, mut kept) = of.create(folder, "store")?;
    let mut bases_by_container = Vec::new();
    for version in 1..=of.versions.count() {
        bases_by_container = kept.back_up(version, &of.versions.load(version)?)?.bases_by_container;
    }
    let at = |fewer_than: u32| {
        let [containers_percent, bases_percent] = sparse_percent(&bases_by_container, fewer_than);
        let sample = Sample::of([("containers_percent", containers_percent), ("bases_percent", bases_percent)]);
        sample.at("version", of.versions.count()).at("fewer_than", fewer_than)
    };
    Ok(Outcome::Right(FEWER_THAN.map(at).into()))
}

/// Percentage of all containers that have fewer bases than these, and of all bases that lie there; 0 where there are
/// none.
fn sparse_percent(bases_by_container: &[BasesOfContainer], fewer_than: u32) -> [f64; 2] {
    let is_sparse = |one: &&BasesOfContainer| one.bases * PER_BYTES < u64::from(fewer_than) * one.bytes as u64;
    let sparse_of = |weight: fn(&BasesOfContainer) -> u64| {
        let all = bases_by_container.iter().map(weight).sum();
        let sparse = bases_by_container.iter().filter(is_sparse).map(weight).sum();
        percent(sparse, all)
    };
    [sparse_of(|_| 1), sparse_of(|one| one.bases)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_sparse_by_the_bases_in_as_many_bytes_as_the_papers_has() {
        let whole = 4 << 20;
        let bases_by_container = [
            BasesOfContainer { bases: 29, bytes: whole },
            BasesOfContainer { bases: 30, bytes: whole },
            // 40 in four times as much.
            BasesOfContainer { bases: 10, bytes: whole / 4 },
            BasesOfContainer { bases: 31, bytes: 2 * whole },
        ];
        let bits = |percent: [f64; 2]| percent.map(f64::to_bits);
        assert_eq!(bits(sparse_percent(&bases_by_container, 30)), bits([50.0, 60.0]));
        assert_eq!(bits(sparse_percent(&bases_by_container, 5)), bits([0.0, 0.0]));
        assert_eq!(bits(sparse_percent(&[], 30)), bits([0.0, 0.0]));
    }
}
