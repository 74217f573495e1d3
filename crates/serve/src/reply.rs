//! Replies, and the statuses by which a server says that something was not done.

use crate::ServeError;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use siltstone_store::storage::StorageError;
use std::error::Error;

/// A response as it is sent.
pub(crate) type Sent = Response<Full<Bytes>>;

/// The answer to a request that was carried out.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn new(status: StatusCode) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new() }
    }

    pub(crate) fn with_body(mut self, kind: &'static str, body: impl Into<Bytes>) -> Self {
        self.headers.push((CONTENT_TYPE, HeaderValue::from_static(kind)));
        self.body = body.into();
        self
    }

    /// Says how long an object is of which nothing is sent.
    pub(crate) fn with_length(mut self, bytes: u64) -> Self {
        self.headers.push((CONTENT_LENGTH, HeaderValue::from(bytes)));
        self
    }

    /// Says which range of an object it is; `*` for what was not looked at.
    pub(crate) fn with_range(mut self, range: &str) -> Self {
        self.headers.extend(HeaderValue::from_str(&format!("bytes {range}")).ok().map(|value| (CONTENT_RANGE, value)));
        self
    }

    pub(crate) fn into_response(self) -> Sent {
        let mut response = Response::new(Full::new(self.body));
        *response.status_mut() = self.status;
        response.headers_mut().extend(self.headers);
        response
    }
}

/// The reason why a request was not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// For people.
    pub(crate) text: String,
    /// Length of the object whose end the range passes.
    found: Option<u64>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), found: None }
    }

    pub(crate) fn into_reply(self) -> Reply {
        let mut reply = Reply::new(self.status).with_body("text/plain; charset=utf-8", format!("{}\n", self.text));
        if let Some(found) = self.found {
            reply = reply.with_range(&format!("*/{found}"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            reply.headers.push((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
        }
        reply
    }
}

impl From<StorageError> for Refusal {
    fn from(error: StorageError) -> Self {
        let status = match &error {
            StorageError::NotFound { .. } => StatusCode::NOT_FOUND,
            StorageError::AlreadyExists { .. } => StatusCode::PRECONDITION_FAILED,
            StorageError::TooShort { .. } => StatusCode::RANGE_NOT_SATISFIABLE,
            StorageError::Full { .. } => StatusCode::INSUFFICIENT_STORAGE,
            StorageError::Unreadable { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            StorageError::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
            StorageError::OutcomeUnknown { .. } => StatusCode::GATEWAY_TIMEOUT,
            StorageError::Refused { .. } | StorageError::NoBucket { .. } => StatusCode::BAD_GATEWAY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let found = if let StorageError::TooShort { found, .. } = &error { Some(*found) } else { None };
        let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
        Self { found, ..Self::new(status, format!("{error}{cause}")) }
    }
}

impl From<ServeError> for Refusal {
    /// Only the server's log says what is wrong with its files.
    fn from(error: ServeError) -> Self {
        tracing::error!(%error, "tokens cannot be read, nobody is let in");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "the server cannot read its tokens; its log says why")
    }
}
