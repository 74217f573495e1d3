//! The snapshots over `WebDAV` (RFC 4918, class 1), for reading, where there is no FUSE.
//!
//! ```text
//! server    listener, connections and their bounds         answer    a request, and what is answered
//! tree      what a path leads to, and what is in it        listing   folders as XML and as a page
//! ```
//! Reading blocks, so each answer is made on a thread of its own, and handed on in pieces.

mod answer;
mod body;
mod listing;
mod range;
mod server;
mod tree;

pub use answer::Credentials;
pub use server::{WebdavOptions, WebdavServer};
