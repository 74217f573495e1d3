//! Errors of making a server and of its files.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A server cannot be started, or its tokens cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: another program may; choose another address")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The address is open to others, and nothing would be encrypted.
    #[error("{address} can be reached by others, and plain HTTP shows tokens to them: give a certificate and its key")]
    PlainHttp {
        /// The address.
        address: SocketAddr,
    },
    /// The system gives no threads.
    #[error("cannot start the server's threads")]
    Threads(#[source] io::Error),
    /// A certificate or its key cannot be used.
    #[error("cannot use {path} for TLS: {reason}; it must hold PEM")]
    Tls {
        /// The file.
        path: PathBuf,
        /// The fault of it.
        reason: String,
    },
    /// The file of tokens cannot be read or written.
    #[error("cannot use the tokens in {path}")]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file of tokens may be read or changed by others.
    #[error("others may read {path}: take the rights away from them (chmod 600)")]
    TokenFileOpen {
        /// The file.
        path: PathBuf,
    },
    /// The file of tokens holds something else.
    #[error("{path} holds no tokens: {reason}")]
    TokenFileInvalid {
        /// The file.
        path: PathBuf,
        /// The fault of it.
        reason: String,
    },
    /// A token of this name is there.
    #[error("there is a token '{name}' already: remove it first, or choose another name")]
    TokenExists {
        /// The name.
        name: String,
    },
    /// No token of this name is there.
    #[error("there is no token '{name}'; 'token list' lists them")]
    NoSuchToken {
        /// The name.
        name: String,
    },
    /// The system has no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
}
