//! The HTTP client of all requests: it logs each at level `debug`, and keeps what a refusal says as a value, without
//! address and headers, so that nothing secret comes into a message.

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use std::time::Instant;
use tracing::debug;

/// Bytes of a refusal's text that are shown.
const TEXT_BYTES_MAX: usize = 300;

/// A request that was answered by a refusal.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{status} {text}")]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// Code and message of the service.
    pub(crate) text: String,
}

/// Makes the clients.
#[derive(Debug, Default)]
pub(crate) struct Connector;

#[derive(Debug)]
struct Service(HttpClient);

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Service(ReqwestConnector::default().connect(options)?)))
    }
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let bytes = request.body().content_length();
        let began = Instant::now();
        let answer = self.0.execute(request).await;
        let milliseconds = (began.elapsed().as_secs_f64() * 1e5).round() / 1e2;
        let response = answer.inspect_err(|error| debug!(%method, path, %error, milliseconds, "request failed"))?;
        let status = response.status();
        debug!(%method, path, bytes, status = status.as_u16(), milliseconds, "request");
        if !(status.is_client_error() || status.is_server_error()) || is_passed_on(method.as_str(), status.as_u16()) {
            return Ok(response);
        }
        let body = response.into_body().bytes().await.unwrap_or_default();
        let refusal = Refusal { status: status.as_u16(), text: said(&String::from_utf8_lossy(&body)) };
        Err(HttpError::new(HttpErrorKind::Unknown, refusal))
    }
}

/// Tells whether `object_store` itself tells this failure apart; all others become a [`Refusal`]. A conflict is a taken
/// name where something is written; where something is deleted, it is a lease or a policy, and its text says which.
fn is_passed_on(method: &str, status: u16) -> bool {
    status == 404 || method == "PUT" && matches!(status, 409 | 412)
}

/// Returns what the body of a refusal says: code and first line of the message of its XML, or its beginning.
fn said(body: &str) -> String {
    let part = |name: &str| {
        let (_, rest) = body.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>"))?.0.trim().lines().next()
    };
    let whole = match (part("Code"), part("Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => body.split_whitespace().collect::<Vec<_>>().join(" "),
    };
    let end = (0..=TEXT_BYTES_MAX.min(whole.len())).rev().find(|&end| whole.is_char_boundary(end));
    whole.get(..end.unwrap_or(0)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_is_a_taken_name_only_where_something_is_written() {
        assert!(is_passed_on("PUT", 409) && is_passed_on("PUT", 412) && is_passed_on("DELETE", 404));
        assert!(!is_passed_on("DELETE", 409) && !is_passed_on("POST", 412) && !is_passed_on("PUT", 403));
    }

    #[test]
    fn a_refusal_is_its_code_and_message() {
        let body = "<Error><Code>SlowDown</Code>\n<Message>Reduce your rate</Message><Key>a</Key></Error>";
        assert_eq!(said(body), "SlowDown: Reduce your rate");
        let of_azure = "<Code>A</Code><Message>Not allowed.\nRequestId:1\nTime:2</Message>";
        assert_eq!(said(of_azure), "A: Not allowed.");
        assert_eq!(said("  no \n XML "), "no XML");
        assert_eq!(said(&"ä".repeat(400)).chars().count(), 150);
        assert_eq!(said(""), "");
    }
}
