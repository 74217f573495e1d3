//! A server of this program, `silt serve`, as an object store.
//!
//! ```text
//! put      PUT /o/<name>, If-None-Match: *      201, or 412 where the name is taken
//! get      GET or HEAD /o/<name>, Range         200, 206, 404, 416
//! delete   POST /delete, names by line          204
//! list     GET /list?prefix=..&after=..         pages of JSON
//! ```
//! Retries, lost answers and the window of requests are those of every object store ([`crate::ObjectStorage`]).

mod address;

pub use address::ServerAddress;

use crate::connect::{Variables, client};
use crate::place::PlaceError;
use crate::protocol::{DELETE, DELETE_NAMES_MAX, Granted, LIST, OBJECTS, Page, RIGHTS};
use crate::service::{Connector, Refusal};
use crate::traffic::Traffic;
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, IF_NONE_MATCH, RANGE};
use http::{Extensions, HeaderValue, Method, Request, StatusCode};
use object_store::client::{HttpClient, HttpConnector, HttpRequest, HttpRequestBody, HttpResponse};
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use reqwest::Certificate;
use std::fmt;
use std::time::Duration;

/// Bytes of an answer in JSON, at most: a page of the longest names.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Time after which a connection that is not used is closed here, before the server does.
const IDLE: Duration = Duration::from_secs(20);
/// The variables that give a token.
const VARIABLES: &str = "SILT_TOKEN, or SILT_TOKEN_FILE";

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct ServerStore {
    client: HttpClient,
    /// The address without a slash at its end.
    base: String,
    authorization: HeaderValue,
}

impl ServerStore {
    /// Connects nothing yet. All bytes will count as this traffic.
    ///
    /// # Errors
    /// The variables give no token, or a certificate that cannot be read; plain HTTP would show the token.
    pub(crate) fn new(address: &ServerAddress, variables: &Variables, traffic: &Traffic) -> Result<Self, PlaceError> {
        let settings = |reason: String| PlaceError::Settings { location: address.to_string(), reason };
        if address.shows_secrets() && variables.get("SILT_ALLOW_PLAIN_HTTP").is_none() {
            let reason = "plain HTTP shows the token to the network; use https:, or set SILT_ALLOW_PLAIN_HTTP=1";
            return Err(settings(reason.to_owned()));
        }
        let options = client().with_allow_http(address.is_plain_http()).with_pool_idle_timeout(IDLE);
        let is_direct = address.stays_here();
        let mut connector = Connector { traffic: traffic.clone(), is_direct, ..Connector::default() };
        if let Some(path) = variables.get("SILT_CACERT") {
            let pem = std::fs::read(path).map_err(|error| settings(format!("SILT_CACERT is {path}: {error}")))?;
            let of_file = |error| settings(format!("SILT_CACERT is {path}: {error}"));
            connector.certificates = Certificate::from_pem_bundle(&pem).map_err(of_file)?;
        }
        let client = connector.connect(&options).map_err(|error| settings(error.to_string()))?;
        let token = token(address, variables)?;
        let mut authorization = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| settings("the token holds characters that no token has".to_owned()))?;
        authorization.set_sensitive(true);
        Ok(Self { client, base: address.base(), authorization })
    }

    /// Returns the rights of the token.
    pub(crate) async fn rights(&self) -> Result<Granted> {
        self.json(RIGHTS).await
    }

    /// Removes these objects, [`DELETE_NAMES_MAX`] at most.
    async fn remove(&self, paths: &[Path]) -> Result<()> {
        let names: Vec<&str> = paths.iter().map(AsRef::as_ref).collect();
        let request = self.request(Method::POST, DELETE)?;
        self.send(with_body(request, Bytes::from(names.join("\n"))), DELETE).await.map(drop)
    }

    /// Returns one page of a listing.
    async fn page(&self, prefix: &str, after: &str) -> Result<Page> {
        self.json(&format!("{LIST}?prefix={prefix}&after={after}")).await
    }

    /// All pages of a listing.
    fn pages(&self, prefix: Option<&Path>, after: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (store, prefix) = (self.clone(), prefix.map_or_else(String::new, ToString::to_string));
        let first = Some(after.map_or_else(String::new, ToString::to_string));
        let pages = stream::try_unfold(first, move |after| {
            let (store, prefix) = (store.clone(), prefix.clone());
            async move {
                let Some(after) = after else { return Ok(None) };
                let page = store.page(&prefix, &after).await?;
                let last = page.objects.last().map(|(name, _)| name.clone());
                let next = last.filter(|last| page.has_more && *last > after);
                Ok::<_, Error>(Some((page.objects, next)))
            }
        });
        let metas = |objects: Vec<(String, u64)>| {
            stream::iter(objects.into_iter().map(|(name, bytes)| Ok(meta(Path::parse(name)?, bytes))))
        };
        pages.map_ok(metas).try_flatten().boxed()
    }

    async fn json<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<T> {
        let request = self.request(Method::GET, path)?;
        let mut stream = self.send(request, path).await?.into_body().bytes_stream();
        let mut body = Vec::new();
        while let Some(bytes) = stream.next().await {
            body.extend_from_slice(&bytes.map_err(generic)?);
            if body.len() > ANSWER_BYTES_MAX {
                return Err(generic(std::io::Error::other("the answer is longer than any of this server's")));
            }
        }
        serde_json::from_slice(&body).map_err(generic)
    }

    fn request(&self, method: Method, path: &str) -> Result<HttpRequest> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .body(HttpRequestBody::empty())
            .map_err(generic)?;
        request.headers_mut().insert(AUTHORIZATION, self.authorization.clone());
        Ok(request)
    }

    /// Returns the answer to a request, sorted by its status.
    async fn send(&self, request: HttpRequest, path: &str) -> Result<HttpResponse> {
        let response = self.client.execute(request).await.map_err(generic)?;
        let (status, path) = (response.status(), path.to_owned());
        let refusal = || Refusal { status: status.as_u16(), text: "an answer that was not expected".to_owned() };
        match status {
            StatusCode::NOT_FOUND => Err(Error::NotFound { path, source: Box::new(refusal()) }),
            StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED => {
                Err(Error::AlreadyExists { path, source: Box::new(refusal()) })
            }
            status if status.is_success() => Ok(response),
            _ => Err(generic(refusal())),
        }
    }
}

/// The token that the variables give.
fn token(address: &ServerAddress, variables: &Variables) -> Result<String, PlaceError> {
    let location = address.to_string();
    let token = match (variables.get("SILT_TOKEN"), variables.get("SILT_TOKEN_FILE")) {
        (Some(token), _) => token.to_owned(),
        (None, Some(path)) => std::fs::read_to_string(path).map_err(|error| PlaceError::Settings {
            location: location.clone(),
            reason: format!("SILT_TOKEN_FILE is {path}: {error}"),
        })?,
        (None, None) => String::new(),
    };
    match token.trim() {
        "" => Err(PlaceError::NoCredentials { location, variables: VARIABLES }),
        token => Ok(token.to_owned()),
    }
}

fn with_body(request: HttpRequest, body: Bytes) -> HttpRequest {
    request.map(|_| HttpRequestBody::from(body))
}

fn generic(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic { store: "silt", source: Box::new(error) }
}

fn not_done(operation: &str) -> Error {
    Error::NotImplemented { operation: operation.to_owned(), implementer: "silt".to_owned() }
}

#[allow(clippy::default_trait_access, reason = "the time's type is of a crate that is needed for nothing else")]
fn meta(location: Path, size: u64) -> ObjectMeta {
    ObjectMeta { location, size, last_modified: Default::default(), e_tag: None, version: None }
}

/// The number in a header, after its last slash or as a whole.
fn number(response: &HttpResponse, header: http::HeaderName) -> Option<u64> {
    let text = response.headers().get(header)?.to_str().ok()?;
    text.rsplit('/').next()?.parse().ok()
}

impl fmt::Display for ServerStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

#[async_trait]
impl ObjectStore for ServerStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        if options.mode != PutMode::Create {
            return Err(not_done("replacing an object"));
        }
        let mut request = self.request(Method::PUT, &format!("{OBJECTS}{location}"))?;
        request.headers_mut().insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
        self.send(with_body(request, payload.into()), location.as_ref()).await?;
        Ok(PutResult { e_tag: None, version: None, extensions: Extensions::default() })
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(not_done("writing in parts"))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let method = if options.head { Method::HEAD } else { Method::GET };
        let mut request = self.request(method, &format!("{OBJECTS}{location}"))?;
        let asked = match options.range {
            None => None,
            Some(GetRange::Bounded(range)) if !range.is_empty() => Some(range),
            Some(_) => return Err(not_done("reading a range without an end")),
        };
        if let Some(range) = &asked {
            let text = format!("bytes={}-{}", range.start, range.end - 1);
            request.headers_mut().insert(RANGE, HeaderValue::from_str(&text).map_err(generic)?);
        }
        let response = self.send(request, location.as_ref()).await?;
        let missing = || generic(std::io::Error::other("the answer does not say how long the object is"));
        let size = match &asked {
            // The server reads a range without looking how much there is beyond it.
            Some(range) => number(&response, CONTENT_RANGE).unwrap_or(range.end),
            None => number(&response, CONTENT_LENGTH).ok_or_else(missing)?,
        };
        let body = response.into_body().bytes_stream().map_err(generic).boxed();
        Ok(GetResult {
            payload: GetResultPayload::Stream(body),
            meta: meta(location.clone(), size),
            range: asked.unwrap_or(0..size),
            attributes: Attributes::default(),
            extensions: Extensions::default(),
        })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let store = self.clone();
        let batches = locations.chunks(DELETE_NAMES_MAX).then(move |batch| {
            let store = store.clone();
            async move {
                let paths = batch.into_iter().collect::<Result<Vec<Path>>>()?;
                store.remove(&paths).await?;
                Ok::<_, Error>(stream::iter(paths.into_iter().map(Ok)))
            }
        });
        batches.try_flatten().boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.pages(prefix, None)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.pages(prefix, Some(offset))
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        Err(not_done("listing folders"))
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(not_done("copying an object"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn store(address: &str, variables: &[(&str, &str)]) -> Result<ServerStore, PlaceError> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ServerStore::new(&ServerAddress::parse(address).unwrap(), &variables, &Traffic::default())
    }

    #[test]
    fn a_token_comes_from_a_variable_or_a_file_and_is_not_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hidden\n").unwrap();
        for variable in [("SILT_TOKEN", "hidden"), ("SILT_TOKEN_FILE", file.path().to_str().unwrap())] {
            let store = store("https://host/", &[variable]).unwrap();
            assert_eq!(store.authorization, "Bearer hidden");
            assert!(!format!("{store:?}").contains("hidden"));
        }
        let error = store("https://host/", &[]).unwrap_err().to_string();
        assert!(error.contains("silt:https://host/") && error.contains("SILT_TOKEN_FILE"), "{error}");
        store("https://host/", &[("SILT_TOKEN_FILE", "/nowhere/token")]).unwrap_err();
    }

    #[test]
    fn what_stays_on_this_machine_is_sent_to_no_proxy() {
        let has_proxies = |address: &str| {
            let store = store(address, &[("SILT_TOKEN", "hidden"), ("SILT_ALLOW_PLAIN_HTTP", "1")]).unwrap();
            format!("{:?}", store.client).contains("proxies")
        };
        for loopback in ["http://127.0.0.1:8010/", "http://[::1]:8010/", "http://localhost/", "https://127.0.0.1/"] {
            assert!(!has_proxies(loopback), "{loopback}");
        }
        for elsewhere in ["http://backup.example.com/", "https://backup.example.com/"] {
            assert!(has_proxies(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn plain_http_is_refused_unless_it_stays_on_this_machine_or_is_allowed() {
        let token = ("SILT_TOKEN", "hidden");
        let error = store("http://backup.example.com/", &[token]).unwrap_err().to_string();
        assert!(error.contains("SILT_ALLOW_PLAIN_HTTP"), "{error}");
        store("http://backup.example.com/", &[token, ("SILT_ALLOW_PLAIN_HTTP", "1")]).unwrap();
        for loopback in ["http://127.0.0.1:8010/", "http://[::1]:8010/", "http://localhost/"] {
            store(loopback, &[token]).unwrap();
        }
    }
}
