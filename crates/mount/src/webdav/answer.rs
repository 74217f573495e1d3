//! Requests, and what is answered.

use super::body::{AnswerBody, Pieces, streamed, whole};
use super::listing::{
    BEGIN, END, FINITE_DEPTH, PAGE_END, address_in, address_of, http_date, page_begin, page_line, response,
};
use super::range::{Wanted, wanted};
use super::tree::{FileProperties, Missing, Resource, Tree};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT_RANGES, ALLOW, AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    HOST, HeaderName, IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, RANGE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use percent_encoding::percent_decode_str;
use siltstone_engine::snapshots::SnapshotView;
use siltstone_store::catalog::Entry;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Time without a byte after which a client is given up.
pub(super) const SILENCE: Duration = Duration::from_secs(30);
/// Bytes of a request's body that are read, to be dropped: what properties are wanted does not matter.
const REQUEST_BYTES_MAX: usize = 64 << 10;
/// Bytes of a file in one piece.
const PIECE_BYTES: u32 = 256 << 10;
/// Bytes of a list that are gathered to one piece.
const LIST_BYTES: usize = 32 << 10;
/// Methods that are answered.
const METHODS: &str = "OPTIONS, GET, HEAD, PROPFIND";

/// Name and password that are asked for.
#[derive(Clone)]
pub struct Credentials(blake3::Hash);

impl Credentials {
    /// Takes a name and a password as `NAME:PASSWORD`; `None` if there is no colon, or no password.
    pub fn new(text: &str) -> Option<Self> {
        let (_, password) = text.split_once(':')?;
        (!password.is_empty()).then(|| Self(blake3::hash(text.as_bytes())))
    }

    /// Tells whether a header has them; it takes the same time whatever differs.
    fn are_in(&self, header: Option<&str>) -> bool {
        let given = header.and_then(|header| {
            let (scheme, encoded) = header.split_once(' ')?;
            scheme.eq_ignore_ascii_case("basic").then(|| BASE64_STANDARD.decode(encoded.trim()).ok())?
        });
        given.is_some_and(|given| blake3::hash(&given) == self.0)
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials")
    }
}

/// State that all connections share.
pub(super) struct Service {
    pub(super) tree: Tree,
    pub(super) credentials: Option<Credentials>,
}

type Answer = Response<AnswerBody>;

impl Service {
    /// Answers a request.
    pub(super) async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Answer {
        let (head, body) = request.into_parts();
        // A longer one ends the connection, once it is answered.
        let _ = timeout(SILENCE, Limited::new(body, REQUEST_BYTES_MAX).collect()).await;
        let answered = spawn_blocking(move || self.answer_to(&head)).await;
        answered.unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR, "internal error"))
    }

    fn answer_to(self: &Arc<Self>, head: &Parts) -> Answer {
        if let Some(refused) = self.refused(head) {
            return refused;
        }
        let Some(names) = names_of(head.uri.path()) else { return plain(StatusCode::BAD_REQUEST, "no such path") };
        let answered = match head.method.as_str() {
            "GET" | "HEAD" => self.get(head, &names),
            "PROPFIND" => self.properties(head, &names),
            "OPTIONS" => Ok(with(plain(StatusCode::OK, ""), ALLOW, METHODS)),
            _ => Ok(with(plain(StatusCode::METHOD_NOT_ALLOWED, "snapshots can only be read"), ALLOW, METHODS)),
        };
        let answer = answered.unwrap_or_else(|missing| match missing {
            Missing::NotFound => plain(StatusCode::NOT_FOUND, "not found"),
            Missing::Unreadable => plain(StatusCode::INTERNAL_SERVER_ERROR, "it cannot be read; the server tells why"),
        });
        with(answer, HeaderName::from_static("dav"), "1")
    }

    /// The answer to who has not given the password. Without a password, only who calls this machine by a name of its
    /// own is answered: a page of another site, whose name was turned to this address, is not.
    fn refused(&self, head: &Parts) -> Option<Answer> {
        match &self.credentials {
            Some(credentials) if credentials.are_in(header(head, AUTHORIZATION)) => None,
            Some(_) => {
                let answer = plain(StatusCode::UNAUTHORIZED, "name and password are wanted");
                Some(with(answer, WWW_AUTHENTICATE, "Basic realm=\"siltstone\", charset=\"UTF-8\""))
            }
            None if header(head, HOST).is_none_or(is_this_machine) => None,
            None => Some(plain(StatusCode::FORBIDDEN, "without a password, this is for localhost alone")),
        }
    }

    fn get(self: &Arc<Self>, head: &Parts, names: &[Vec<u8>]) -> Result<Answer, Missing> {
        let resource = self.tree.find(names)?;
        let properties = resource.properties();
        match (resource, properties.file) {
            (Resource::File(snapshot, entry), Some(file)) => self.file(head, &snapshot, &entry, &file),
            (folder, _) => Ok(self.page(head, folder, address_of(names))),
        }
    }

    fn file(
        self: &Arc<Self>,
        head: &Parts,
        snapshot: &SnapshotView,
        entry: &Entry,
        file: &FileProperties,
    ) -> Result<Answer, Missing> {
        let tag = format!("\"{}\"", file.tag);
        let is_named = |list: &str| list.split(',').any(|one| one.trim().trim_start_matches("W/") == tag || one == "*");
        if header(head, IF_NONE_MATCH).is_some_and(is_named) {
            return Ok(with(bare(StatusCode::NOT_MODIFIED), ETAG, &tag));
        }
        let date = http_date(entry.metadata.modified);
        // What changed meanwhile is wanted whole.
        let is_same = header(head, IF_RANGE).is_none_or(|known| known == tag || Some(known) == date.as_deref());
        let range = header(head, RANGE).filter(|_| is_same && head.method == Method::GET);
        let (status, from, to) = match wanted(range, file.size) {
            Wanted::Whole => (StatusCode::OK, 0, file.size),
            Wanted::Part(from, to) => (StatusCode::PARTIAL_CONTENT, from, to),
            Wanted::Beyond => {
                let answer = plain(StatusCode::RANGE_NOT_SATISFIABLE, "no such range");
                return Ok(with(answer, CONTENT_RANGE, &format!("bytes */{}", file.size)));
            }
        };
        let mut answer = bare(status);
        if head.method == Method::GET && from < to {
            let open = self.tree.open(snapshot, entry)?;
            let service = self.clone();
            let read = move |at: u64| -> io::Result<Vec<u8>> {
                let bytes = u32::try_from(to - at).unwrap_or(u32::MAX).min(PIECE_BYTES);
                let read = service.tree.read(&open, at, bytes)?;
                if read.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(read) }
            };
            // What cannot be read from the first byte on is answered as such.
            let mut piece = read(from).map_err(|_| Missing::Unreadable)?;
            *answer.body_mut() = streamed(move |pieces| {
                let mut at = from;
                loop {
                    at += piece.len() as u64;
                    pieces.send(piece)?;
                    if at >= to {
                        return Ok(());
                    }
                    piece = read(at)?;
                }
            });
        }
        let mut answer = with(answer, CONTENT_LENGTH, &(to - from).to_string());
        if status == StatusCode::PARTIAL_CONTENT {
            answer = with(answer, CONTENT_RANGE, &format!("bytes {from}-{}/{}", to - 1, file.size));
        }
        if let Some(date) = date {
            answer = with(answer, LAST_MODIFIED, &date);
        }
        let answer = with(with(answer, ETAG, &tag), ACCEPT_RANGES, "bytes");
        Ok(with(answer, CONTENT_TYPE, "application/octet-stream"))
    }

    /// A folder as a page.
    fn page(self: &Arc<Self>, head: &Parts, folder: Resource, address: String) -> Answer {
        let mut answer = with(bare(StatusCode::OK), CONTENT_TYPE, "text/html; charset=utf-8");
        if head.method == Method::GET {
            let service = self.clone();
            *answer.body_mut() = streamed(move |pieces| {
                let mut list = Gathered { pieces, text: page_begin(&address) };
                service.tree.list(&folder, |name, properties| {
                    let of_child = address_in(&address, name, properties.file.is_none());
                    list.add(&page_line(&of_child, name, properties))
                })?;
                list.end(PAGE_END)
            });
        }
        answer
    }

    fn properties(self: &Arc<Self>, head: &Parts, names: &[Vec<u8>]) -> Result<Answer, Missing> {
        let xml = "application/xml; charset=utf-8";
        let with_children = match header(head, HeaderName::from_static("depth")).map(str::trim) {
            Some("0") => false,
            Some("1") => true,
            // All levels of all snapshots have no end that anybody would wait for.
            _ => return Ok(with(plain(StatusCode::FORBIDDEN, FINITE_DEPTH), CONTENT_TYPE, xml)),
        };
        let resource = self.tree.find(names)?;
        let own = resource.properties();
        let folder = address_of(names);
        let address = if own.file.is_some() { folder.trim_end_matches('/').to_owned() } else { folder.clone() };
        let mut answer = with(bare(StatusCode::MULTI_STATUS), CONTENT_TYPE, xml);
        let service = self.clone();
        *answer.body_mut() = streamed(move |pieces| {
            let mut list = Gathered { pieces, text: BEGIN.to_owned() };
            list.add(&response(&address, &own))?;
            if with_children {
                service.tree.list(&resource, |name, properties| {
                    let of_child = address_in(&folder, name, properties.file.is_none());
                    list.add(&response(&of_child, properties))
                })?;
            }
            list.end(END)
        });
        Ok(answer)
    }
}

/// Text that is handed on in pieces of some size.
struct Gathered<'p> {
    pieces: &'p Pieces,
    text: String,
}

impl Gathered<'_> {
    fn add(&mut self, text: &str) -> io::Result<()> {
        self.text += text;
        if self.text.len() >= LIST_BYTES { self.pieces.send(std::mem::take(&mut self.text)) } else { Ok(()) }
    }

    fn end(mut self, text: &str) -> io::Result<()> {
        self.text += text;
        self.pieces.send(self.text)
    }
}

/// The names of a path; `None` if it cannot be one.
fn names_of(path: &str) -> Option<Vec<Vec<u8>>> {
    let names = path.strip_prefix('/')?.split('/').filter(|name| !name.is_empty());
    let names: Vec<Vec<u8>> = names.map(|name| percent_decode_str(name).collect()).collect();
    let is_name = |name: &Vec<u8>| !name.contains(&b'/') && !name.contains(&0) && name != b"." && name != b"..";
    names.iter().all(is_name).then_some(names)
}

/// Tells whether a host, perhaps with a port, is a name that this machine has for itself.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_loopback = name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    is_loopback || name.eq_ignore_ascii_case("localhost")
}

fn header(head: &Parts, name: HeaderName) -> Option<&str> {
    head.headers.get(name)?.to_str().ok()
}

/// An answer with nothing in it. What it may have later is shown by no browser as a page with rights of its own.
fn bare(status: StatusCode) -> Answer {
    let mut answer = Response::new(whole(""));
    *answer.status_mut() = status;
    let answer = with(answer, X_CONTENT_TYPE_OPTIONS, "nosniff");
    with(answer, CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox allow-same-origin")
}

fn plain(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = with(bare(status), CONTENT_TYPE, "text/plain; charset=utf-8");
    *answer.body_mut() = whole(text);
    answer
}

/// The answer with a header more; one that cannot be told is left out.
fn with(mut answer: Answer, name: HeaderName, value: &str) -> Answer {
    if let Ok(value) = value.parse() {
        answer.headers_mut().insert(name, value);
    }
    answer
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_names_of_any_bytes_and_lead_nowhere_else() {
        assert_eq!(names_of("/"), Some(Vec::new()));
        assert_eq!(names_of("/a%20b//%ff/"), Some(vec![b"a b".to_vec(), b"\xff".to_vec()]));
        for path in ["/..", "/%2e%2e/x", "/a%2fb", "/a%00", "*"] {
            assert_eq!(names_of(path), None, "{path}");
        }
    }

    #[test]
    fn this_machine_is_known_by_its_own_names_alone() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8020", "[::1]:8020", "127.9.9.9"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["example.com", "127.0.0.1.example.com", "localhost.example.com:80", "[::2]", ""] {
            assert!(!is_this_machine(host), "{host}");
        }
    }

    #[test]
    fn name_and_password_are_wanted_as_they_were_given() {
        assert!(Credentials::new("no colon").is_none() && Credentials::new("name:").is_none());
        let credentials = Credentials::new("me:se:cret").expect("both");
        let given = |text: &str| format!("Basic {}", BASE64_STANDARD.encode(text));
        assert!(credentials.are_in(Some(&given("me:se:cret"))));
        for wrong in ["me:secret", "you:se:cret", "me:", ""] {
            assert!(!credentials.are_in(Some(&given(wrong))), "{wrong}");
        }
        assert!(!credentials.are_in(None) && !credentials.are_in(Some("Bearer x")));
    }
}
