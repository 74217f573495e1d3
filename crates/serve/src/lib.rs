#![doc = include_str!("../README.md")]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

mod access;
mod answer;
mod call;
mod error;
mod metrics;
mod reply;
mod server;
mod tls;
mod tokens;

pub use error::ServeError;
pub use server::{ServeOptions, Server};
pub use siltstone_remote::protocol::{Granted, Right, SeriesScope};
pub use tls::TlsFiles;
pub use tokens::{TokenEntry, TokenFile, Tokens};
