//! A server over a simulated disk, and clients with tokens of their own.

use siltstone_remote::{ConnectError, ObjectStorage, Place, Traffic, Variables, connect_served};
use siltstone_serve::{Right, SeriesScope, ServeOptions, Server, TlsFiles, TokenFile, Tokens};
use siltstone_store::storage::{SimulatedDisk, Storage};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// The silence that clients are allowed in the test of just that: longer than a busy machine keeps one waiting.
pub(crate) const SILENCE: Duration = Duration::from_secs(3);

/// A server that ends with the value.
pub(crate) struct Served {
    pub(crate) folder: TempDir,
    pub(crate) server: Server,
    tokens: BTreeMap<String, String>,
    certificate: Option<PathBuf>,
}

/// A certificate for `localhost` that signs itself.
pub(crate) fn certificate(folder: &TempDir) -> TlsFiles {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let files = TlsFiles { certificate: folder.path().join("cert.pem"), key: folder.path().join("key.pem") };
    std::fs::write(&files.certificate, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    files
}

impl Served {
    /// Serves a storage with TLS or without, to these tokens.
    pub(crate) fn over(
        storage: Arc<dyn Storage>,
        tls: bool,
        tokens: &[(&str, SeriesScope, &[Right])],
        change: impl FnOnce(ServeOptions) -> ServeOptions,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut file = TokenFile::default();
        let add = |(name, series, rights): &(&str, SeriesScope, &[Right])| {
            ((*name).to_owned(), file.add(name, series.clone(), rights.iter().copied().collect()).unwrap())
        };
        let tokens = tokens.iter().map(add).collect();
        file.write(&folder.path().join("tokens")).unwrap();
        let tls = tls.then(|| certificate(&folder));
        let options = ServeOptions::new(([127, 0, 0, 1], 0).into()).with_tls(tls.clone());
        let known = Tokens::open(folder.path().join("tokens")).unwrap();
        let server = Server::start(storage, known, &change(options)).unwrap();
        Self { folder, server, tokens, certificate: tls.map(|files| files.certificate) }
    }

    /// Serves an empty simulated disk without TLS.
    pub(crate) fn new(tokens: &[(&str, SeriesScope, &[Right])]) -> Self {
        Self::over(Arc::new(SimulatedDisk::new()), false, tokens, |options| options)
    }

    /// A token by its name.
    pub(crate) fn token(&self, name: &str) -> &str {
        &self.tokens[name]
    }

    /// A client with this token.
    pub(crate) fn client(&self, name: &str) -> ObjectStorage {
        self.try_client(self.token(name)).unwrap()
    }

    /// A client with any text for a token.
    pub(crate) fn try_client(&self, token: &str) -> Result<ObjectStorage, ConnectError> {
        self.connect(token, self.certificate.as_deref())
    }

    /// A client that does not trust the server's certificate.
    pub(crate) fn try_untrusting(&self, token: &str) -> Result<ObjectStorage, ConnectError> {
        self.connect(token, None)
    }

    fn connect(&self, token: &str, trusted: Option<&Path>) -> Result<ObjectStorage, ConnectError> {
        let port = self.server.address().port();
        let address = match &self.certificate {
            Some(_) => format!("silt:https://localhost:{port}/"),
            None => format!("silt:http://127.0.0.1:{port}/"),
        };
        let Place::Served(address) = Place::parse(address.as_ref()).unwrap() else { panic!("{address} is a server") };
        let variables: Variables = [("SILT_TOKEN".to_owned(), token.to_owned())].into_iter().collect();
        connect_served(&address, &variables.with_certificates(trusted), &Traffic::default())
    }

    /// Takes a token away.
    pub(crate) fn remove_token(&self, name: &str) {
        let path = self.folder.path().join("tokens");
        let mut file = TokenFile::read(&path).unwrap();
        file.remove(name).unwrap();
        file.write(&path).unwrap();
    }
}
