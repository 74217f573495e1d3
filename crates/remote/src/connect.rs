//! From a bucket's address to a storage, with the credentials that the environment gives.

use crate::object::ObjectStorage;
use crate::place::{Bucket, PlaceError, Service};
use crate::profile::Profile;
use crate::retries::Retries;
use crate::served::{ServerAddress, ServerStore};
use crate::service::Connector;
use crate::traffic::Traffic;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::azure::{AzureConfigKey, MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{ClientOptions, ObjectStore, RetryConfig};
use siltstone_store::storage::StorageError;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The region that is named to servers which have none.
const REGION_DEFAULT: &str = "us-east-1";
/// Variables that give keys of Amazon where no machine's role does.
const S3_VARIABLES: &str = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE";
/// Variables that name an account of Azure, and give its key.
const AZURE_VARIABLES: &str = "AZURE_ACCOUNT_NAME, and AZURE_ACCOUNT_KEY or AZURE_ACCOUNT_SAS";
/// A variable by which the tools of Google Cloud find an emulator: `host:port`, or an address with `http://` before it.
const GOOGLE_EMULATOR: &str = "STORAGE_EMULATOR_HOST";
/// The token for an emulator, which asks for none: no real one is sent there.
const EMULATOR_TOKEN: &str = "emulator";
/// A variable that leads to an emulator of Azure, whose account and key are known to all.
const AZURE_EMULATOR: &str = "AZURE_STORAGE_USE_EMULATOR";
/// Variables by which a role of the machine gives keys.
const ROLES: [&str; 3] =
    ["AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"];

/// Variables of an environment: credentials and settings by the names that the services' own tools use. Empty ones
/// count as not set.
#[derive(Clone, Default)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Returns the variables of this process.
    pub fn of_process() -> Self {
        let texts =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        texts.collect()
    }

    /// Returns these variables and others, which go before those of the same name.
    #[must_use]
    pub fn with(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.0.extend(variables);
        self
    }

    /// Returns these variables with this file of certificates that servers are trusted by, if one is given.
    #[must_use]
    pub fn with_certificates(self, file: Option<&Path>) -> Self {
        let file = file.map(|file| file.to_string_lossy().into_owned());
        self.with(file.map(|file| ("SILT_CACERT".to_owned(), file)))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The variables whose names begin so and that `known` reads in small letters.
    fn settings<'v, K>(&'v self, prefix: &str, known: impl Fn(&str) -> Option<K>) -> Vec<(K, &'v str)> {
        let ours = self.0.iter().filter(|(name, value)| name.starts_with(prefix) && !value.is_empty());
        ours.filter_map(|(name, value)| Some((known(&name.to_ascii_lowercase())?, value.as_str()))).collect()
    }
}

impl FromIterator<(String, String)> for Variables {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}

impl fmt::Debug for Variables {
    /// Names alone: values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

/// A bucket cannot be connected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address or the credentials do not do.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The machine does not do.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Makes the storage of a bucket, whose bytes count as this traffic. Nothing is asked of the place yet.
///
/// # Errors
/// The variables give no credentials, or settings that are not understood.
pub fn connect(bucket: &Bucket, variables: &Variables, traffic: &Traffic) -> Result<ObjectStorage, ConnectError> {
    let location = bucket.to_string();
    let connector = Connector { traffic: traffic.clone(), ..Connector::default() };
    let (store, deletes_in_batches): (Arc<dyn ObjectStore>, bool) = match &bucket.service {
        Service::S3 { endpoint } => (Arc::new(s3(bucket, endpoint, &location, variables, connector)?), true),
        Service::Google => (Arc::new(google(bucket, &location, variables, connector)?), false),
        Service::Azure => (Arc::new(azure(bucket, &location, variables, connector)?), true),
    };
    let storage = ObjectStorage::over(store, &bucket.prefix, &location, Retries::default(), traffic)?
        .with_append_only(variables.has("SILT_APPEND_ONLY"));
    Ok(if deletes_in_batches { storage.with_batch_delete() } else { storage })
}

/// Makes the storage of a server of this program, with the token that the variables give, and asks what it may do. Its
/// bytes count as this traffic.
///
/// # Errors
/// The variables give no token, or one that the server does not know; the server cannot be reached.
pub fn connect_served(
    address: &ServerAddress,
    variables: &Variables,
    traffic: &Traffic,
) -> Result<ObjectStorage, ConnectError> {
    let server = ServerStore::new(address, variables, traffic)?;
    Ok(ObjectStorage::of_server(server, &address.to_string(), Retries::default(), traffic)?)
}

fn s3(
    bucket: &Bucket,
    endpoint: &str,
    location: &str,
    variables: &Variables,
    connector: Connector,
) -> Result<AmazonS3, PlaceError> {
    let mut builder = s3_settings(endpoint, variables)
        .with_bucket_name(&bucket.name)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_retry(no_retries())
        .with_client_options(client().with_allow_http(is_plain(endpoint)))
        .with_http_connector(connector);
    let has_role = amazon_name(endpoint).is_some() || ROLES.iter().any(|role| variables.has(role));
    let keys = s3_keys(variables, has_role).ok_or_else(|| no_credentials(location, S3_VARIABLES))?;
    if let Keys::Profile(profile) = keys {
        builder = builder.with_access_key_id(profile.key_id).with_secret_access_key(profile.secret);
        if let Some(token) = profile.token {
            builder = builder.with_token(token);
        }
    }
    builder.build().map_err(|error| wrong_settings(location, &error))
}

/// The settings that the variables give, with the endpoint and the region of the address. A region that the address
/// names goes before that of the variables.
fn s3_settings(endpoint: &str, variables: &Variables) -> AmazonS3Builder {
    let settings = variables.settings("AWS_", |name| name.parse::<AmazonS3ConfigKey>().ok());
    let mut builder =
        settings.into_iter().fold(AmazonS3Builder::new(), |builder, (key, value)| builder.with_config(key, value));
    let amazon = amazon_name(endpoint);
    if !amazon.is_some_and(is_usual) {
        builder = builder.with_endpoint(endpoint).with_virtual_hosted_style_request(false);
    }
    match amazon.and_then(amazon_region) {
        Some(region) => builder.with_region(region),
        None if variables.has("AWS_REGION") || variables.has("AWS_DEFAULT_REGION") => builder,
        None => builder.with_region(REGION_DEFAULT),
    }
}

/// The source of the keys for S3.
enum Keys {
    Variables,
    Profile(Profile),
    Role,
}

/// Finds what gives keys; `None` if nothing does.
fn s3_keys(variables: &Variables, has_role: bool) -> Option<Keys> {
    match (variables.has("AWS_ACCESS_KEY_ID"), variables.has("AWS_SECRET_ACCESS_KEY")) {
        (true, true) => Some(Keys::Variables),
        (false, false) => match Profile::chosen(variables) {
            Some(profile) => Some(Keys::Profile(profile)),
            None => (has_role && !variables.has("AWS_PROFILE")).then_some(Keys::Role),
        },
        _ => None,
    }
}

fn no_credentials(location: &str, variables: &'static str) -> PlaceError {
    PlaceError::NoCredentials { location: location.to_owned(), variables }
}

/// The name of Amazon's endpoint without its domain: `s3`, or with a region; `None` for other endpoints.
fn amazon_name(endpoint: &str) -> Option<&str> {
    let name = endpoint.strip_prefix("https://")?.strip_suffix(".amazonaws.com")?;
    matches!(name.as_bytes(), b"s3" | [b's', b'3', b'.' | b'-', ..]).then_some(name)
}

/// The region that an endpoint of Amazon names, as in `s3.eu-west-1`, `s3-eu-west-1`, `s3.dualstack.eu-west-1` and
/// `s3-fips.eu-west-1`.
fn amazon_region(name: &str) -> Option<&str> {
    let last = name.rsplit_once('.').map_or(name, |(_, last)| last);
    let region = last.strip_prefix("s3-").unwrap_or(last);
    let region = region.strip_prefix("fips-").unwrap_or(region);
    is_region(region).then_some(region)
}

/// Tells whether a word has the form of a region: `eu-west-1`, `us-gov-east-1`.
fn is_region(word: &str) -> bool {
    let Some((names, number)) = word.rsplit_once('-') else { return false };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number && names.contains('-') && names.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

/// Tells whether an endpoint of Amazon is that of all regions or the usual one of a region. Others, as those with
/// `dualstack` or `fips`, are used as they are written. Acceleration takes no address with a bucket in its path: there
/// the usual one is used.
fn is_usual(name: &str) -> bool {
    name == "s3"
        || name.starts_with("s3-accelerate")
        || amazon_region(name).is_some_and(|region| name.get("s3.".len()..) == Some(region))
}

fn google(
    bucket: &Bucket,
    location: &str,
    variables: &Variables,
    connector: Connector,
) -> Result<GoogleCloudStorage, PlaceError> {
    let settings = variables.settings("GOOGLE_", |name| name.parse::<GoogleConfigKey>().ok());
    let mut builder = settings
        .into_iter()
        .fold(GoogleCloudStorageBuilder::new(), |builder, (key, value)| builder.with_config(key, value));
    let emulator = variables.get(GOOGLE_EMULATOR).map(with_scheme);
    if emulator.is_some() {
        builder = builder.with_bearer_token(EMULATOR_TOKEN);
    }
    let endpoint = emulator.or_else(|| builder.get_config_value(&GoogleConfigKey::BaseUrl));
    if let Some(endpoint) = &endpoint {
        builder = builder.with_base_url(endpoint.trim_end_matches('/'));
    }
    let builder = builder
        .with_bucket_name(&bucket.name)
        .with_retry(no_retries())
        .with_client_options(client().with_allow_http(endpoint.is_some_and(|endpoint| is_plain(&endpoint))))
        .with_http_connector(connector);
    builder.build().map_err(|error| wrong_settings(location, &error))
}

fn azure(
    bucket: &Bucket,
    location: &str,
    variables: &Variables,
    connector: Connector,
) -> Result<MicrosoftAzure, PlaceError> {
    let settings = variables.settings("AZURE_", |name| name.parse::<AzureConfigKey>().ok());
    let mut builder = settings
        .into_iter()
        .fold(MicrosoftAzureBuilder::new(), |builder, (key, value)| builder.with_config(key, value));
    // The words of restic, where they differ from those of the cloud's own tools.
    let words = [
        ("AZURE_ACCOUNT_NAME", AzureConfigKey::AccountName),
        ("AZURE_ACCOUNT_KEY", AzureConfigKey::AccessKey),
        ("AZURE_ACCOUNT_SAS", AzureConfigKey::SasKey),
    ];
    for (name, key) in words {
        if let Some(value) = variables.get(name) {
            builder = builder.with_config(key, value);
        }
    }
    if builder.get_config_value(&AzureConfigKey::AccountName).is_none() && !variables.has(AZURE_EMULATOR) {
        return Err(no_credentials(location, AZURE_VARIABLES));
    }
    let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint);
    let builder = builder
        .with_container_name(&bucket.name)
        .with_retry(no_retries())
        .with_client_options(client().with_allow_http(endpoint.is_some_and(|endpoint| is_plain(&endpoint))))
        .with_http_connector(connector);
    builder.build().map_err(|error| wrong_settings(location, &error))
}

/// Tells whether an endpoint is reached without encryption.
fn is_plain(endpoint: &str) -> bool {
    endpoint.starts_with("http://")
}

/// The address of an emulator, which is reached without encryption if it does not say otherwise.
fn with_scheme(host: &str) -> String {
    if host.contains("://") { host.to_owned() } else { format!("http://{host}") }
}

/// No retries: those of [`ObjectStorage`] know which writes may be repeated.
fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// Options of a client that bears any length of transfer: silence is what ends one.
pub(crate) fn client() -> ClientOptions {
    ClientOptions::new().with_timeout_disabled().with_http1_only()
}

fn wrong_settings(location: &str, error: &object_store::Error) -> PlaceError {
    PlaceError::Settings { location: location.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::place::Place;
    use siltstone_store::storage::Storage;

    fn connected(address: &str, variables: &[(&str, &str)]) -> Result<ObjectStorage, ConnectError> {
        let Ok(Place::Bucket(bucket)) = Place::parse(address.as_ref()) else { panic!("{address} is a bucket") };
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        connect(&bucket, &variables, &Traffic::default())
    }

    #[test]
    fn missing_credentials_are_named_before_anything_is_asked() {
        let no_file = ("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/credentials");
        let (key, secret) = (("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "hidden"));
        for variables in
            [&[no_file][..], &[no_file, key], &[no_file, secret], &[no_file, key, ("AWS_SECRET_ACCESS_KEY", "")]]
        {
            let error = connected("s3:http://127.0.0.1:9/bucket", variables).unwrap_err().to_string();
            assert!(error.contains("s3:http://127.0.0.1:9/bucket") && error.contains("AWS_ACCESS_KEY_ID"), "{error}");
            assert!(!error.contains("hidden"), "{error}");
        }
        connected("s3:http://127.0.0.1:9/bucket", &[key, secret]).unwrap();
        let error = connected("az:box:/x", &[]).unwrap_err().to_string();
        assert!(error.contains("AZURE_ACCOUNT_NAME"), "{error}");
        connected("az:box:/x", &[("AZURE_ACCOUNT_NAME", "me"), ("AZURE_ACCOUNT_KEY", "aGlkZGVu")]).unwrap();
    }

    #[test]
    fn emulators_need_no_credentials() {
        connected("az:box:/x", &[("AZURE_STORAGE_USE_EMULATOR", "true")]).unwrap();
        for host in ["127.0.0.1:9", "http://127.0.0.1:9/", "https://127.0.0.1:9"] {
            connected("gs:box:/x", &[("STORAGE_EMULATOR_HOST", host)]).unwrap();
        }
    }

    #[test]
    fn a_profile_gives_keys_where_no_variable_does() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "[work]\naws_access_key_id=A\naws_secret_access_key=S\n").unwrap();
        let file = ("AWS_SHARED_CREDENTIALS_FILE", file.path().to_str().unwrap());
        connected("s3:https://host/bucket", &[file, ("AWS_PROFILE", "work")]).unwrap();
        connected("s3:https://host/bucket", &[file, ("AWS_PROFILE", "other")]).unwrap_err();
    }

    #[test]
    fn a_client_of_a_bucket_says_that_it_may_only_add() {
        let [key, secret] = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "hidden")];
        let deletes = |variables: &[_]| connected("s3:https://host/bucket", variables).unwrap().capabilities().deletes;
        assert!(deletes(&[key, secret]));
        assert!(!deletes(&[key, secret, ("SILT_APPEND_ONLY", "1")]));
    }

    #[test]
    fn variables_do_not_show_their_values() {
        let variables: Variables = [("AWS_SECRET_ACCESS_KEY".to_owned(), "hidden".to_owned())].into_iter().collect();
        assert_eq!(format!("{variables:?}"), r#"["AWS_SECRET_ACCESS_KEY"]"#);
    }

    #[test]
    fn endpoints_of_amazon_name_their_region() {
        let region = |endpoint| amazon_name(endpoint).map(amazon_region);
        assert_eq!(region("https://s3.amazonaws.com"), Some(None));
        assert_eq!(region("https://s3.eu-central-1.amazonaws.com"), Some(Some("eu-central-1")));
        assert_eq!(region("https://s3-eu-west-1.amazonaws.com"), Some(Some("eu-west-1")));
        assert_eq!(region("https://s3-fips-us-gov-west-1.amazonaws.com"), Some(Some("us-gov-west-1")));
        for none in ["https://s3-accelerate.amazonaws.com", "https://s3-external-1.amazonaws.com"] {
            assert_eq!(region(none), Some(None), "{none}");
        }
        for other in ["https://minio:9000", "https://s3.amazonaws.com.example.org", "https://s3x.amazonaws.com"] {
            assert_eq!(region(other), None, "{other}");
        }
    }

    #[test]
    fn a_region_in_an_address_goes_before_that_of_the_variables() {
        let settings = |endpoint: &str, variables: &[(&str, &str)]| {
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let builder = s3_settings(endpoint, &variables);
            let value = |key| builder.get_config_value(&key);
            (value(AmazonS3ConfigKey::Region).unwrap(), value(AmazonS3ConfigKey::Endpoint))
        };
        let cases = [
            ("https://s3.amazonaws.com", "eu-north-1", false),
            ("https://s3.eu-central-1.amazonaws.com", "eu-central-1", false),
            ("https://s3-eu-west-1.amazonaws.com", "eu-west-1", false),
            ("https://s3.dualstack.eu-west-1.amazonaws.com", "eu-west-1", true),
            ("https://s3-fips.us-east-2.amazonaws.com", "us-east-2", true),
            ("https://s3-fips.dualstack.us-gov-west-1.amazonaws.com", "us-gov-west-1", true),
            ("https://s3-accelerate.amazonaws.com", "eu-north-1", false),
            ("https://minio:9000", "eu-north-1", true),
        ];
        for (endpoint, region, is_as_written) in cases {
            let written = is_as_written.then(|| endpoint.to_owned());
            for variable in ["AWS_REGION", "AWS_DEFAULT_REGION"] {
                let found = settings(endpoint, &[(variable, "eu-north-1")]);
                assert_eq!(found, (region.to_owned(), written.clone()), "{endpoint}");
            }
        }
        assert_eq!(settings("https://minio:9000", &[]).0, REGION_DEFAULT);
        assert_eq!(settings("https://s3.amazonaws.com", &[]).0, REGION_DEFAULT);
    }
}
