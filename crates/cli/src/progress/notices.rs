//! The words for what the engine notices.

use crate::render::{Path, clock, counted, visible};
use siltstone_engine::Notice;
use siltstone_engine::fs::SkipReason;

/// A notice, in words.
pub(super) struct Words {
    pub(super) text: String,
    /// A word for programs.
    pub(super) code: &'static str,
    /// Told even when quiet.
    pub(super) is_warning: bool,
    /// Told only when details are wanted.
    pub(super) is_detail: bool,
}

#[allow(clippy::too_many_lines, reason = "one arm for each notice")]
pub(super) fn describe(notice: &Notice) -> Words {
    let note = |code, text: &str| Words { text: text.to_owned(), code, is_warning: false, is_detail: false };
    let warning =
        |code, text: String| Words { text: format!("warning: {text}"), code, is_warning: true, is_detail: false };
    let detail = |code, text: String| Words { text, code, is_warning: false, is_detail: true };
    match notice {
        Notice::IndexRebuilt => {
            note("index_rebuilt", "the local index was missing or stale and has been rebuilt from the repository")
        }
        Notice::IndexLost => note(
            "index_lost",
            "the local cache is missing or stale and the key reads nothing: all files are read, all chunks stored \
             again",
        ),
        Notice::CatalogLost => note(
            "catalog_lost",
            "the local catalog is missing or stale and the key reads nothing: all files are read again",
        ),
        Notice::NewSeries { series, resembles: None } => {
            note("new_series", &format!("this begins the series '{}'", visible(series.as_bytes())))
        }
        Notice::NewSeries { series, resembles: Some(other) } => {
            let [series, other] = [series, other].map(|name| visible(name.as_bytes()));
            let text = format!(
                "this begins the series '{series}', beside '{other}', which it resembles; if it is to continue that \
                 one, use --series '{other}'"
            );
            note("new_series", &text)
        }
        Notice::Borrowing { series } => {
            note("borrowing", &format!("borrowing of series '{series}', which has much of this already"))
        }
        Notice::LenderPassedOver { reason } => detail(
            "lender_passed_over",
            format!("nothing is borrowed of a series that may have some of this: {reason}"),
        ),
        Notice::SketchesRebuilt { chunks } => note(
            "sketches_rebuilt",
            &format!(
                "what the last snapshot's {} look like was not known here; all of them were read",
                counted(*chunks, "chunk")
            ),
        ),
        Notice::BaseUnreadable { reason } => warning(
            "base_unreadable",
            format!("what resembles the last snapshot is stored whole where that cannot be read: {reason}"),
        ),
        Notice::IndexNotSaved { reason } => warning(
            "index_not_saved",
            format!("the local index cannot be saved, the next backup rebuilds it: {reason}"),
        ),
        Notice::DamageKnown { chunks } => warning(
            "damage_known",
            format!(
                "known to be damaged: {}; what the source still has of it is stored again",
                counted(*chunks, "chunk")
            ),
        ),
        Notice::DamageMet { reason } => {
            warning("damage_met", format!("what the source still has of it is stored again: {reason}"))
        }
        Notice::DamageLeft { chunks } => warning(
            "damage_left",
            format!(
                "not in the source any more: {} of older snapshots; 'silt check' tells what that costs",
                counted(*chunks, "damaged chunk")
            ),
        ),
        Notice::ClockBehind { seconds } => {
            let behind = counted(seconds.unsigned_abs(), "second");
            let text = format!("the clock is {behind} behind the series' last snapshot; check the time");
            warning("clock_behind", text)
        }
        Notice::ReadFromCopy { reason } => warning(
            "read_from_copy",
            format!("the newest manifest is damaged and was read from its copy; it is written twice again: {reason}"),
        ),
        Notice::LeaseWatched { holder, at_most } => {
            let text = format!(
                "in use by {holder}, which cannot be seen from here: waiting for a sign of life for up to {}, then \
                 taking over; Ctrl-C ends the waiting",
                clock(*at_most)
            );
            note("lease_watched", &text)
        }
        Notice::LeaseTakenOver { holder, objects } => {
            let removed = counted(*objects, "unfinished object");
            let text = format!("taken over from {holder}, which was interrupted; {removed} removed");
            note("lease_taken_over", &text)
        }
        Notice::LeftOut { path, why } => detail("left_out", format!("left out {}: {why}", Path::of(path).visible())),
        Notice::OwnFolderLeftOut { path } => {
            let text = format!("left out {}: {}", Path::of(path).visible(), SkipReason::OwnFolder.words());
            note("own_folder_left_out", &text)
        }
        Notice::ListedUnknown { path } => {
            let text =
                format!("listed as changed, but neither there nor in the last snapshot: {}", Path::of(path).visible());
            note("listed_unknown", &text)
        }
        Notice::ContainersLeft { containers, reason: None } => note(
            "containers_left",
            &format!(
                "left because this client may not delete: {} that no snapshot needs any more; a later 'silt maintain' \
                 of one that may deletes what is left",
                counted(*containers, "container")
            ),
        ),
        Notice::ContainersLeft { containers, reason: Some(reason) } => warning(
            "containers_left",
            format!(
                "left until a later run: {} that no snapshot needs any more: {reason}",
                counted(*containers, "container")
            ),
        ),
        Notice::RewriteDeferred => {
            let text = "the disk is full: containers that are partly unused stay as they are until a later forget";
            warning("rewrite_deferred", text.to_owned())
        }
        Notice::NotSettled { reason } => warning(
            "not_settled",
            format!(
                "the snapshot is saved, but what it superseded is not moved yet ({reason}); 'silt maintain' tries again"
            ),
        ),
        Notice::PassedOver { object, reason } => warning(
            "passed_over",
            format!(
                "{object} stays as it is, not moved to where it belongs: {reason}; 'silt check' tells what is hit: put \
                 the object back from a copy of the repository, or forget the snapshots that need it"
            ),
        ),
        Notice::OnlyLookedRight { path, reason } => warning(
            "only_looked_right",
            format!("{} has the snapshot's size and time, but {reason}; it is restored anew", Path::of(path).visible()),
        ),
        Notice::NothingMatches { pattern } => {
            let text = format!("nothing in the snapshot matches '{}'", visible(pattern.as_bytes()));
            warning("nothing_matches", text)
        }
        Notice::Replanned => {
            detail("replanned", "the repository changed under way; the plan was made again".to_owned())
        }
        Notice::Checkpoint { snapshot, is_last: false } => {
            detail("checkpoint", format!("what is done so far is saved as partial snapshot {}", snapshot.short()))
        }
        Notice::Checkpoint { snapshot, is_last: true } => {
            let id = snapshot.short();
            let text = format!("what was done is saved as partial snapshot {id}; the next backup continues it");
            warning("checkpoint", text)
        }
        Notice::SnapshotCopied { series, original, .. } => {
            let (series, original) = (visible(series.as_bytes()), original.short());
            note("snapshot_copied", &format!("snapshot {original} of {series} is copied"))
        }
        Notice::ContainersLost { chunks } => warning(
            "containers_lost",
            format!(
                "containers of this series are missing or cut short, which costs {}; what the source still has of it \
                 is stored again; 'silt check' tells which snapshots are hit",
                counted(*chunks, "chunk")
            ),
        ),
        Notice::IndexUnreadable { reason } => warning(
            "index_unreadable",
            format!(
                "the index of a container cannot be read, its chunks are stored again where the source still has them: \
                 {reason}; 'silt check' tells which snapshots are hit"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_store::catalog::EntryPath;

    #[test]
    fn what_was_left_out_is_a_detail_and_its_name_is_escaped() {
        let path = EntryPath::new(*b"run/so\ncket").expect("a valid path");
        let words = describe(&Notice::LeftOut { path, why: "a socket" });
        assert_eq!(words.text, "left out /run/so\\ncket: a socket");
        assert!(words.is_detail && !words.is_warning);
    }

    #[test]
    fn lost_containers_are_told_in_a_sentence_that_says_what_to_do() {
        let lost = describe(&Notice::ContainersLost { chunks: 885 });
        assert!(
            lost.is_warning && lost.text.contains("885 chunks") && lost.text.contains("'silt check'"),
            "{}",
            lost.text
        );
        let unreadable = describe(&Notice::IndexUnreadable { reason: "it is cut short".into() });
        assert!(unreadable.is_warning && unreadable.text.contains("it is cut short"), "{}", unreadable.text);
    }

    #[test]
    fn a_new_series_is_told_with_the_one_it_resembles_and_how_to_continue_that() {
        let told = |resembles: Option<&str>| {
            describe(&Notice::NewSeries { series: "latpop".into(), resembles: resembles.map(str::to_owned) }).text
        };
        assert_eq!(told(None), "this begins the series 'latpop'");
        assert!(told(Some("laptop")).contains("resembles") && told(Some("laptop")).ends_with("--series 'laptop'"));
    }

    #[test]
    fn what_may_mean_danger_is_a_warning() {
        assert!(describe(&Notice::ClockBehind { seconds: 60 }).is_warning);
        assert!(!describe(&Notice::IndexRebuilt).is_warning);
    }
}
