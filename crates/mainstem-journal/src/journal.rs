//! What every journal does.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use mainstem_event::{AgentEvent, Record, Timestamp};
use mainstem_message::{RunId, SessionId};

use crate::{Claim, Claimed, JournalError, Retention};

/// Keeps the events of sessions.
///
/// One writes a session at a time, by the [`Record`] that [`open`](Self::open) gives; any number
/// read. Dropping a future gives up the answer, not what was asked. `mainstem_testing::journal` is
/// the contract as a test suite.
#[async_trait]
pub trait Journal: fmt::Debug + Send + Sync + 'static {
    /// Opens a session for writing; one that is not there begins with its first event. It stays
    /// open as long as the record is there, which a session log holds, and the log's cursors with
    /// it.
    ///
    /// # Errors
    /// [`JournalError::Busy`] while it is open elsewhere; that the store can't be written.
    async fn open(&self, session: &SessionId) -> Result<Arc<dyn Record>, JournalError>;

    /// Returns `true` if a session is open for writing, in this process or another. A concurrent
    /// attempt to open it may fail as if it were open.
    ///
    /// # Errors
    /// That it can't be found out.
    async fn is_open(&self, session: &SessionId) -> Result<bool, JournalError>;

    /// Returns all sessions that have had an event, the latest first, including damaged ones;
    /// [`damage`](SessionSummary::damage) is their error.
    ///
    /// # Errors
    /// That they can't be read.
    async fn sessions(&self) -> Result<Vec<SessionSummary>, JournalError>;

    /// One of them; `None` if there is none.
    ///
    /// # Errors
    /// That it can't be read.
    async fn session(&self, id: &SessionId) -> Result<Option<SessionSummary>, JournalError>;

    /// Committed events from `from` on, at most `max` and no more than fit a page: no events means
    /// that there are none. The first has a greater number than `from` where retention has dropped
    /// some.
    ///
    /// # Errors
    /// [`JournalError::Unknown`]; [`JournalError::Damaged`] for the first event, where one that
    /// comes later only ends the page; that the store can't be read.
    async fn read(&self, session: &SessionId, from: u64, max: usize)
    -> Result<Vec<AgentEvent>, JournalError>;

    /// Where a run is; `None` if none of its events was ever committed, or its session was deleted.
    ///
    /// # Errors
    /// That it can't be read.
    async fn run(&self, id: &RunId) -> Result<Option<RunPlace>, JournalError>;

    /// Remembers that a run is to begin, for [`CLAIM_LASTS`](crate::CLAIM_LASTS), unless its key
    /// was claimed before. It is committed when this returns.
    ///
    /// # Errors
    /// That the store can't be written; nothing is claimed then.
    async fn claim(&self, claim: Claim) -> Result<Claimed, JournalError>;

    /// Returns the last checkpoint that [`keep_checkpoint`](Self::keep_checkpoint) has stored;
    /// `None` if there is none, or retention has dropped its events.
    ///
    /// # Errors
    /// That it can't be read.
    async fn checkpoint(&self, session: &SessionId) -> Result<Option<Checkpoint>, JournalError>;

    /// Stores the state after a session's events up to a number, so that they need not be read
    /// again; it replaces the last checkpoint. Stores nothing if the session does not exist or if
    /// any of these events is not committed.
    ///
    /// # Errors
    /// That the store can't be written.
    async fn keep_checkpoint(&self, session: &SessionId, checkpoint: Checkpoint) -> Result<(), JournalError>;

    /// Forgets a session, and what was claimed in it. Returns whether it was there.
    ///
    /// # Errors
    /// [`JournalError::Busy`] while it is open; that the store can't be written.
    async fn delete(&self, session: &SessionId) -> Result<bool, JournalError>;

    /// Drops old events of all sessions, also of those that are open. Returns how many. Of a
    /// session that is damaged, nothing after the damage is dropped.
    ///
    /// # Errors
    /// That the store can't be read or written; what was dropped before stays so.
    async fn retain(&self, retention: &Retention, now: Timestamp) -> Result<u64, JournalError>;

    /// Resolves when all that was appended before is committed, as durably as the store can.
    ///
    /// # Errors
    /// That the store can't be written. Of a record that has failed, [`Record::failure`] says so.
    async fn flush(&self) -> Result<(), JournalError>;

    /// The same, and the last thing that it does: records that are still open fail at their next
    /// event.
    ///
    /// # Errors
    /// Those of [`flush`](Self::flush).
    async fn close(&self) -> Result<(), JournalError>;
}

/// Where a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a place has two coordinates")]
pub struct RunPlace {
    /// The session.
    pub session: SessionId,
    /// The number of its first event, whether or not that is still stored.
    pub first: u64,
}

/// The state after a session's events up to a number, in a form that its writer defines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a journal knows no more of it")]
pub struct Checkpoint {
    /// The number of the last event that is in it.
    pub seq: u64,
    /// What they come to.
    pub state: String,
}

/// What a journal has of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionSummary {
    /// The session.
    pub id: SessionId,
    /// The number of the first stored event; one more than `last` if none is.
    pub first: u64,
    /// The number of the last event.
    pub last: u64,
    /// How many runs have begun.
    pub runs: u64,
    /// The run that has begun and not ended: one that is active, or was cut.
    pub unfinished: Option<RunId>,
    /// Time of the first event, which retention may have deleted since.
    pub created_at: Timestamp,
    /// When the last event was recorded.
    pub updated_at: Timestamp,
    /// The error if the session's record is damaged: fields of this summary that can't be read are
    /// empty. Such a session can be deleted; opening it may fail.
    pub damage: Option<String>,
}

impl SessionSummary {
    /// Returns the number of stored events; 0 if a damaged row has a first number after the last.
    pub fn events(&self) -> u64 {
        self.last.saturating_add(1).saturating_sub(self.first)
    }
}
