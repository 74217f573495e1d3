//! JSON of `repair`: a message of type `object` for each object kept twice of which a place is damaged, one of type
//! `plan` for each series in which something is wrong; and after `--yes`, or where nothing is wrong, one of type
//! `summary`.

use crate::render::Path;
use serde::Serialize;
use siltstone_engine::repair::{Basis, DamagedSnapshot, ObjectPlan, ObjectRepair, RepairSummary, SeriesPlan};

/// `message_type` `object`: one that is kept twice.
#[derive(Serialize)]
pub(super) struct ObjectMessage<'p> {
    message_type: &'static str,
    object: String,
    faults: &'p [String],
    remedy: &'static str,
    from: Option<String>,
}

impl<'p> From<&'p ObjectPlan> for ObjectMessage<'p> {
    fn from(plan: &'p ObjectPlan) -> Self {
        let (remedy, from) = match plan.repair {
            ObjectRepair::From(place) => ("written_anew", Some(place.to_string())),
            ObjectRepair::PutAside => ("put_aside", None),
            ObjectRepair::Nothing => ("none", None),
        };
        Self { message_type: "object", object: plan.name.to_string(), faults: &plan.faults, remedy, from }
    }
}

/// `message_type` `plan`.
#[derive(Serialize)]
pub(super) struct PlanMessage<'p> {
    message_type: &'static str,
    series_id: String,
    series: Option<&'p str>,
    faults: &'p [String],
    basis: &'static str,
    snapshots: u64,
    snapshots_found: Vec<String>,
    snapshots_hurt: Vec<HurtJson>,
    drops_hurt: bool,
    aside: Vec<String>,
    containers_protected: u64,
    is_beyond_repair: bool,
}

#[derive(Serialize)]
struct HurtJson {
    snapshot_id: String,
    chunks_lost: u64,
    catalog_is_hurt: bool,
    files_hurt: u64,
    files: Vec<String>,
}

impl From<&DamagedSnapshot> for HurtJson {
    fn from(hurt: &DamagedSnapshot) -> Self {
        let path = |path: &Vec<u8>| Path::from_bytes(&[b"/", path.as_slice()].concat()).lossy();
        Self {
            snapshot_id: hurt.snapshot.id.to_string(),
            chunks_lost: hurt.chunks_lost,
            catalog_is_hurt: hurt.catalog_is_damaged,
            files_hurt: hurt.files_damaged,
            files: hurt.files.iter().map(path).collect(),
        }
    }
}

impl<'p> From<&'p SeriesPlan> for PlanMessage<'p> {
    fn from(series: &'p SeriesPlan) -> Self {
        Self {
            message_type: "plan",
            series_id: series.series.to_string(),
            series: series.name.as_deref(),
            faults: &series.faults,
            basis: match series.basis {
                Basis::Newest => "newest_manifest",
                Basis::Older(_) => "older_manifest",
                Basis::Containers => "containers",
            },
            snapshots: series.snapshots,
            snapshots_found: series.found.iter().map(|snapshot| snapshot.id.to_string()).collect(),
            snapshots_hurt: series.damaged.iter().map(HurtJson::from).collect(),
            drops_hurt: series.drops_damaged,
            aside: series.aside.iter().map(ToString::to_string).collect(),
            containers_protected: series.protected,
            is_beyond_repair: series.is_beyond_repair,
        }
    }
}

/// `message_type` `summary`.
#[derive(Serialize)]
pub(super) struct SummaryMessage {
    message_type: &'static str,
    series_repaired: u64,
    series_failed: u64,
    snapshots_found: u64,
    snapshots_hurt: u64,
    snapshots_dropped: u64,
    objects_aside: u64,
    objects_mended: u64,
    containers_healed: u64,
    containers_protected: u64,
}

impl From<&RepairSummary> for SummaryMessage {
    fn from(summary: &RepairSummary) -> Self {
        Self {
            message_type: "summary",
            series_repaired: summary.series_repaired,
            series_failed: summary.series_failed,
            snapshots_found: summary.snapshots_found,
            snapshots_hurt: summary.snapshots_damaged,
            snapshots_dropped: summary.snapshots_dropped,
            objects_aside: summary.objects_aside,
            objects_mended: summary.objects_mended,
            containers_healed: summary.containers_healed,
            containers_protected: summary.containers_protected,
        }
    }
}
