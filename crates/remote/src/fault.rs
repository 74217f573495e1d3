//! Faults: reasons why a request failed, sorted by what is done next.

use crate::service::Refusal;
use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};
use std::error::Error as StdError;
use std::fmt;

/// The words of a certificate that is not trusted, or not the server's: trying again does not help.
const UNTRUSTED: &str = "invalid peer certificate";
/// The code by which S3 says, with status 400, that the body of a request did not come in time.
const BODY_LATE: &str = "RequestTimeout";

/// Advice where a bucket is not in the region that was asked.
const OTHER_REGION: &str =
    "the bucket lies in another region: name that in the address, or set AWS_REGION or AWS_DEFAULT_REGION to it";

/// The reason why a request failed; the text is for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// There is no such object.
    Absent,
    /// There is no such bucket.
    NoBucket,
    /// The name is taken, or another request for it is under way.
    Taken,
    /// The credentials do not allow it, or there are none.
    Denied(String),
    /// The place has no room.
    Full(String),
    /// The medium behind the place does not give this object back; others are not concerned.
    Unreadable(String),
    /// The request is wrong as it is: trying again does not help.
    Wrong(String),
    /// The unfinished write was removed by another writer.
    Swept,
    /// No connection was made: the request had no effect.
    Unsent(String),
    /// The place asks for fewer requests. It may have carried this one out.
    Busy(String),
    /// No answer, a broken one, or one that says that the place failed. It may have carried the request out.
    Lost(String),
}

impl Fault {
    /// Tells whether the request may be made again.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Unsent(_) | Self::Busy(_) | Self::Lost(_))
    }

    /// Tells whether the place wants fewer requests at the same time, or cannot answer so many in time.
    pub(crate) fn is_throttling(&self) -> bool {
        matches!(self, Self::Busy(_) | Self::Lost(_))
    }

    /// Returns the text for people.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Absent => "it is missing".to_owned(),
            Self::Taken => "the name is taken".to_owned(),
            Self::NoBucket => "there is no such bucket".to_owned(),
            Self::Swept => "another writer removed the unfinished write".to_owned(),
            Self::Denied(reason)
            | Self::Full(reason)
            | Self::Unreadable(reason)
            | Self::Wrong(reason)
            | Self::Unsent(reason)
            | Self::Busy(reason)
            | Self::Lost(reason) => reason.clone(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason())
    }
}

impl StdError for Fault {}

impl From<Fault> for Error {
    /// Wraps a fault that a store of ours has sorted already.
    fn from(fault: Fault) -> Self {
        Self::Generic { store: "sorted", source: Box::new(fault) }
    }
}

impl From<&Error> for Fault {
    fn from(error: &Error) -> Self {
        let reason = || deepest(error);
        if let Some(fault) = chain(error).find_map(|cause| cause.downcast_ref::<Self>()) {
            return fault.clone();
        }
        match error {
            Error::NotFound { .. } | Error::Generic { .. } if names_bucket(error) => Self::NoBucket,
            Error::NotFound { .. } => Self::Absent,
            Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotModified { .. } => Self::Taken,
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => Self::Denied(reason()),
            Error::InvalidPath { .. }
            | Error::NotSupported { .. }
            | Error::NotImplemented { .. }
            | Error::UnknownConfigurationKey { .. } => Self::Wrong(reason()),
            _ => of_chain(error),
        }
    }
}

/// Sorts an error by the refusal or the failed connection that it comes from.
fn of_chain(error: &Error) -> Fault {
    let refusal = chain(error).find_map(|cause| cause.downcast_ref::<Refusal>());
    if let Some(refusal) = refusal {
        let is_late = refusal.text.split(':').next() == Some(BODY_LATE);
        return if is_late { Fault::Lost(refusal.to_string()) } else { of_status(refusal.status, refusal.to_string()) };
    }
    let reason = deepest(error);
    if let Some(status) = status_in_batch(&reason) {
        return of_status(status, reason);
    }
    if reason.contains(UNTRUSTED) {
        return Fault::Wrong(format!(
            "{reason}; name a file with its issuer in SSL_CERT_FILE, for silt: in SILT_CACERT"
        ));
    }
    match chain(error).find_map(|cause| cause.downcast_ref::<HttpError>()).map(HttpError::kind) {
        Some(HttpErrorKind::Connect) => Fault::Unsent(reason),
        None if reason.contains("redirect") => Fault::Wrong(OTHER_REGION.to_owned()),
        _ => Fault::Lost(reason),
    }
}

/// The status of an object that was to be deleted in a batch: `object_store` keeps it in the text alone, and S3 gives a
/// word for it.
fn status_in_batch(reason: &str) -> Option<u16> {
    let (_, code) = reason.strip_suffix(')')?.rsplit_once("(code: ")?;
    match code {
        "AccessDenied" => Some(403),
        "SlowDown" => Some(503),
        code => code.parse().ok(),
    }
}

fn of_status(status: u16, said: String) -> Fault {
    match status {
        401 | 403 => Fault::Denied(said),
        429 | 503 => Fault::Busy(said),
        507 => Fault::Full(said),
        422 => Fault::Unreadable(said),
        408 | 500.. => Fault::Lost(said),
        _ => Fault::Wrong(said),
    }
}

fn names_bucket(error: &Error) -> bool {
    let text = error.to_string();
    ["NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist"].iter().any(|said| text.contains(said))
}

fn chain<'e>(error: &'e Error) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    fn source<'e>(cause: &&'e (dyn StdError + 'static)) -> Option<&'e (dyn StdError + 'static)> {
        (*cause).source()
    }
    std::iter::successors(Some(error as &'e (dyn StdError + 'static)), source)
}

/// The text of the innermost cause: those around it repeat it, with addresses.
fn deepest(error: &Error) -> String {
    chain(error).last().map_or_else(String::new, ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16) -> Fault {
        refused_by(status, "said")
    }

    fn refused_by(status: u16, text: &str) -> Fault {
        let refusal = Refusal { status, text: text.to_owned() };
        let source = Box::new(HttpError::new(HttpErrorKind::Unknown, refusal));
        Fault::from(&Error::Generic { store: "S3", source })
    }

    #[test]
    fn refusals_are_sorted_by_their_status() {
        assert_eq!(refused(403), Fault::Denied("403 said".to_owned()));
        assert_eq!(refused(507), Fault::Full("507 said".to_owned()));
        assert_eq!(refused(422), Fault::Unreadable("422 said".to_owned()));
        assert_eq!(refused(400), Fault::Wrong("400 said".to_owned()));
        for status in [429, 503] {
            assert!(matches!(refused(status), Fault::Busy(_)));
        }
        for status in [408, 500, 502, 504] {
            assert!(matches!(refused(status), Fault::Lost(_)));
        }
    }

    #[test]
    fn a_body_that_came_too_late_is_sent_again() {
        for text in ["RequestTimeout: Your socket connection was not read from or written to.", "RequestTimeout"] {
            assert_eq!(refused_by(400, text), Fault::Lost(format!("400 {text}")));
        }
        assert!(matches!(refused_by(403, "RequestTimeTooSkewed: No."), Fault::Denied(_)));
        assert!(matches!(refused_by(400, "InvalidArgument: RequestTimeout"), Fault::Wrong(_)));
    }

    #[test]
    fn a_bucket_in_another_region_is_told_with_the_variables_that_name_it() {
        let error = Error::Generic { store: "S3", source: "Received redirect without LOCATION".into() };
        let Fault::Wrong(said) = Fault::from(&error) else { panic!("it passes") };
        assert!(said.contains("address") && said.contains("AWS_REGION"), "{said}");
    }

    #[test]
    fn refusals_in_a_batch_are_sorted_by_the_code_in_their_text() {
        let refused = |code: &str| {
            let text = format!("DeleteObjects request failed for key x: No. (code: {code})");
            Fault::from(&Error::Generic { store: "S3", source: text.into() })
        };
        assert!(matches!(refused("AccessDenied"), Fault::Denied(_)));
        assert!(matches!(refused("403"), Fault::Denied(_)));
        assert!(matches!(refused("412"), Fault::Wrong(_)));
        assert!(matches!(refused("SlowDown"), Fault::Busy(_)));
        for passing in ["500", "InternalError"] {
            assert!(matches!(refused(passing), Fault::Lost(_)));
        }
    }

    #[test]
    fn a_fault_that_was_sorted_stays_as_it_is() {
        for fault in [Fault::Absent, Fault::Taken, Fault::Swept, Fault::Full("x".to_owned())] {
            assert_eq!(Fault::from(&Error::from(fault.clone())), fault);
        }
    }

    #[test]
    fn a_certificate_that_is_not_trusted_is_told_at_once() {
        let cause = std::io::Error::other("invalid peer certificate: UnknownIssuer");
        let source = Box::new(HttpError::new(HttpErrorKind::Connect, cause));
        let fault = Fault::from(&Error::Generic { store: "silt", source });
        assert!(matches!(&fault, Fault::Wrong(reason) if reason.contains("SILT_CACERT")), "{fault:?}");
    }

    #[test]
    fn only_a_connection_that_was_not_made_had_no_effect() {
        let failed = |kind| {
            let source = Box::new(HttpError::new(kind, std::io::Error::other("x")));
            Fault::from(&Error::Generic { store: "S3", source })
        };
        assert_eq!(failed(HttpErrorKind::Connect), Fault::Unsent("x".to_owned()));
        for kind in [HttpErrorKind::Request, HttpErrorKind::Timeout, HttpErrorKind::Interrupted] {
            assert_eq!(failed(kind), Fault::Lost("x".to_owned()));
        }
    }
}
