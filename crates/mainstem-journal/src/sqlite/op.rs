//! Requests to the writer.

use std::sync::Arc;

use mainstem_event::{AgentEvent, Position};
use mainstem_message::SessionId;
use tokio::sync::oneshot;

use super::{data::StoreData, queue::Queue, record::Entry};
use crate::{Checkpoint, Claim, Claimed, JournalError, backend::Request};

/// An opened session, for its caller.
pub(super) struct Opened {
    entry: Arc<Entry>,
    position: Position,
    /// Where the session is released if the caller does not take it.
    queue: Option<Arc<Queue>>,
}

impl Opened {
    pub(super) fn new(entry: Arc<Entry>, position: Position) -> Self {
        Self { entry, position, queue: None }
    }

    /// Takes the parts of a record; dropping the record releases the session.
    pub(super) fn take(mut self) -> (Arc<Entry>, Position) {
        self.queue = None;
        (self.entry.clone(), self.position.clone())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.queue.iter().for_each(|queue| queue.push(Op::Release(self.entry.clone())));
    }
}

/// A request to the writer.
pub(super) enum Op {
    Append(Arc<Entry>, AgentEvent),
    Open(SessionId, Answer<Opened>),
    IsOpen(SessionId, Answer<bool>),
    /// The record of a session was dropped.
    Release(Arc<Entry>),
    Claim(Box<Claim>, Answer<Claimed>),
    Checkpoint(SessionId, Checkpoint, Answer<()>),
    StoreData(Box<StoreData>, Answer<bool>),
    Delete(SessionId, Answer<bool>),
    /// Drops a part of the events up to a number; the answer is the first that is left.
    Prune(SessionId, u64, Answer<u64>),
    Flush(Answer<()>),
    Close(Answer<()>),
}

impl Request for Op {
    fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Append(entry, _) | Self::Release(entry) => Some(&entry.session),
            Self::Claim(claim, _) => Some(&claim.session),
            Self::StoreData(data, _) => Some(&data.session),
            Self::Open(session, _)
            | Self::IsOpen(session, _)
            | Self::Checkpoint(session, ..)
            | Self::Delete(session, _)
            | Self::Prune(session, ..) => Some(session),
            Self::Flush(_) | Self::Close(_) => None,
        }
    }

    fn is_urgent(&self) -> bool {
        match self {
            Self::Append(_, event) => event.kind.is_durable(),
            _ => true,
        }
    }

    /// The opening of a session needs no sync: after a loss of power, every process that could hold
    /// its epoch has ended.
    fn is_durable(&self) -> bool {
        match self {
            Self::Append(_, event) => event.kind.is_durable(),
            Self::Claim(..) | Self::StoreData(..) | Self::Delete(..) | Self::Flush(_) | Self::Close(_) => {
                true
            }
            _ => false,
        }
    }
}

impl Op {
    /// Returns `true` if it only reads, so that it needs no transaction.
    pub(super) fn is_read(&self) -> bool {
        matches!(self, Self::IsOpen(..))
    }

    /// Returns `true` if it only waits for earlier requests.
    pub(super) fn is_end(&self) -> bool {
        matches!(self, Self::Flush(..) | Self::Close(..))
    }

    /// Returns `true` if it found its session open in this process for the first time. It is
    /// applied again then: the release may be in the queue.
    pub(super) fn ask_again(&mut self) -> bool {
        match self {
            Self::Open(_, answer) => answer.ask_again(),
            Self::IsOpen(_, answer) | Self::Delete(_, answer) => answer.ask_again(),
            _ => false,
        }
    }

    /// Sends the error to the caller, or ends the record with it.
    pub(super) fn fail(self, error: &JournalError) {
        match self {
            Self::Append(entry, _) => {
                let why = format!("session {} is no longer recorded: {error}", entry.session);
                entry.progress.fail(why);
            }
            Self::Open(_, answer) => answer.fail(error.clone()),
            Self::IsOpen(_, answer) | Self::Delete(_, answer) => answer.fail(error.clone()),
            Self::Claim(_, answer) => answer.fail(error.clone()),
            Self::StoreData(_, answer) => answer.fail(error.clone()),
            Self::Prune(_, _, answer) => answer.fail(error.clone()),
            Self::Checkpoint(_, _, answer) | Self::Flush(answer) | Self::Close(answer) => {
                answer.fail(error.clone())
            }
            Self::Release(_) => {}
        }
    }
}

impl Answer<Opened> {
    /// Sends an opened session. If the caller has gone away, the session is released.
    pub(super) fn send_opened(mut self, queue: &Arc<Queue>) {
        if let Some(Ok(opened)) = &mut self.found {
            opened.queue = Some(queue.clone());
        }
        self.send();
    }
}

/// Why a session can't be opened.
pub(super) enum Refusal {
    /// This process has it open.
    OpenHere,
    Error(JournalError),
}

/// The result for a waiting caller: a transaction sets it, and it is sent after the commit.
pub(super) struct Answer<T> {
    caller: oneshot::Sender<Result<T, JournalError>>,
    found: Option<Result<T, JournalError>>,
    /// The request is applied for the second time.
    is_second: bool,
}

impl<T> Answer<T> {
    pub(super) fn new(caller: oneshot::Sender<Result<T, JournalError>>) -> Self {
        Self { caller, found: None, is_second: false }
    }

    /// Sets the result; replaces that of a transaction that was not committed.
    pub(super) fn find(&mut self, found: Result<T, JournalError>) {
        self.found = Some(found);
    }

    /// Sets the result about a session; sets none the first time that the session is open here.
    pub(super) fn find_or_ask_again(
        &mut self,
        found: Result<T, Refusal>,
        if_open: impl FnOnce() -> Result<T, JournalError>,
    ) {
        self.found = match found {
            Ok(found) => Some(Ok(found)),
            Err(Refusal::Error(error)) => Some(Err(error)),
            Err(Refusal::OpenHere) => self.is_second.then(if_open),
        };
    }

    fn ask_again(&mut self) -> bool {
        let is_to_ask = self.found.is_none() && !self.is_second;
        self.is_second |= is_to_ask;
        is_to_ask
    }

    /// Sends the result.
    pub(super) fn send(self) {
        let found = self.found.unwrap_or(Err(JournalError::Closed));
        let _ = self.caller.send(found);
    }

    pub(super) fn fail(self, error: JournalError) {
        let _ = self.caller.send(Err(error));
    }
}
