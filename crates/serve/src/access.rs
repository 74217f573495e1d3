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
//!
//! A loan is of two series: the lender has to see what others have of it, or it would delete that, and the borrower
//! gives it back. So whoever reaches either may look at it, whoever reaches both may create it, and whoever reaches the
//! borrower may delete it.

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
            require_that(reaches(granted, name), granted, name)
        }
        Call::Create(name) => {
            let is_for_writers =
                name.series().is_some() || matches!(name, ObjectName::Directory(_) | ObjectName::Reserve);
            require_right(granted, if is_for_writers { Right::Put } else { Right::Admin }, name)?;
            require_that(may_create(granted, name), granted, name)
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
    require_that(is_own(granted, name), granted, name)
}

/// Tells whether the token reaches an object, to list and read it: what belongs to no series is there for all, and a
/// loan for the lender too.
pub(crate) fn reaches(granted: &Granted, name: &ObjectName) -> bool {
    is_own(granted, name) || matches!(name, ObjectName::Loan(lender, _) if granted.series.holds(*lender))
}

/// Tells whether an object that the token may create is within its reach: of a loan, the lender too. A loan that is not
/// sound would keep the lender from deleting anything.
fn may_create(granted: &Granted, name: &ObjectName) -> bool {
    let is_lenders = matches!(name, ObjectName::Loan(lender, _) if !granted.series.holds(*lender));
    is_own(granted, name) && !is_lenders
}

/// Tells whether an object belongs to a series that the token reaches, or to none.
fn is_own(granted: &Granted, name: &ObjectName) -> bool {
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

fn require_that(is_reached: bool, granted: &Granted, name: &ObjectName) -> Result<(), Refusal> {
    if is_reached {
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
    use siltstone_store::{ContainerId, KeyId, LoanId, PartId, RenewalId};
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

    /// A lender that does not see the loans deletes what others need.
    #[test]
    fn a_loan_is_seen_by_both_series_made_by_who_reaches_both_and_given_back_by_the_borrower() {
        let loan = |lender, borrower| ObjectName::Loan(lender, LoanId { borrower, lease: 1, serial: 0 });
        let (of_own, of_other, of_strangers) = (loan(OWN, OTHER), loan(OTHER, OWN), loan(OTHER, OTHER));
        let looks = |name| [Call::Read(name, None), Call::Size(name)];
        for call in [of_own, of_other].into_iter().flat_map(looks) {
            assert_eq!(enough(&call), [Right::Read], "{call:?}");
        }
        assert!(looks(of_strangers).iter().all(|call| enough(call).is_empty()));
        let lists = granted(SeriesScope::These([OWN].into()), [Right::List].into());
        assert_eq!([of_own, of_other, of_strangers].map(|name| reaches(&lists, &name)), [true, true, false]);

        assert_eq!(enough(&Call::Delete(of_other)), [Right::Forget], "the borrower gives it back");
        assert!([of_own, of_strangers].iter().all(|name| enough(&Call::Delete(*name)).is_empty()));

        assert!([of_own, of_other, of_strangers].iter().all(|name| enough(&Call::Create(*name)).is_empty()));
        let both = granted(SeriesScope::These([OWN, OTHER].into()), [Right::Put].into());
        assert!(require(&both, &Call::Create(of_own)).is_ok() && require(&both, &Call::Create(of_other)).is_ok());
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
