//! Files on the server while they are worked on: open ones, temporary ones, and those that have just got their name.
//! Each is closed or removed when its value is dropped, also where the work on it was broken off.

use super::Folder;
use super::packet::{Answer, Attributes, Code, Request};
use super::session::{Session, refusal};
use crate::fault::Fault;
use bytes::{Bytes, BytesMut};
use siltstone_store::storage::{ObjectName, TEMPORARIES};
use std::ops::Range;
use std::sync::Arc;
use tokio::runtime::Handle as RuntimeHandle;

/// A file or folder that is open on the server; it is closed when this is dropped.
#[derive(Debug)]
pub(super) struct OpenFile {
    session: Arc<Session>,
    pub(super) handle: Bytes,
    is_open: bool,
}

impl OpenFile {
    pub(super) async fn open(session: &Arc<Session>, request: Request) -> Result<Self, Fault> {
        match session.ask(request).await? {
            Answer::Handle(handle) => Ok(Self { session: Arc::clone(session), handle, is_open: true }),
            other => Err(refusal(other)),
        }
    }

    /// Closes it, and says whether the server says that all is written.
    pub(super) async fn close(mut self) -> Result<(), Fault> {
        self.is_open = false;
        self.session.order(Request::close(&self.handle)).await
    }

    /// Reads at most this many bytes; `None` at the end of the file.
    pub(super) async fn read(&self, offset: u64, bytes: u64) -> Result<Option<Bytes>, Fault> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        match self.session.ask(Request::read(&self.handle, offset, bytes)).await? {
            Answer::Data(data) if data.len() > bytes as usize => {
                Err(Fault::Lost("the server sent more bytes than it was asked for".to_owned()))
            }
            Answer::Data(data) if !data.is_empty() => Ok(Some(data)),
            Answer::Data(_) | Answer::Status { code: Code::End, .. } => Ok(None),
            other => Err(of_reading(refusal(other))),
        }
    }

    /// Reads all of a block; a server may answer with less than it was asked for.
    pub(super) async fn read_whole(self: Arc<Self>, part: Range<u64>) -> Result<Bytes, Fault> {
        let mut whole = BytesMut::new();
        loop {
            let offset = part.start + whole.len() as u64;
            match self.read(offset, part.end - offset).await? {
                None => return Err(Fault::Lost("the file became shorter while it was read".to_owned())),
                Some(data) if data.len() as u64 == part.end - part.start => return Ok(data),
                Some(data) => whole.extend_from_slice(&data),
            }
            if whole.len() as u64 == part.end - part.start {
                return Ok(whole.freeze());
            }
        }
    }
}

/// A server that fails to read a file that it has opened does so for what the file lies on.
fn of_reading(fault: Fault) -> Fault {
    if let Fault::Wrong(said) = fault { Fault::Unreadable(said) } else { fault }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        if self.is_open
            && let Ok(runtime) = RuntimeHandle::try_current()
        {
            let (session, handle) = (Arc::clone(&self.session), self.handle.clone());
            runtime.spawn(async move { session.order(Request::close(&handle)).await });
        }
    }
}

/// A file that has its name. It is open where the name is still to be made durable.
pub(super) struct Published(pub(super) Option<OpenFile>);

impl Published {
    /// Makes the name durable: a sync of a file includes its new names on ext4, XFS and btrfs.
    pub(super) async fn finish(self) -> Result<(), Fault> {
        let Some(file) = self.0 else { return Ok(()) };
        // The file is there already: a question that was not sent says nothing of that.
        file.session.order(Request::fsync(&file.handle)).await.map_err(lost_of)?;
        file.close().await.map_err(lost_of)
    }
}

/// The name of a temporary file of this process. The file goes when this is dropped.
pub(super) struct Temporary<'f> {
    folder: &'f Folder,
    session: Arc<Session>,
    /// Path below the repository.
    below: String,
    /// Path on the server.
    pub(super) path: String,
    is_removed: bool,
}

impl<'f> Temporary<'f> {
    pub(super) fn reserve(folder: &'f Folder, session: &Arc<Session>, object: &str) -> Result<Self, Fault> {
        let random = getrandom::u64().map_err(|error| Fault::Wrong(error.to_string()))?;
        let below = format!("{TEMPORARIES}/{}", ObjectName::temporary(object, random));
        folder.own_temporaries().insert(below.clone());
        let path = folder.path(&below);
        Ok(Self { folder, session: Arc::clone(session), below, path, is_removed: false })
    }

    /// Removes it. Where that fails it stays as an unfinished file, which does no harm; after a rename it is gone.
    pub(super) async fn remove(mut self) {
        let _ = self.session.order(Request::remove(&self.path)).await;
        self.is_removed = true;
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        self.folder.own_temporaries().remove(&self.below);
        if !self.is_removed
            && let Ok(runtime) = RuntimeHandle::try_current()
        {
            let (session, path) = (Arc::clone(&self.session), self.path.clone());
            runtime.spawn(async move { session.order(Request::remove(&path)).await });
        }
    }
}

/// Asks for attributes.
pub(super) async fn stat(session: &Session, request: Request) -> Result<Attributes, Fault> {
    match session.ask(request).await? {
        Answer::Attributes(attributes) => Ok(attributes),
        other => Err(refusal(other)),
    }
}

/// The fault of a write whose last question was not answered: a question that was not sent says nothing of the write.
pub(super) fn lost_of(fault: Fault) -> Fault {
    match fault {
        Fault::Unsent(reason) => Fault::Lost(reason),
        fault => fault,
    }
}
