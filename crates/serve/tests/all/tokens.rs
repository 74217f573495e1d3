//! Tokens: each right refused and allowed, series kept apart, tokens that were removed.

use crate::common::Served;
use siltstone_serve::{Right, SeriesScope};
use siltstone_store::storage::conformance::{
    OTHER_SERIES, SERIES, container, exists, foreign_container, key, manifest,
};
use siltstone_store::storage::{
    Call, Guarded, Listing, ObjectName, Outcome, SimulatedDisk, SimulatedRemote, Storage, StorageError,
};
use siltstone_store::{LoanId, RenewalId, SeriesId};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn only(series: SeriesId) -> SeriesScope {
    SeriesScope::These([series].into())
}

fn is_refused<T: std::fmt::Debug>(result: Result<T, StorageError>) -> bool {
    match result {
        Err(StorageError::Refused { reason, .. }) => reason.starts_with("403 "),
        Err(error) => panic!("it fails otherwise: {error}"),
        Ok(_) => false,
    }
}

#[test]
fn each_right_allows_its_calls_and_no_other() {
    let disk = Arc::new(SimulatedDisk::new());
    let tokens: Vec<(&str, SeriesScope, &[Right])> =
        Right::ALL.iter().map(|right| (right.word(), SeriesScope::All, std::slice::from_ref(right))).collect();
    let served = Served::over(Arc::<SimulatedDisk>::clone(&disk), false, &tokens, |options| options);
    for (right, at) in Right::ALL.into_iter().zip(0..) {
        let client = served.client(right.word());
        for name in [container(99), key(99), container(98), key(98)] {
            let _ = disk.create(&name, b"0123456789");
        }
        let calls = [
            (Right::Read, is_refused(client.read(&container(99), 10))),
            (Right::Read, is_refused(client.read_range(&key(99), 1, 2))),
            (Right::Read, is_refused(client.size_of(&container(99)))),
            (Right::List, is_refused(client.list(Listing::All))),
            (Right::Put, is_refused(client.create(&container(at), b"x"))),
            (Right::Put, is_refused(client.create(&manifest(at.into()), b"x"))),
            (Right::Admin, is_refused(client.create(&key(at.try_into().unwrap()), b"x"))),
            (Right::Admin, is_refused(client.create(&ObjectName::Config(at.into()), b"x"))),
            (Right::Forget, is_refused(client.delete(&container(98)))),
            (Right::Admin, is_refused(client.delete_many(&[key(98)]))),
        ];
        for (place, (needed, refused)) in calls.into_iter().enumerate() {
            assert_eq!(refused, needed != right, "call {place} with '{right}'");
        }
        assert_eq!(exists(disk.as_ref(), &container(98)), right != Right::Forget, "{right}");
        assert_eq!(exists(disk.as_ref(), &key(98)), right != Right::Admin, "{right}");
    }
}

#[test]
fn clients_of_different_series_never_meet() {
    let rights = [Right::Put, Right::List, Right::Read, Right::Forget];
    let served = Served::new(&[("one", only(SERIES), &rights), ("other", only(OTHER_SERIES), &rights)]);
    let (one, other) = (served.client("one"), served.client("other"));
    assert!(one.reaches(SERIES) && !one.reaches(OTHER_SERIES));
    one.create(&container(1), b"ours").unwrap();
    one.create(&manifest(1), b"ours").unwrap();
    let renewal = ObjectName::Renewal(SERIES, RenewalId { lease: 1, count: 0 });
    one.renew(&renewal, None).unwrap();
    assert!(is_refused(other.read(&container(1), 10)));
    assert!(is_refused(other.size_of(&manifest(1))));
    assert!(is_refused(other.create(&manifest(2), b"theirs")));
    assert!(is_refused(other.delete(&renewal)));
    assert!(is_refused(other.delete_many(&[foreign_container(1), container(1)])), "none of them goes");
    assert_eq!(other.list(Listing::All).unwrap(), []);
    assert_eq!(other.list(Listing::Manifests(SERIES)).unwrap(), []);
    assert_eq!(one.list(Listing::All).unwrap().len(), 3);
    assert_eq!(one.read(&container(1), 10).unwrap(), b"ours");
}

/// Whoever forgets snapshots of a lender has to know what others have of it; whoever could make loans of any series
/// could keep it from forgetting.
#[test]
fn a_lender_sees_what_others_borrow_of_it_and_who_reaches_one_series_alone_makes_no_loan() {
    let rights = [Right::Put, Right::List, Right::Read, Right::Forget];
    let both = SeriesScope::These([SERIES, OTHER_SERIES].into());
    let tokens: [(&str, SeriesScope, &[Right]); 3] =
        [("lender", only(SERIES), &rights), ("borrower", only(OTHER_SERIES), &rights), ("both", both, &rights)];
    let served = Served::new(&tokens);
    let (lender, borrower, both) = (served.client("lender"), served.client("borrower"), served.client("both"));
    let loan = ObjectName::Loan(SERIES, LoanId { borrower: OTHER_SERIES, lease: 1, serial: 0 });
    assert!(is_refused(lender.create(&loan, b"lent")));
    assert!(is_refused(borrower.create(&loan, b"lent")));
    both.create(&loan, b"lent").unwrap();
    for client in [&lender, &borrower, &both] {
        for what in [Listing::Loans(SERIES), Listing::All] {
            let listed: Vec<ObjectName> = client.list(what).unwrap().iter().map(|meta| meta.name).collect();
            assert_eq!(listed, [loan], "{what:?}");
        }
        assert_eq!(client.read(&loan, 10).unwrap(), b"lent");
        assert_eq!(client.size_of(&loan).unwrap(), 4);
    }
    assert!(is_refused(lender.delete(&loan)));
    borrower.delete(&loan).unwrap();
    assert_eq!(lender.list(Listing::Loans(SERIES)).unwrap(), []);
}

#[test]
fn who_may_only_add_renews_leases_and_says_what_it_may_do() {
    let served = Served::new(&[("client", SeriesScope::All, &[Right::Put, Right::List, Right::Read])]);
    let client = served.client("client");
    let capabilities = client.capabilities();
    assert!(!capabilities.deletes && !capabilities.amends);
    let names = [0, 1].map(|count| ObjectName::Renewal(SERIES, RenewalId { lease: 1, count }));
    client.renew(&names[0], None).unwrap();
    client.renew(&names[1], Some(&names[0])).unwrap();
    assert_eq!(client.list(Listing::Renewals(SERIES)).unwrap().len(), 1);
}

/// Behind the server is a disk, which runs full.
#[test]
fn clients_keep_a_reserve_where_the_place_behind_the_server_runs_full() {
    let adds = [Right::Put, Right::List, Right::Read];
    let forgets = [&adds[..], &[Right::Forget]].concat();
    let served = Served::new(&[("client", SeriesScope::All, &adds), ("keeper", SeriesScope::All, &forgets)]);
    let (client, keeper) = (served.client("client"), served.client("keeper"));
    assert!(client.capabilities().keeps_reserve && keeper.capabilities().keeps_reserve);
    client.create(&ObjectName::Reserve, &[7; 4096]).unwrap();
    assert!(is_refused(client.delete(&ObjectName::Reserve)));
    keeper.delete(&ObjectName::Reserve).unwrap();
    let remote = Served::over(Arc::new(SimulatedRemote::new()), false, &[("client", SeriesScope::All, &adds)], |it| it);
    assert!(!remote.client("client").capabilities().keeps_reserve, "a bucket does not run full");
}

/// A bad sector is damage, not an outage: `check` names it, and parity heals it.
#[test]
fn what_the_disk_behind_the_server_does_not_give_back_is_told_as_such_and_asked_for_once() {
    let asked = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&asked);
    let disk = Guarded::new(SimulatedDisk::new(), move |call| match call {
        Call::Read(name) => {
            counted.fetch_add(1, Ordering::Relaxed);
            Outcome::Refused(StorageError::Unreadable { name: *name, source: io::Error::other("a bad sector") })
        }
        _ => Outcome::Made,
    });
    let served = Served::over(Arc::new(disk), false, &[("reader", SeriesScope::All, &[Right::Read])], |it| it);
    let error = served.client("reader").read(&container(1), 10).unwrap_err();
    assert!(matches!(&error, StorageError::Unreadable { name, .. } if *name == container(1)), "{error}");
    assert!(error.to_string().contains("a bad sector") && asked.load(Ordering::Relaxed) == 1, "{error}");
}

#[test]
fn a_removed_or_unknown_token_is_refused_at_once() {
    let served = Served::new(&[("one", SeriesScope::All, &[Right::Read]), ("other", SeriesScope::All, &[Right::Read])]);
    let (one, other) = (served.client("one"), served.client("other"));
    assert!(one.read(&container(1), 10).unwrap_err().is_not_found());
    served.remove_token("one");
    let error = one.read(&container(1), 10).unwrap_err();
    assert!(matches!(&error, StorageError::Refused { reason, .. } if reason.starts_with("401 ")), "{error}");
    assert!(other.read(&container(1), 10).unwrap_err().is_not_found());
    let error = served.try_client("silt_unknown").unwrap_err().to_string();
    assert!(error.contains("401") && !error.contains("silt_unknown"), "{error}");
}

#[test]
fn a_refused_body_is_taken_so_that_the_refusal_arrives() {
    let served = Served::new(&[("reader", SeriesScope::All, &[Right::Read])]);
    let body = vec![7; 8 << 20];
    assert!(is_refused(served.client("reader").create(&container(1), &body)));
}

#[test]
fn a_certificate_that_is_not_trusted_ends_at_once() {
    let tokens: [(&str, SeriesScope, &[Right]); 1] = [("one", SeriesScope::All, &[Right::Read])];
    let served = Served::over(Arc::new(SimulatedDisk::new()), true, &tokens, |options| options);
    let error = served.try_untrusting(served.token("one")).unwrap_err();
    let told = std::error::Error::source(&error).map_or_else(String::new, ToString::to_string);
    assert!(told.contains("invalid peer certificate") && told.contains("SILT_CACERT"), "{error}: {told}");
}
