//! TLS of a server: version 1.3, with a certificate and its key from files.

use crate::ServeError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{self, ServerConfig};

/// Files of a certificate and its key, both PEM. They are read once: a renewed certificate takes a new start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The certificate, followed by those that lead to its root.
    pub certificate: PathBuf,
    /// The certificate's private key.
    pub key: PathBuf,
}

impl TlsFiles {
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, ServeError> {
        let of_certificate = |reason: String| unusable(&self.certificate, reason);
        let certificates = CertificateDer::pem_file_iter(&self.certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| of_certificate(error.to_string()))?;
        if certificates.is_empty() {
            return Err(of_certificate("it holds no certificate".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| unusable(&self.key, error.to_string()))?;
        let unfit = |error: rustls::Error| of_certificate(error.to_string());
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .map_err(unfit)?
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .map_err(unfit)?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn unusable(path: &Path, reason: String) -> ServeError {
    ServeError::Tls { path: path.to_owned(), reason }
}
