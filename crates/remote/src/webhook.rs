//! Web servers that are told how a run ended, by a POST request.

use crate::service::USER_AGENT;
use reqwest::{Client, ClientBuilder, Response, Url, redirect};
use std::fmt;
use std::time::Duration;
use tokio::runtime::Builder;

/// Time that one request has.
const REQUEST_MAX: Duration = Duration::from_secs(10);
/// Pause before a request is made again.
const PAUSE: Duration = Duration::from_secs(1);
/// Redirections that are followed.
const REDIRECTIONS_MAX: usize = 3;

/// The address of a web server. Its path and query may be secret: neither `Debug` nor an error shows them.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook(Url);

/// A web server was not told.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// The address cannot be one.
    #[error("expected an address such as https://host/path")]
    Address,
    /// It does not answer.
    #[error("{0}")]
    Unreachable(String),
    /// It answers that it does not take the message.
    #[error("it answered with status {0}")]
    Refused(u16),
}

impl Webhook {
    /// Reads an address.
    ///
    /// # Errors
    /// It is none, or not one of `http:` or `https:`.
    pub fn parse(text: &str) -> Result<Self, WebhookError> {
        let url = Url::parse(text).map_err(|_| WebhookError::Address)?;
        let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
        if is_web { Ok(Self(url)) } else { Err(WebhookError::Address) }
    }

    /// Returns the name of the server.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// Returns the address of what lies below this one.
    #[must_use]
    pub fn below(&self, name: &str) -> Self {
        let mut url = self.0.clone();
        let path = format!("{}/{name}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        Self(url)
    }

    /// Sends JSON, and tries so many times at most while the server does not answer or says that it has a problem. Each
    /// request takes ten seconds at most.
    ///
    /// # Errors
    /// The last try failed.
    pub fn post(&self, json: &str, tries: u32) -> Result<(), WebhookError> {
        let unreachable = |error: std::io::Error| WebhookError::Unreachable(error.to_string());
        let runtime = Builder::new_current_thread().enable_io().enable_time().build().map_err(unreachable)?;
        runtime.block_on(async {
            let client = client()?;
            for _ in 1..tries {
                match self.post_once(&client, json).await {
                    Err(WebhookError::Unreachable(_) | WebhookError::Refused(500..)) => tokio::time::sleep(PAUSE).await,
                    result => return result,
                }
            }
            self.post_once(&client, json).await
        })
    }

    async fn post_once(&self, client: &Client, json: &str) -> Result<(), WebhookError> {
        let request = client.post(self.0.clone()).header("content-type", "application/json").body(json.to_owned());
        let status = request.send().await.as_ref().map(Response::status).map_err(failed)?;
        if status.is_success() { Ok(()) } else { Err(WebhookError::Refused(status.as_u16())) }
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Webhook").field(&self.host()).finish()
    }
}

fn client() -> Result<Client, WebhookError> {
    let builder = ClientBuilder::new().user_agent(USER_AGENT).timeout(REQUEST_MAX);
    let client = builder.redirect(redirect::Policy::limited(REDIRECTIONS_MAX)).build();
    client.map_err(|error| failed(&error))
}

/// The cause of a failure, without the address.
fn failed(error: &reqwest::Error) -> WebhookError {
    if error.is_timeout() {
        return WebhookError::Unreachable("it did not answer in time".to_owned());
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    // A failure without a deeper cause would be told with its address.
    let is_bare = std::error::Error::source(error).is_none();
    WebhookError::Unreachable(if is_bare { "the request failed".to_owned() } else { cause.to_string() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// Answers requests with these statuses, and returns what was asked.
    fn server(statuses: &'static [u16]) -> (String, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answers = std::thread::spawn(move || {
            statuses
                .iter()
                .map(|status| {
                    let (mut stream, _) = listener.accept().unwrap();
                    let mut asked = Vec::new();
                    let mut bytes = [0; 1024];
                    while !asked.ends_with(b"{}") {
                        let read = stream.read(&mut bytes).unwrap();
                        asked.extend(bytes.iter().take(read));
                    }
                    write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
                    String::from_utf8(asked).unwrap()
                })
                .collect()
        });
        (format!("http://{address}/secret?key=secret"), answers)
    }

    #[test]
    fn a_server_with_a_problem_is_asked_again() {
        let (address, answers) = server(&[503, 200]);
        Webhook::parse(&address).unwrap().below("fail").post("{}", 3).unwrap();
        let asked = answers.join().unwrap();
        assert!(asked.iter().all(|request| request.starts_with("POST /secret/fail?key=secret HTTP/1.1")), "{asked:?}");
    }

    #[test]
    fn a_refusal_is_final_and_shows_no_secret() {
        let (address, answers) = server(&[404]);
        let webhook = Webhook::parse(&address).unwrap();
        assert_eq!(webhook.post("{}", 3), Err(WebhookError::Refused(404)));
        answers.join().unwrap();
        let error = webhook.post("{}", 1).unwrap_err();
        assert!(!format!("{error} {error:?} {webhook:?}").contains("secret"), "{error:?}");
    }
}
