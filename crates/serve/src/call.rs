//! Calls: what a request asks for, read from its method, path and headers. Names are read by
//! [`ObjectName::from_text`] alone, so that nothing but objects can be reached.

use crate::reply::Refusal;
use hyper::header::{IF_NONE_MATCH, RANGE};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, StatusCode};
use siltstone_remote::protocol::{DELETE, LIST, METRICS, OBJECTS, RIGHTS};
use siltstone_store::storage::{Listing, ObjectName};

/// A range of an object: its first byte and its length, which is at least 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ByteRange {
    pub(crate) offset: u64,
    pub(crate) length: usize,
}

/// Call of the storage that a request asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    Read(ObjectName, Option<ByteRange>),
    Size(ObjectName),
    Create(ObjectName),
    Delete(ObjectName),
    /// Names are in the body.
    DeleteMany,
    List {
        what: Listing,
        after: String,
    },
    Rights,
    Metrics,
}

impl Call {
    /// Reads a request.
    pub(crate) fn parse(parts: &Parts) -> Result<Self, Refusal> {
        let path = parts.uri.path();
        if let Some(text) = path.strip_prefix(OBJECTS) {
            let name = ObjectName::from_text(text)
                .ok_or_else(|| Refusal::new(StatusCode::NOT_FOUND, "no object has such a name"))?;
            return Self::of_object(&parts.method, &parts.headers, name);
        }
        match (&parts.method, path) {
            (&Method::POST, DELETE) => Ok(Self::DeleteMany),
            (&Method::GET, LIST) => listing(parts.uri.query().unwrap_or_default()),
            (&Method::GET, RIGHTS) => Ok(Self::Rights),
            (&Method::GET, METRICS) => Ok(Self::Metrics),
            (_, DELETE | LIST | RIGHTS | METRICS) => Err(wrong_method()),
            _ => Err(Refusal::new(StatusCode::NOT_FOUND, "there is no such path")),
        }
    }

    fn of_object(method: &Method, headers: &HeaderMap, name: ObjectName) -> Result<Self, Refusal> {
        match *method {
            Method::GET => Ok(Self::Read(name, range(headers, &name)?)),
            Method::HEAD => Ok(Self::Size(name)),
            Method::DELETE => Ok(Self::Delete(name)),
            Method::PUT if headers.get(IF_NONE_MATCH).is_some_and(|value| value == "*") => Ok(Self::Create(name)),
            Method::PUT => Err(Refusal::new(
                StatusCode::PRECONDITION_REQUIRED,
                "objects are created and never replaced: send If-None-Match: *",
            )),
            _ => Err(wrong_method()),
        }
    }

    /// The object it is about, or the folder, for the log.
    pub(crate) fn object(&self) -> Option<String> {
        match self {
            Self::Read(name, _) | Self::Size(name) | Self::Create(name) | Self::Delete(name) => Some(name.to_string()),
            Self::List { what, .. } => Some(format!("{}/", what.folder())),
            Self::DeleteMany | Self::Rights | Self::Metrics => None,
        }
    }
}

fn wrong_method() -> Refusal {
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not take this method")
}

/// Reads `bytes=first-last`, the one form that is understood. An object is never longer than its kind allows.
fn range(headers: &HeaderMap, name: &ObjectName) -> Result<Option<ByteRange>, Refusal> {
    let Some(value) = headers.get(RANGE) else { return Ok(None) };
    let read = || {
        let (first, last) = value.to_str().ok()?.strip_prefix("bytes=")?.split_once('-')?;
        let (first, last) = (digits(first)?, digits(last)?);
        let length = last.checked_sub(first)?.checked_add(1)?;
        Some((first, length, last))
    };
    match read() {
        Some((offset, length, last)) if last < name.bytes_max() => {
            let length = usize::try_from(length).map_err(|_| not_satisfiable(name))?;
            Ok(Some(ByteRange { offset, length }))
        }
        Some(_) => Err(not_satisfiable(name)),
        None => Err(Refusal::new(StatusCode::BAD_REQUEST, "the range must be bytes=first-last")),
    }
}

fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn not_satisfiable(name: &ObjectName) -> Refusal {
    Refusal::new(StatusCode::RANGE_NOT_SATISFIABLE, format!("no object like {name} is so long"))
}

/// Reads `prefix=..&after=..`. Names need no escapes.
fn listing(query: &str) -> Result<Call, Refusal> {
    let value = |wanted: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == wanted).map(|(_, value)| value).next().unwrap_or_default()
    };
    let what = Listing::of_folder(value("prefix"));
    let what = what.ok_or_else(|| Refusal::new(StatusCode::BAD_REQUEST, "no objects have such a prefix"))?;
    Ok(Call::List { what, after: value("after").to_owned() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyper::Request;

    fn parsed(method: &str, path: &str, headers: &[(&str, &str)]) -> Result<Call, u16> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        Call::parse(&parts).map_err(|refusal| refusal.status.as_u16())
    }

    #[test]
    fn only_objects_can_be_reached() {
        for path in [
            "/",
            "/o/",
            "/o/config",
            "/o/../etc/passwd",
            "/o/config/../keys",
            "/o//etc/passwd",
            "/o/config/0000000000000001/",
            "/o/config/0000000000000001%00",
            "/o/tmp/x",
            "/o/copies/reserve",
            "/objects",
        ] {
            assert_eq!(parsed("GET", path, &[]), Err(404), "{path}");
        }
        assert_eq!(parsed("GET", "/o/config/0000000000000001", &[]), Ok(Call::Read(ObjectName::Config(1), None)));
    }

    #[test]
    fn an_object_is_only_ever_created() {
        let path = "/o/config/0000000000000001";
        assert_eq!(parsed("PUT", path, &[("If-None-Match", "*")]), Ok(Call::Create(ObjectName::Config(1))));
        assert_eq!(parsed("PUT", path, &[]), Err(428));
        assert_eq!(parsed("PUT", path, &[("If-None-Match", "\"x\"")]), Err(428));
        assert_eq!(parsed("PATCH", path, &[]), Err(405));
        assert_eq!(parsed("POST", "/list", &[]), Err(405));
    }

    #[test]
    fn ranges_are_whole_or_refused() {
        let read = |range| parsed("GET", "/o/config/0000000000000001", &[("Range", range)]);
        let found = |offset, length| Ok(Call::Read(ObjectName::Config(1), Some(ByteRange { offset, length })));
        assert_eq!(read("bytes=0-0"), found(0, 1));
        assert_eq!(read("bytes=5-9"), found(5, 5));
        for wrong in ["bytes=5-", "bytes=-5", "bytes=9-5", "bytes=0-1,3-4", "items=0-1", "bytes=+1-2", "bytes=a-b", ""]
        {
            assert_eq!(read(wrong), Err(400), "{wrong}");
        }
        for long in ["bytes=0-9999999999", "bytes=0-18446744073709551614"] {
            assert_eq!(read(long), Err(416), "{long}");
        }
        assert_eq!(read("bytes=0-18446744073709551615"), Err(400), "its length is no number");
    }

    #[test]
    fn listings_are_those_of_the_store() {
        let list = |what, after: &str| Ok(Call::List { what, after: after.to_owned() });
        assert_eq!(parsed("GET", "/list", &[]), list(Listing::All, ""));
        assert_eq!(parsed("GET", "/list?prefix=keys&after=keys/x", &[]), list(Listing::Keys, "keys/x"));
        assert_eq!(parsed("GET", "/list?prefix=../x", &[]), Err(400));
    }
}
