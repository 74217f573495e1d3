#![doc = include_str!("../README.md")]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

mod connect;
mod fault;
mod object;
mod place;
mod profile;
pub mod protocol;
mod retries;
mod served;
mod server;
mod service;
mod sftp;
mod traffic;
mod webhook;
mod window;

pub use connect::{ConnectError, Variables, connect, connect_served};
pub use object::ObjectStorage;
pub use place::{Bucket, Place, PlaceError, Service};
pub use retries::Retries;
pub use served::ServerAddress;
pub use server::{Programs, Server, connect_server, create_server};
pub use traffic::{Limits, Traffic};
pub use webhook::{Webhook, WebhookError};
