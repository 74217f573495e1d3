//! Azurite, which emulates Azure Blob Storage.

use super::{BUCKET, Running, asked};
use crate::install;
use crate::tool::Place;
use anyhow::{Result, ensure};
use std::net::SocketAddr;
use std::path::Path;

const PROGRAM: &str = "azurite-blob";
/// Rights to everything, and what the account signs for them by HMAC-SHA-256: Azure's page "Create an account SAS" says
/// over which fields.
const ALL: [&str; 2] = ["ss=b&srt=sco&sp=rwdlac", "YKAtmJudHaH98kax9IHOYkiCF9veHhGg4TBHNwluLXo%3D"];
/// Rights to read, create and list in the bucket, signed as "Create a service SAS" says.
const NO_DELETING: [&str; 2] = ["sr=c&sp=rcl", "XD4%2FR9Ycf1VqlK%2FLpeFBiJg0Cqr7feYxMCTw3Jict0o%3D"];

/// A server that ends with the value.
#[derive(Debug)]
pub struct Azurite(Running);

impl Azurite {
    /// The account of each Azurite, which is in its documentation.
    pub const ACCOUNT: &str = "devstoreaccount1";
    /// The key of that account.
    pub const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

    /// Tells whether the program is there.
    pub fn is_installed() -> bool {
        !install::candidates(PROGRAM).is_empty()
    }

    /// Installs the program where it is not there.
    pub fn install() -> Result<()> {
        install::by(install::NPM, &["install", "--global", "azurite"], PROGRAM)
    }

    /// Starts a server with an empty bucket. What it writes beside objects goes to this folder.
    pub fn start(home: &Path) -> Result<Self> {
        let running = Running::start(PROGRAM, home, |command, address| {
            command.args(["--inMemoryPersistence", "--disableTelemetry", "--silent"]);
            command.args(["--blobHost", &address.ip().to_string(), "--blobPort", &address.port().to_string()]);
        })?;
        let server = Self(running);
        let made = server.asked("PUT", BUCKET, "restype=container", &[], "")?;
        ensure!(made.starts_with("HTTP/1.1 201"), "Azurite did not make a container: {made}");
        Ok(server)
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Makes a request of one who may do everything, and returns the whole answer.
    pub fn asked(&self, method: &str, path: &str, query: &str, headers: &[&str], body: &str) -> Result<String> {
        let target = format!("/{}/{path}?{query}&{}", Self::ACCOUNT, signature(ALL));
        let address = self.address();
        asked((address, &address.to_string()), method, &target, headers, body)
    }

    /// Returns the place of a repository below a prefix, reached by this address, its own or one before it.
    pub fn place(address: SocketAddr, prefix: &str) -> Place {
        let endpoint = format!("http://{address}/{}", Self::ACCOUNT);
        let variables = [
            ("AZURE_ACCOUNT_NAME", Self::ACCOUNT.to_owned()),
            ("AZURE_ENDPOINT", endpoint),
            ("AZURE_ACCOUNT_KEY", Self::KEY.to_owned()),
        ];
        Place { address: format!("az:{BUCKET}:/{prefix}"), variables: variables.to_vec() }
    }

    /// Returns a shared access signature, until 2099, of one who may read, create and list in the bucket, and delete
    /// nothing.
    pub fn signature_without_deleting() -> String {
        signature(NO_DELETING)
    }
}

fn signature([rights, signed]: [&str; 2]) -> String {
    format!("sv=2019-12-12&{rights}&se=2099-01-01T00:00:00Z&sig={signed}")
}
