//! Creating an object where answers may be lost.
//!
//! A place at a distance may do what it was asked for and fail to say so, and a layer between may then ask again and
//! meet its own object. So neither an error nor a name that is taken tells what happened. The bytes under the name do:
//! they are sealed under a random salt, and nobody else can have made the same ones.
//!
//! An object that is absent is sent again: two requests for the same bytes under one name are one. A disk that failed
//! says so (its barrier fails from then on), and what lies there may be gone after a loss of power: such an error stands.
//! A storage that has looked itself, and says that the outcome is unknown, is not asked again.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::error::StoreError;
use crate::storage::{Listing, ObjectMeta, ObjectName, Storage, StorageError};

/// Times that an object is sent whose answer was lost and which is not there.
const CREATE_ATTEMPTS_MAX: u32 = 3;

/// The outcome of creating an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Created {
    /// The object is there, durable.
    Ours,
    /// Other bytes have its name.
    Taken,
}

/// Creates an object and finds out what came of it.
///
/// # Errors
/// Those of the storage that tell that nothing was done; [`StoreError::OutcomeUnknown`] if the object may be there, or
/// may come to be.
pub(crate) fn create_ours(storage: &dyn Storage, name: &ObjectName, object: &[u8]) -> Result<Created, StoreError> {
    ours(storage, name, object, storage.create(name, object))
}

/// Creates an object as [`create_ours`] does, and lists others, at the same time where that saves a round trip.
pub(crate) fn create_ours_and_list(
    storage: &dyn Storage,
    name: &ObjectName,
    object: &[u8],
    what: Listing,
) -> (Result<Created, StoreError>, Result<Vec<ObjectMeta>, StorageError>) {
    let (created, listed) = storage.create_and_list(name, object, what);
    (ours(storage, name, object, created), listed)
}

/// Finds out what came of creating an object, given the first answer.
fn ours(
    storage: &dyn Storage,
    name: &ObjectName,
    object: &[u8],
    mut answer: Result<(), StorageError>,
) -> Result<Created, StoreError> {
    let mut doubt = None;
    for attempt in 1..=CREATE_ATTEMPTS_MAX {
        let error = match answer {
            Ok(()) => return Ok(Created::Ours),
            Err(error @ StorageError::OutcomeUnknown { .. }) => return Err(unknown(name, &error)),
            Err(error) if leaves_doubt(storage, &error) => error,
            Err(error) => return Err(doubt.map_or_else(|| error.into(), |first| unknown(name, &first))),
        };
        match storage.read(name, object.len() as u64) {
            Ok(found) if found == object => return Ok(Created::Ours),
            // A body that was cut off on its way proves nothing.
            Ok(found) if !object.starts_with(&found) => return Ok(Created::Taken),
            Err(StorageError::TooLarge { .. } | StorageError::Unreadable { .. }) => return Ok(Created::Taken),
            Err(read) if !read.is_not_found() => return Err(unknown(name, &read)),
            Ok(_) | Err(_) => {}
        }
        doubt.get_or_insert(error);
        if attempt == CREATE_ATTEMPTS_MAX {
            break;
        }
        answer = storage.create(name, object);
    }
    Err(doubt.map_or_else(|| StorageError::NotFound { name: *name }.into(), |first| unknown(name, &first)))
}

/// Creates an object that is to be there, whoever makes it.
///
/// # Errors
/// As [`create_ours`]; that the name is taken, if it is by other bytes.
pub(crate) fn create_same(storage: &dyn Storage, name: &ObjectName, object: &[u8]) -> Result<(), StoreError> {
    match create_ours(storage, name, object)? {
        Created::Ours => Ok(()),
        Created::Taken => Err(StorageError::AlreadyExists { name: *name }.into()),
    }
}

/// Tells whether the object may be there after this error.
fn leaves_doubt(storage: &dyn Storage, error: &StorageError) -> bool {
    match error {
        StorageError::AlreadyExists { .. } => true,
        StorageError::Io { .. } | StorageError::Unreachable { .. } => storage.barrier().is_ok(),
        _ => false,
    }
}

fn unknown(name: &ObjectName, error: &StorageError) -> StoreError {
    StoreError::outcome_unknown(name, error)
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;
    use crate::SeriesId;
    use crate::storage::{SimulatedRemote, Trouble};

    const NAME: ObjectName = ObjectName::Manifest(SeriesId([1; 16]), 1);
    const OURS: &[u8] = b"sealed under a random salt";

    fn create(trouble: Trouble, before: Option<&[u8]>) -> (SimulatedRemote, Result<Created, StoreError>) {
        let place = SimulatedRemote::new();
        if let Some(before) = before {
            place.create(&NAME, before).expect("an object");
        }
        place.set_trouble(trouble);
        let created = create_ours(&place, &NAME, OURS);
        place.set_trouble(Trouble::None);
        (place, created)
    }

    fn holds_ours(place: &SimulatedRemote) -> bool {
        place.read(&NAME, 100).is_ok_and(|found| found == OURS)
    }

    #[test]
    fn a_lost_answer_is_told_by_the_bytes_under_the_name() {
        let (place, created) = create(Trouble::AnswerLost { nth: 0 }, None);
        assert_eq!(created.expect("an outcome"), Created::Ours);
        assert!(holds_ours(&place));
        let (_, taken) = create(Trouble::AnswerLost { nth: 0 }, Some(b"of another writer"));
        assert_eq!(taken.expect("an outcome"), Created::Taken);
        let (_, again) = create(Trouble::None, Some(OURS));
        assert_eq!(again.expect("an outcome"), Created::Ours, "a layer below sent it twice");
    }

    #[test]
    fn what_is_not_there_is_sent_again() {
        let trouble =
            [Trouble::Late { nth: 0, by: 0 }, Trouble::Late { nth: 0, by: 1 }, Trouble::Late { nth: 0, by: 9 }];
        for trouble in trouble.into_iter().chain([Trouble::Conflict { nth: 0 }]) {
            let (place, created) = create(trouble, None);
            assert_eq!(created.expect("an outcome"), Created::Ours, "{trouble:?}");
            place.land();
            assert!(holds_ours(&place), "{trouble:?}");
        }
    }

    /// The create was done or will be, and the place does not say which.
    #[test]
    fn where_the_place_does_not_tell_the_outcome_is_unknown_and_names_the_object() {
        let silent = Trouble::Busy { nth: 0, count: u64::MAX };
        let (place, created) = create(silent, None);
        let error = created.expect_err("nobody knows");
        assert!(matches!(&error, StoreError::OutcomeUnknown { .. }), "{error}");
        assert!(error.to_string().contains(&NAME.to_string()), "{error}");
        assert!(!holds_ours(&place));
        // The name of another writer's object: also that cannot be told.
        let (_, created) = create(silent, Some(b"of another writer"));
        assert!(matches!(created, Err(StoreError::OutcomeUnknown { .. })));
    }

    /// Each request of a create in turn finds the place silent for so long that neither looking nor sending again
    /// helps.
    #[test]
    fn a_silence_at_any_request_gives_ours_or_unknown_and_never_taken() {
        for nth in 0..4 {
            for count in 1..8 {
                let (place, created) = create(Trouble::Busy { nth, count }, None);
                match created {
                    Ok(created) => assert!(created == Created::Ours && holds_ours(&place), "{nth} {count}"),
                    Err(error) => assert!(matches!(error, StoreError::OutcomeUnknown { .. }), "{nth} {count}: {error}"),
                }
            }
        }
    }

    /// It has looked itself, and would only be asked the same again.
    #[test]
    fn a_storage_that_says_that_the_outcome_is_unknown_is_believed_and_not_asked_again() {
        for is_done in [false, true] {
            let place = SimulatedRemote::new();
            place.set_trouble(Trouble::Unknown { nth: 0, is_done });
            let error = create_ours(&place, &NAME, OURS).expect_err("nobody knows");
            assert!(
                matches!(&error, StoreError::OutcomeUnknown { object, .. } if *object == NAME.to_string()),
                "{error}"
            );
            assert_eq!(place.requests().len(), 1, "{:?}", place.requests());
            assert_eq!(holds_ours(&place), is_done);
        }
    }

    #[test]
    fn half_of_a_body_does_not_pass_for_another_object() {
        let place = SimulatedRemote::new();
        place.create(&NAME, OURS).expect("an object");
        // The first request is refused, for the name is taken; the answer to the second is cut off.
        place.set_trouble(Trouble::ShortBody { nth: 1 });
        assert_eq!(create_ours(&place, &NAME, OURS).expect("an outcome"), Created::Ours);
    }

    #[test]
    fn the_same_object_may_be_made_by_others_and_another_one_may_not() {
        let place = SimulatedRemote::new();
        create_same(&place, &NAME, OURS).expect("made");
        create_same(&place, &NAME, OURS).expect("there");
        let refused = create_same(&place, &NAME, b"of another writer").expect_err("it is taken");
        assert!(matches!(refused, StoreError::Storage(StorageError::AlreadyExists { .. })), "{refused}");
    }
}
