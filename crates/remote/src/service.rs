//! The HTTP client of all requests: it counts and paces their bodies, logs each at level `debug`, and keeps what a
//! refusal says as a value, without address and headers, so that nothing secret comes into a message.
//!
//! It stands in the place of `object_store`'s own service, which takes the body of a request whole.

use crate::traffic::{Paced, Traffic};
use async_trait::async_trait;
use http::Method;
use http_body_util::BodyExt;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
    HttpService,
};
use object_store::{ClientConfigKey, ClientOptions, Error};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Body, Certificate, Client, ClientBuilder};
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;
use tracing::debug;

/// Bytes of a refusal's text that are shown.
const TEXT_BYTES_MAX: usize = 300;
/// Bytes of a request's body up to which it waits for no turn: signs of life and commits go beside what is large.
const SMALL_BODY_BYTES_MAX: usize = 64 << 10;
/// The name of this program for servers.
pub(crate) const USER_AGENT: &str = concat!("silt/", env!("CARGO_PKG_VERSION"));

/// A request that was answered by a refusal.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{status} {text}")]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// Code and message of the service.
    pub(crate) text: String,
}

/// Makes the clients, all with the same traffic.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connector {
    pub(crate) traffic: Traffic,
    /// Certificates that servers are trusted by beside those of the system.
    pub(crate) certificates: Vec<Certificate>,
    /// The servers are on this machine: no proxy of the system is used, which would see what is sent.
    pub(crate) is_direct: bool,
}

#[derive(Debug)]
struct Service {
    client: Client,
    traffic: Traffic,
}

impl HttpConnector for Connector {
    /// Makes a client with those of the options that [`crate::connect::client`] and its callers set.
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let value = |key| options.get_config_value(&key);
        let time = |key| value(key).as_deref().and_then(seconds);
        let mut builder = ClientBuilder::new()
            .user_agent(USER_AGENT)
            .http1_only()
            .https_only(value(ClientConfigKey::AllowHttp).as_deref() != Some("true"))
            .tls_certs_merge(self.certificates.iter().cloned())
            .dns_resolver(Rotating);
        if self.is_direct {
            builder = builder.no_proxy();
        }
        if let Some(timeout) = time(ClientConfigKey::ConnectTimeout) {
            builder = builder.connect_timeout(timeout);
        }
        if let Some(timeout) = time(ClientConfigKey::PoolIdleTimeout) {
            builder = builder.pool_idle_timeout(timeout);
        }
        let not_made = |error| Error::Generic { store: "HTTP client", source: Box::new(error) };
        let client = builder.build().map_err(not_made)?;
        Ok(HttpClient::new(Service { client, traffic: self.traffic.clone() }))
    }
}

/// The time in an option's text, which is whole seconds.
fn seconds(text: &str) -> Option<Duration> {
    text.strip_suffix('s')?.parse().ok().map(Duration::from_secs)
}

/// Looks names up as the system does, and begins with any of the addresses, so that the connections to a large service
/// do not all lead to one of its machines.
#[derive(Debug)]
struct Rotating;

impl Resolve for Rotating {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let mut found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let drawn = getrandom::u32().unwrap_or(0) as usize;
            let first = drawn.checked_rem(found.len()).unwrap_or(0);
            found.rotate_left(first);
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

impl Service {
    /// Sends a request and returns the answer, whose body is still to come. Both bodies are paced.
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (mut upload, mut download) = (None, None);
        if request.body().content_length() > SMALL_BODY_BYTES_MAX {
            upload = self.traffic.sent.turn().await;
        } else if request.method() == Method::GET {
            download = self.traffic.received.turn().await;
        }
        let answer = self.client.execute(self.outgoing(request, upload)?).await.map_err(failed)?;
        let (parts, body) = http::Response::<Body>::from(answer).into_parts();
        let body = Paced::new(body.map_err(failed), &self.traffic.received, download);
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }

    fn outgoing(
        &self,
        request: HttpRequest,
        turn: Option<OwnedSemaphorePermit>,
    ) -> Result<reqwest::Request, HttpError> {
        let (parts, body) = request.into_parts();
        let not_understood = |error| HttpError::new(HttpErrorKind::Unknown, error);
        let url = parts.uri.to_string().parse::<url::Url>().map_err(not_understood)?;
        let mut outgoing = reqwest::Request::new(parts.method, url);
        *outgoing.headers_mut() = parts.headers;
        *outgoing.body_mut() = Some(self.outgoing_body(body, turn));
        Ok(outgoing)
    }

    /// A request without content keeps a body that can be sent again, to where the server redirects it.
    fn outgoing_body(&self, body: HttpRequestBody, turn: Option<OwnedSemaphorePermit>) -> Body {
        if body.content_length() == 0 {
            Body::default()
        } else {
            Body::wrap(Paced::new(body, &self.traffic.sent, turn))
        }
    }
}

/// Sorts a failure as far as the callers tell failures apart, and leaves the address out. A connection that was not
/// made in time was not made: nothing was sent on it.
fn failed(error: reqwest::Error) -> HttpError {
    let kind = match &error {
        error if error.is_connect() => HttpErrorKind::Connect,
        error if error.is_timeout() => HttpErrorKind::Timeout,
        error if error.is_decode() => HttpErrorKind::Decode,
        _ => HttpErrorKind::Interrupted,
    };
    HttpError::new(kind, error.without_url())
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let bytes = request.body().content_length();
        let began = Instant::now();
        let answer = self.send(request).await;
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
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::connect::client;
    use crate::traffic::Limits;
    use bytes::Bytes;
    use object_store::PutPayload;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::thread;

    /// Answers one request with a body; returns the address, and what will hold the request's headers and body.
    fn answering(answer: Vec<u8>) -> (String, thread::JoinHandle<(String, Vec<u8>)>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/object", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                stream.read_line(&mut head).unwrap();
            }
            let length = head
                .to_lowercase()
                .split_once("content-length: ")
                .map_or(0, |(_, rest)| rest.lines().next().unwrap().parse().unwrap());
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let head_of_answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", answer.len());
            stream.get_mut().write_all(&[head_of_answer.as_bytes(), &answer].concat()).unwrap();
            (head, body)
        });
        (address, server)
    }

    /// Makes one request; returns what the server and the client got, and the bytes counted both ways.
    fn exchanged(
        method: Method,
        content: Vec<u8>,
        answer: Vec<u8>,
        limits: Limits,
    ) -> (String, Vec<u8>, Bytes, [u64; 2]) {
        let (address, server) = answering(answer);
        let traffic = Traffic::new(limits);
        let connector = Connector { traffic: traffic.clone(), ..Connector::default() };
        let client = connector.connect(&client().with_allow_http(true)).unwrap();
        let body = HttpRequestBody::from(PutPayload::from(content));
        let request = http::Request::builder().method(method).uri(address).body(body).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let got = runtime.block_on(async { client.execute(request).await.unwrap().into_body().bytes().await.unwrap() });
        let (head, body) = server.join().unwrap();
        (head, body, got, [traffic.bytes_sent(), traffic.bytes_received()])
    }

    #[test]
    fn every_byte_of_a_body_is_counted_both_ways_with_a_limit_or_without() {
        let content: Vec<u8> = (0..300_000u32).map(|i| i.to_le_bytes()[0]).collect();
        let fast = Limits { upload: Some(1 << 30), download: Some(1 << 30) };
        for limits in [Limits::default(), fast] {
            let (head, body, got, counted) = exchanged(Method::PUT, content.clone(), vec![3; 100_000], limits);
            assert!(body == content && got == vec![3; 100_000]);
            assert_eq!(counted, [300_000, 100_000]);
            assert!(!head.to_lowercase().contains("transfer-encoding"), "its length is told before: {head}");
        }
    }

    #[test]
    fn a_request_without_content_counts_for_nothing() {
        let (head, body, got, counted) = exchanged(Method::GET, Vec::new(), vec![3; 10], Limits::default());
        assert_eq!((body.len(), got.len(), counted), (0, 10, [0, 10]));
        assert!(head.to_lowercase().contains("user-agent: silt/"), "{head}");
    }

    #[test]
    fn a_connection_that_is_not_made_in_time_is_not_made() {
        // The system takes the connection, and nobody says what TLS needs.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("https://{}/object", listener.local_addr().unwrap());
        let connector = Connector { is_direct: true, ..Connector::default() };
        let client = connector.connect(&client().with_connect_timeout(Duration::from_secs(1))).unwrap();
        let body = HttpRequestBody::from(PutPayload::from(vec![1u8; 10]));
        let request = http::Request::builder().method(Method::PUT).uri(address).body(body).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let Err(error) = runtime.block_on(client.execute(request)) else { panic!("nobody answers") };
        assert_eq!(error.kind(), HttpErrorKind::Connect, "{error}");
    }

    #[test]
    fn times_of_options_are_whole_seconds() {
        let options = ClientOptions::new().with_connect_timeout(Duration::from_secs(1));
        let text = options.get_config_value(&ClientConfigKey::ConnectTimeout).unwrap();
        assert_eq!(seconds(&text), Some(Duration::from_secs(1)));
        assert_eq!(seconds("100ms"), None);
    }

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
