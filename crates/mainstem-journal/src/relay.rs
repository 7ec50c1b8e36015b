//! Requests to the process that has a session open.

use std::fmt;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use mainstem_message::SessionId;

use crate::JournalError;

/// Carries requests between the processes that share a journal, through its database: a process
/// that is asked about a session which another has open passes the request on. What a request is,
/// its sender and its receiver define.
///
/// A request is taken once at most: if the process that took it ends before it has answered, the
/// sender gets an error, and the request may have had its effect.
#[async_trait]
pub trait Relay: fmt::Debug + Send + Sync {
    /// Sends a request to the process that has a session open, and waits for the first part of the
    /// answer. Returns `None` if no process has the session open, or if the one that had it has
    /// ended without taking the request: then it can be opened here.
    ///
    /// Dropping the future, or the answer, withdraws the request: its receiver is told.
    ///
    /// # Errors
    /// If the database can't be used, or the receiver has ended after it took the request.
    async fn ask(&self, session: &SessionId, request: Vec<u8>) -> Result<Option<Parts>, JournalError>;

    /// Returns the requests to this process, as they come. Each is handed to one caller.
    fn asked(&self) -> BoxStream<'static, Asked>;
}

/// An answer, in parts. After an error there are no more.
pub type Parts = BoxStream<'static, Result<Vec<u8>, JournalError>>;

/// A request to this process.
#[expect(clippy::exhaustive_structs, reason = "a request has its content and a way to answer")]
pub struct Asked {
    /// What is asked.
    pub request: Vec<u8>,
    /// Where the answer goes.
    pub answer: Box<dyn Answer>,
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").field("bytes", &self.request.len()).finish_non_exhaustive()
    }
}

/// Takes the answer to a request. Dropped before [`end`](Self::end), the sender gets an error.
#[async_trait]
pub trait Answer: Send + Sync {
    /// Sends a part. Waits while the sender of the request has many parts to read.
    ///
    /// # Errors
    /// The request was withdrawn, or the database can't be used.
    async fn send(&self, part: Vec<u8>) -> Result<(), JournalError>;

    /// Ends the answer.
    ///
    /// # Errors
    /// Those of [`send`](Self::send).
    async fn end(&self) -> Result<(), JournalError>;

    /// Waits until the request is withdrawn.
    async fn withdrawn(&self);
}
