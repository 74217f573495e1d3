//! From a request to its reply: who asks, what for, may they, and then the storage.
//!
//! Nothing is taken into memory before it is known to be allowed and short enough, and all bodies together stay below
//! [`Service::bytes`]. Calls to the storage block, so they have threads of their own.

use crate::Tokens;
use crate::access::{reaches, require, require_delete};
use crate::call::{ByteRange, Call};
use crate::metrics::{CONTENT_TYPE, Metrics};
use crate::reply::{Refusal, Reply, Sent};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::AUTHORIZATION;
use hyper::{HeaderMap, Request, StatusCode};
use siltstone_remote::protocol::{DELETE_NAMES_MAX, Granted, PAGE_OBJECTS_MAX, Page};
use siltstone_store::container::CONTAINER_BYTES_MAX;
use siltstone_store::storage::{Listing, ObjectMeta, ObjectName, Storage, StorageError};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Bytes of names in a body, at most: [`DELETE_NAMES_MAX`] of the longest.
const NAMES_BYTES_MAX: u64 = 256 << 10;
/// Slowest upload that is waited for, in bytes per second.
const UPLOAD_RATE_MIN: u64 = 32 << 10;
/// Characters of a path that is no object's, in the log.
const LOGGED_CHARS_MAX: usize = 100;
/// Bytes that one permit of the semaphore stands for.
const PERMIT_BYTES: u64 = 1 << 10;

/// State that all connections share.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) tokens: Tokens,
    pub(crate) metrics: Metrics,
    /// Room for bodies, in permits of 1 KiB.
    pub(crate) bytes: Arc<Semaphore>,
    /// Bytes of all bodies together, at most.
    pub(crate) bytes_max: u64,
    /// Time without a byte after which a client is given up.
    pub(crate) silence: Duration,
}

/// Words of the log on a request, beside its reply.
#[derive(Default)]
struct Entry {
    token: String,
    object: String,
    received: u64,
}

impl Service {
    /// Answers a request of this peer, logs it and counts it.
    pub(crate) async fn answer(&self, peer: SocketAddr, request: Request<Incoming>) -> Sent {
        let began = Instant::now();
        let (method, mut entry) = (request.method().clone(), Entry::default());
        let reply = match self.carry_out(request, &mut entry).await {
            Ok(reply) => reply,
            Err(refusal) => {
                let (token, object, reason) = (&entry.token, &entry.object, &refusal.text);
                tracing::debug!(token, %method, object, reason, "refused");
                refusal.into_reply()
            }
        };
        let (Entry { token, object, received }, sent, took) = (entry, reply.body.len() as u64, began.elapsed());
        let (status, milliseconds) = (reply.status.as_u16(), (took.as_secs_f64() * 1e5).round() / 1e2);
        tracing::info!(token, %peer, %method, object, status, received, sent, milliseconds, "request");
        self.metrics.count(&method, reply.status, received, sent, took);
        reply.into_response()
    }

    async fn carry_out(&self, request: Request<Incoming>, entry: &mut Entry) -> Result<Reply, Refusal> {
        let (parts, mut body) = request.into_parts();
        let allowed = self.allowed(&parts, entry);
        let (granted, call) = match allowed {
            Ok(allowed) => allowed,
            Err(refusal) => {
                self.pass_over(body).await;
                return Err(refusal);
            }
        };
        match call {
            Call::Read(name, None) => self.read(name).await,
            Call::Read(name, Some(range)) => self.read_range(name, range).await,
            Call::Size(name) => {
                let bytes = self.ask(move |storage| storage.size_of(&name)).await?;
                Ok(Reply::new(StatusCode::OK).with_length(bytes))
            }
            Call::Create(name) => {
                let (bytes, room) = match self.receive(&mut body, name.bytes_max()).await {
                    Ok(received) => received,
                    Err(refusal) => {
                        self.pass_over(body).await;
                        return Err(refusal);
                    }
                };
                entry.received = bytes.len() as u64;
                self.create(name, bytes, room).await
            }
            Call::Delete(name) => self.delete(vec![name]).await,
            Call::DeleteMany => {
                let (bytes, _room) = self.receive(&mut body, NAMES_BYTES_MAX).await?;
                entry.received = bytes.len() as u64;
                let names = names(&bytes)?;
                entry.object = format!("{} objects", names.len());
                names.iter().try_for_each(|name| require_delete(&granted, name))?;
                self.delete(names).await
            }
            Call::List { what, after } => self.list(&granted, what, after).await,
            Call::Rights => {
                let keeps_reserve = self.storage.capabilities().keeps_reserve;
                json(&Granted { keeps_reserve, ..granted.as_ref().clone() })
            }
            Call::Metrics => Ok(Reply::new(StatusCode::OK).with_body(CONTENT_TYPE, self.metrics.text())),
        }
    }

    /// Finds out who asks, what for, and that it is allowed.
    fn allowed(&self, parts: &hyper::http::request::Parts, entry: &mut Entry) -> Result<(Arc<Granted>, Call), Refusal> {
        entry.object = parts.uri.path().chars().take(LOGGED_CHARS_MAX).collect();
        let unknown = || Refusal::new(StatusCode::UNAUTHORIZED, "the token is missing or unknown");
        let granted = self.tokens.find(token(&parts.headers).ok_or_else(unknown)?)?.ok_or_else(unknown)?;
        entry.token.clone_from(&granted.token);
        let call = Call::parse(parts)?;
        entry.object = call.object().unwrap_or_else(|| std::mem::take(&mut entry.object));
        require(&granted, &call)?;
        Ok((granted, call))
    }

    async fn read(&self, name: ObjectName) -> Result<Reply, Refusal> {
        let bytes = self.ask(move |storage| storage.size_of(&name)).await?;
        let room = self.room_for(bytes).await?;
        // A client that hangs up ends the waiting and not the reading, which holds its room until it is over.
        let read = self.ask(move |storage| storage.read(&name, bytes).map(|read| held(read, room))).await?;
        Ok(Reply::new(StatusCode::OK).with_body(OCTETS, read))
    }

    async fn read_range(&self, name: ObjectName, range: ByteRange) -> Result<Reply, Refusal> {
        let ByteRange { offset, length } = range;
        let room = self.room_for(length as u64).await?;
        let read = move |storage: &dyn Storage| storage.read_range(&name, offset, length).map(|read| held(read, room));
        let read = self.ask(read).await?;
        let shown = format!("{offset}-{}/*", offset.saturating_add(length as u64).saturating_sub(1));
        Ok(Reply::new(StatusCode::PARTIAL_CONTENT).with_range(&shown).with_body(OCTETS, read))
    }

    /// Creates an object, durable on return. Each is created by itself, whatever its kind: a barrier over the puts of
    /// several clients would tell one the failure of another.
    async fn create(&self, name: ObjectName, bytes: Vec<u8>, room: OwnedSemaphorePermit) -> Result<Reply, Refusal> {
        let create = move |storage: &dyn Storage| {
            let _room = room;
            match name {
                ObjectName::Renewal(..) => storage.renew(&name, None),
                name => storage.create(&name, &bytes),
            }
        };
        self.ask(create).await?;
        self.metrics.created.inc();
        Ok(Reply::new(StatusCode::CREATED))
    }

    /// Deletes objects, durably.
    async fn delete(&self, names: Vec<ObjectName>) -> Result<Reply, Refusal> {
        let count = names.len() as u64;
        self.ask(move |storage| storage.delete_many(&names).and_then(|()| storage.barrier())).await?;
        self.metrics.deleted.inc_by(count);
        Ok(Reply::new(StatusCode::NO_CONTENT))
    }

    /// Lists a page of the objects that the token reaches, in the order of their names' texts.
    async fn list(&self, granted: &Granted, what: Listing, after: String) -> Result<Reply, Refusal> {
        let last = ObjectName::from_text(&after).filter(|last| what != Listing::All && what.holds(last));
        let listed = self.ask(move |storage| match last {
            Some(last) => storage.list_after(what, &last),
            None => storage.list(what),
        });
        json(&page(granted, listed.await?, &after))
    }

    /// Calls the storage in a thread that may block.
    async fn ask<T: Send + 'static>(
        &self,
        call: impl FnOnce(&dyn Storage) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let storage = Arc::clone(&self.storage);
        match tokio::task::spawn_blocking(move || call(storage.as_ref())).await {
            Ok(result) => Ok(result?),
            Err(_) => Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the work was broken off")),
        }
    }

    /// Waits until there is room for a body.
    async fn room_for(&self, bytes: u64) -> Result<OwnedSemaphorePermit, Refusal> {
        let too_long = || {
            let text = format!("the server takes {} bytes at a time; it needs more memory for this", self.bytes_max);
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text)
        };
        if bytes > self.bytes_max {
            return Err(too_long());
        }
        let permits = u32::try_from(bytes.div_ceil(PERMIT_BYTES)).map_err(|_| too_long())?;
        let busy = || Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server is busy with other bodies");
        let room = timeout(self.silence, Arc::clone(&self.bytes).acquire_many_owned(permits)).await;
        room.map_err(|_| busy())?.map_err(|_| busy())
    }

    /// Receives a body of at most this length. Its length is known, and allowed, before any of it is held.
    async fn receive(&self, body: &mut Incoming, bytes_max: u64) -> Result<(Vec<u8>, OwnedSemaphorePermit), Refusal> {
        let length = body.size_hint().exact();
        let length = length.ok_or_else(|| Refusal::new(StatusCode::LENGTH_REQUIRED, "say how long the body is"))?;
        if length > bytes_max {
            let text = format!("the body has {length} bytes; {bytes_max} are allowed for what it is");
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text));
        }
        let room = self.room_for(length).await?;
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
        let slow = |_| Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body came too slowly");
        let collect = async {
            while let Some(frame) = timeout(self.silence, body.frame()).await.map_err(slow)? {
                let broken = |_| Refusal::new(StatusCode::BAD_REQUEST, "the body was cut short");
                if let Some(data) = frame.map_err(broken)?.data_ref() {
                    bytes.extend_from_slice(data);
                }
            }
            Ok::<_, Refusal>(())
        };
        timeout(self.patience(length), collect).await.map_err(slow)??;
        if bytes.len() as u64 == length {
            Ok((bytes, room))
        } else {
            Err(Refusal::new(StatusCode::BAD_REQUEST, "the body was cut short"))
        }
    }

    /// Takes a body and drops it, so that who sends it sees the refusal and not a broken connection. One that no client
    /// of ours would send is left, and the connection ends.
    async fn pass_over(&self, mut body: Incoming) {
        if body.size_hint().exact().is_none_or(|length| length > CONTAINER_BYTES_MAX) {
            return;
        }
        let drain = async { while let Some(Ok(_)) = body.frame().await {} };
        let _ = timeout(self.silence, drain).await;
    }

    /// Time that a body of this length may take.
    fn patience(&self, bytes: u64) -> Duration {
        self.silence + Duration::from_secs(bytes / UPLOAD_RATE_MIN)
    }
}

const OCTETS: &str = "application/octet-stream";

/// Bytes that give their room back when the last of them was sent.
fn held(bytes: Vec<u8>, room: OwnedSemaphorePermit) -> Bytes {
    struct Held(Vec<u8>, #[allow(dead_code, reason = "its drop gives the room back")] OwnedSemaphorePermit);
    impl AsRef<[u8]> for Held {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    Bytes::from_owner(Held(bytes, room))
}

/// The token in the headers of a request.
fn token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The names in a body, one a line.
fn names(body: &[u8]) -> Result<Vec<ObjectName>, Refusal> {
    let invalid = |text: String| Refusal::new(StatusCode::BAD_REQUEST, text);
    let text = std::str::from_utf8(body).map_err(|_| invalid("names are text, one a line".to_owned()))?;
    let read = |line| ObjectName::from_text(line).ok_or_else(|| invalid("a line of the body is no name".to_owned()));
    let names = text.lines().take(DELETE_NAMES_MAX + 1).map(read).collect::<Result<Vec<_>, _>>()?;
    if names.len() > DELETE_NAMES_MAX {
        return Err(invalid(format!("{DELETE_NAMES_MAX} names at a time, no more")));
    }
    Ok(names)
}

/// The first page of what was listed and comes after a text.
fn page(granted: &Granted, listed: Vec<ObjectMeta>, after: &str) -> Page {
    let reached = listed.into_iter().filter(|object| reaches(granted, &object.name));
    let named = reached.map(|object| (object.name.to_string(), object.bytes));
    let mut objects: Vec<(String, u64)> = named.filter(|(name, _)| name.as_str() > after).collect();
    objects.sort_unstable();
    let has_more = objects.len() > PAGE_OBJECTS_MAX;
    objects.truncate(PAGE_OBJECTS_MAX);
    Page { objects, has_more }
}

fn json(value: &impl serde::Serialize) -> Result<Reply, Refusal> {
    let failed = |error: serde_json::Error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
    let text = serde_json::to_vec(value).map_err(failed)?;
    Ok(Reply::new(StatusCode::OK).with_body("application/json", text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_remote::protocol::{Right, SeriesScope};
    use siltstone_store::SeriesId;

    #[test]
    fn pages_follow_one_another_until_the_end() {
        let granted =
            Granted { token: "t".into(), series: SeriesScope::All, rights: [Right::List].into(), keeps_reserve: false };
        let name = |sequence| ObjectName::Manifest(SeriesId([1; 16]), sequence);
        let count = PAGE_OBJECTS_MAX as u64 + 5;
        let listed: Vec<ObjectMeta> = (0..count).map(|at| ObjectMeta { name: name(at), bytes: at }).collect();
        let first = page(&granted, listed.clone(), "");
        assert_eq!((first.objects.len(), first.has_more), (PAGE_OBJECTS_MAX, true));
        let last = first.objects.last().map(|(name, _)| name.clone()).unwrap_or_default();
        let second = page(&granted, listed, &last);
        assert_eq!((second.objects.len(), second.has_more), (5, false));
        assert!(second.objects.iter().all(|(name, _)| *name > last));
    }

    #[test]
    fn names_in_a_body_are_all_read_or_none() {
        assert!(names(b"").is_ok_and(|names| names.is_empty()));
        assert!(names(b"config/0000000000000001\nreserve\n").is_ok_and(|names| names.len() == 2));
        for wrong in [&b"config/1"[..], b"reserve\n\nreserve", b"\xff", b"../x"] {
            assert!(names(wrong).is_err());
        }
        assert!(names("reserve\n".repeat(DELETE_NAMES_MAX + 1).as_bytes()).is_err());
    }
}
