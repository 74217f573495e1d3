//! Addresses of servers: `silt:https://host:port/path/`.

use crate::place::PlaceError;
use std::fmt;
use url::{Host, Url};

const FORM: &str = "silt:https://host:port/";

/// The address of a server of this program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerAddress {
    url: Url,
}

impl ServerAddress {
    /// Reads what stands after `silt:`.
    ///
    /// # Errors
    /// [`PlaceError`], by what is wrong. A token has no place in an address.
    pub(crate) fn parse(rest: &str) -> Result<Self, PlaceError> {
        let malformed = |reason| PlaceError::Malformed { address: format!("silt:{rest}"), reason, form: FORM };
        let mut url = match Url::parse(rest) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => url,
            Ok(_) => return Err(malformed("its scheme is neither http nor https")),
            Err(_) => return Err(malformed("it names no server")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(PlaceError::HoldsSecret);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(malformed("it has more than a path"));
        }
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        Ok(Self { url })
    }

    /// The address for requests, without a slash at its end.
    pub(crate) fn base(&self) -> String {
        self.url.as_str().trim_end_matches('/').to_owned()
    }

    pub(crate) fn is_plain_http(&self) -> bool {
        self.url.scheme() == "http"
    }

    /// Tells whether the server is on this machine.
    pub(crate) fn stays_here(&self) -> bool {
        match self.url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        }
    }

    /// Tells whether others on the network can see what is sent.
    pub(crate) fn shows_secrets(&self) -> bool {
        self.is_plain_http() && !self.stays_here()
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "silt:{}", self.url)
    }
}
