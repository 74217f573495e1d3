//! Access: what a token may do. One table, without any state.
//!
//! | call | right | reach |
//! |---|---|---|
//! | read, size | `read` | the object's series |
//! | create an object of a series | `put` | its series |
//! | create or delete a directory, or delete a renewal: they hold no data | `put` too | |
//! | create the reserve | `put` | |
//! | delete an object of a series, or the reserve | `forget` | its series |
//! | create or delete any other object | `admin` | |
//! | list | `list` | the listing holds what is reached |
//! | counters | `metrics` | |

use crate::call::Call;
use crate::reply::Refusal;
use hyper::StatusCode;
use siltstone_remote::protocol::{Granted, Right};
use siltstone_store::SeriesId;
use siltstone_store::storage::ObjectName;

/// Refuses a call that the token does not allow. Names in a body are for [`require_delete`].
pub(crate) fn require(granted: &Granted, call: &Call) -> Result<(), Refusal> {
    match call {
        Call::Read(name, _) | Call::Size(name) => {
            require_right(granted, Right::Read, name)?;
            require_reach(granted, name)
        }
        Call::Create(name) => {
            let is_for_writers =
                name.series().is_some() || matches!(name, ObjectName::Directory(_) | ObjectName::Reserve);
            require_right(granted, if is_for_writers { Right::Put } else { Right::Admin }, name)?;
            require_reach(granted, name)
        }
        Call::Delete(name) => require_delete(granted, name),
        Call::List { .. } => require_right(granted, Right::List, &"lists"),
        Call::Metrics => require_right(granted, Right::Metrics, &"counters"),
        Call::DeleteMany | Call::Rights => Ok(()),
    }
}

/// Refuses to delete an object that the token may not delete.
pub(crate) fn require_delete(granted: &Granted, name: &ObjectName) -> Result<(), Refusal> {
    let holds_nothing = matches!(name, ObjectName::Renewal(..) | ObjectName::Directory(_));
    if !(holds_nothing && granted.rights.contains(&Right::Put)) {
        let is_for_writers = name.series().is_some() || *name == ObjectName::Reserve;
        require_right(granted, if is_for_writers { Right::Forget } else { Right::Admin }, name)?;
    }
    require_reach(granted, name)
}

/// Tells whether the token reaches an object: what belongs to no series is there for all.
pub(crate) fn reaches(granted: &Granted, name: &ObjectName) -> bool {
    series_of(name).is_none_or(|series| granted.series.holds(series))
}

fn series_of(name: &ObjectName) -> Option<SeriesId> {
    match name {
        ObjectName::Aside(replaced, _) => replaced.name().series(),
        name => name.series(),
    }
}

fn require_right(granted: &Granted, right: Right, what: &dyn std::fmt::Display) -> Result<(), Refusal> {
    if granted.rights.contains(&right) {
        return Ok(());
    }
    let text = format!("the token '{}' lacks the right '{right}' for {what}", granted.token);
    Err(Refusal::new(StatusCode::FORBIDDEN, text))
}

fn require_reach(granted: &Granted, name: &ObjectName) -> Result<(), Refusal> {
    if reaches(granted, name) {
        return Ok(());
    }
    let text = format!("the token '{}' does not reach the series of {name}", granted.token);
    Err(Refusal::new(StatusCode::FORBIDDEN, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_remote::protocol::SeriesScope;
    use siltstone_store::container::ContainerKind;
    use siltstone_store::storage::{Listing, Original, Replaced};
    use siltstone_store::{ContainerId, KeyId, PartId, RenewalId};
    use std::collections::BTreeSet;

    const OWN: SeriesId = SeriesId([1; 16]);
    const OTHER: SeriesId = SeriesId([2; 16]);

    fn objects_of(series: SeriesId) -> [ObjectName; 7] {
        let id = ContainerId { lease: 1, serial: 1 };
        let part = PartId { lease: 1, serial: 1 };
        [
            ObjectName::Manifest(series, 1),
            ObjectName::Container(ContainerKind::Data, series, id),
            ObjectName::Container(ContainerKind::Metadata, series, id),
            ObjectName::Parity(series, id),
            Original::Manifest(series, 1).copy(),
            ObjectName::ManifestPart(series, part),
            Original::ManifestPart(series, part).copy(),
        ]
    }

    fn objects_of_repository() -> [ObjectName; 5] {
        [
            ObjectName::Config(1),
            Original::Config(1).copy(),
            ObjectName::Key(KeyId([1; 16])),
            Original::Key(KeyId([1; 16])).copy(),
            ObjectName::Aside(Replaced::Config(1), 0),
        ]
    }

    fn granted(series: SeriesScope, rights: BTreeSet<Right>) -> Granted {
        Granted { token: "t".into(), series, rights, keeps_reserve: false }
    }

    /// The rights of which each alone allows this call on a token for one series.
    fn enough(call: &Call) -> Vec<Right> {
        let granted = |right| granted(SeriesScope::These([OWN].into()), [right].into());
        Right::ALL.into_iter().filter(|right| require(&granted(*right), call).is_ok()).collect()
    }

    #[test]
    fn each_call_takes_its_right() {
        for name in objects_of(OWN) {
            assert_eq!(enough(&Call::Read(name, None)), [Right::Read], "{name}");
            assert_eq!(enough(&Call::Size(name)), [Right::Read], "{name}");
            assert_eq!(enough(&Call::Create(name)), [Right::Put], "{name}");
            assert_eq!(enough(&Call::Delete(name)), [Right::Forget], "{name}");
        }
        for name in objects_of_repository() {
            assert_eq!(enough(&Call::Read(name, None)), [Right::Read], "{name}");
            assert_eq!(enough(&Call::Create(name)), [Right::Admin], "{name}");
            assert_eq!(enough(&Call::Delete(name)), [Right::Admin], "{name}");
        }
        assert_eq!(enough(&Call::List { what: Listing::All, after: String::new() }), [Right::List]);
        assert_eq!(enough(&Call::Metrics), [Right::Metrics]);
        assert_eq!(enough(&Call::Rights), Right::ALL);
    }

    #[test]
    fn a_renewal_may_be_deleted_by_whoever_may_make_one() {
        let name = ObjectName::Renewal(OWN, RenewalId { lease: 1, count: 1 });
        assert_eq!(enough(&Call::Delete(name)), [Right::Put, Right::Forget]);
        assert_eq!(enough(&Call::Delete(ObjectName::Renewal(OTHER, RenewalId { lease: 1, count: 1 }))), []);
    }

    /// What is kept free is made by whoever may write, and given up by whoever makes room.
    #[test]
    fn the_reserve_is_made_by_writers_and_given_up_by_who_may_forget() {
        assert_eq!(enough(&Call::Create(ObjectName::Reserve)), [Right::Put]);
        assert_eq!(enough(&Call::Delete(ObjectName::Reserve)), [Right::Forget]);
    }

    #[test]
    fn objects_of_other_series_are_out_of_reach() {
        let aside = ObjectName::Aside(Replaced::Manifest(OTHER, 1), 0);
        for name in objects_of(OTHER).into_iter().chain([aside]) {
            for call in [Call::Read(name, None), Call::Size(name), Call::Create(name), Call::Delete(name)] {
                assert_eq!(enough(&call), [], "{call:?}");
            }
            let everything = granted(SeriesScope::All, BTreeSet::from(Right::ALL));
            assert!(require(&everything, &Call::Delete(name)).is_ok());
        }
    }
}
