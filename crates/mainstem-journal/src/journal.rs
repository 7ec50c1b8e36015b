//! The trait of journals.

mod shared;

use std::{fmt, ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use mainstem_event::{AgentEvent, Record, Timestamp};
use mainstem_message::{DataId, LinkId, RunId, SessionId};

use crate::{
    Claim, Claimed, Figures, JobStore, JournalError, Link, Listing, Part, Place, QueuedRun, Relay, Retention,
};

/// Stores the events of sessions.
///
/// One writer has a session at a time, through the [`Record`] that [`open`](Self::open) returns;
/// any number of readers may read it. Dropping a future discards the result; the request itself is
/// still served. `mainstem_testing::journal` is the contract as a test suite.
#[async_trait]
pub trait Journal: fmt::Debug + Send + Sync + 'static {
    /// Opens a session for writing; a new one begins with its first event. It stays open until the
    /// record is dropped. A session log and its cursors hold the record.
    ///
    /// # Errors
    /// [`JournalError::Busy`] while it is open elsewhere; or if the store can't be written.
    async fn open(&self, session: &SessionId) -> Result<Arc<dyn Record>, JournalError>;

    /// Returns `true` if a session is open for writing, in this process or another. A concurrent
    /// attempt to open it may fail as if it were open.
    ///
    /// # Errors
    /// If the store can't tell.
    async fn is_open(&self, session: &SessionId) -> Result<bool, JournalError>;

    /// Returns all sessions that have had an event, the latest first, including damaged ones;
    /// [`damage`](SessionSummary::damage) is their error.
    ///
    /// # Errors
    /// If they can't be read.
    async fn sessions(&self) -> Result<Vec<SessionSummary>, JournalError>;

    /// Returns a page of the sessions that have had an event, in the order of their
    /// [places](Place).
    ///
    /// # Errors
    /// If they can't be read.
    async fn list(&self, listing: &Listing) -> Result<Vec<SessionSummary>, JournalError> {
        Ok(listing.page(self.sessions().await?))
    }

    /// Returns the sessions with a run that has begun and not ended, in the order of their
    /// [places](Place), at most `max`; and where each is open.
    ///
    /// # Errors
    /// If they can't be read.
    async fn active(&self, part: &Part, max: usize) -> Result<Vec<ActiveSession>, JournalError> {
        let mut sessions = self.sessions().await?;
        sessions.retain(|session| session.unfinished.is_some());
        let mut active = Vec::new();
        for session in Listing::new(part.clone(), max).page(sessions) {
            let is_open = self.is_open(&session.id).await?;
            active.push(ActiveSession { session, is_open, node: None });
        }
        Ok(active)
    }

    /// Returns a session; `None` if there is none of this id.
    ///
    /// # Errors
    /// If it can't be read.
    async fn session(&self, id: &SessionId) -> Result<Option<SessionSummary>, JournalError>;

    /// Returns how many bytes the events of each session have, as JSON, with its data.
    ///
    /// # Errors
    /// If they can't be read.
    async fn sizes(&self) -> Result<Vec<(SessionId, u64)>, JournalError> {
        let mut sizes = Vec::new();
        for session in self.sessions().await? {
            let (mut bytes, mut next) = (0, session.first);
            // What is damaged has no size that could be read.
            while let Ok(page) = self.read(&session.id, next, usize::MAX).await
                && let Some(last) = page.last()
            {
                next = last.seq + 1;
                bytes += page.iter().map(|event| event.to_json().len() as u64).sum::<u64>();
            }
            sizes.push((session.id, bytes));
        }
        Ok(sizes)
    }

    /// Returns committed events from `from` on, at most `max` and at most a page; none if there are
    /// no more. The first has a greater number than `from` if retention has dropped some.
    ///
    /// # Errors
    /// [`JournalError::Unknown`]; [`JournalError::Damaged`] if the first event is damaged, while
    /// one that comes later only ends the page; or if the store can't be read.
    async fn read(&self, session: &SessionId, from: u64, max: usize)
    -> Result<Vec<AgentEvent>, JournalError>;

    /// Returns the changes of a session by other processes, so that a reader need not ask for
    /// events in short intervals; `None` if the store can't tell them. A change may be missed, so a
    /// reader asks from time to time nevertheless.
    ///
    /// # Errors
    /// If the store can't be read.
    async fn changes(&self, _: &SessionId) -> Result<Option<Changes>, JournalError> {
        Ok(None)
    }

    /// Returns sessions that no process has open, and that are to be opened: those with queued
    /// runs, and, if processes share the journal, those with a run that has begun and not ended, or
    /// with one that was [cut off](SessionSummary::cut).
    ///
    /// # Errors
    /// If they can't be read.
    async fn abandoned(&self) -> Result<Vec<SessionId>, JournalError>;

    /// Forgets that a session, which is open here, has a run that was [cut
    /// off](SessionSummary::cut): its turn is not to be resumed. The next run of the session does
    /// the same.
    ///
    /// # Errors
    /// If the store can't be written.
    async fn forget_cut(&self, _: &SessionId) -> Result<(), JournalError> {
        Ok(())
    }

    /// Returns the name of this process among those that share the journal; `None` if it is alone.
    fn node(&self) -> Option<String> {
        None
    }

    /// Returns what carries requests to the process that has a session open; `None` if the journal
    /// can't carry them.
    fn relay(&self) -> Option<Arc<dyn Relay>> {
        None
    }

    /// Returns the jobs that processes which share the journal run; `None` if it can't store any.
    fn jobs(&self) -> Option<Arc<dyn JobStore>> {
        None
    }

    /// Returns figures of its writer; `None` if it has none.
    fn figures(&self) -> Option<Figures> {
        None
    }

    /// Checks that sessions can be opened, without writing anything: that a lease is not over.
    ///
    /// # Errors
    /// If they can't.
    async fn ready(&self) -> Result<(), JournalError> {
        Ok(())
    }

    /// Returns where a run is; `None` if none of its events was ever committed, or its session was
    /// deleted.
    ///
    /// # Errors
    /// If it can't be read.
    async fn run(&self, id: &RunId) -> Result<Option<RunPlace>, JournalError>;

    /// Claims a key for [`CLAIM_LASTS`](crate::CLAIM_LASTS), unless it was claimed before. The
    /// claim is committed when this returns.
    ///
    /// # Errors
    /// If the store can't be written; nothing is claimed then.
    async fn claim(&self, claim: Claim) -> Result<Claimed, JournalError>;

    /// Stores a run that waits until its session is free, behind those that are stored. It is
    /// committed when this returns. Does nothing if the run is stored.
    ///
    /// # Errors
    /// If the store can't be written.
    async fn queue_run(&self, run: QueuedRun) -> Result<(), JournalError>;

    /// Returns a queued run; `None` if there is none of this id.
    ///
    /// # Errors
    /// If it can't be read.
    async fn queued_run(&self, id: &RunId) -> Result<Option<QueuedRun>, JournalError>;

    /// Returns the queued runs of a session, in the order in which they were stored.
    ///
    /// # Errors
    /// If they can't be read.
    async fn queued_runs(&self, session: &SessionId) -> Result<Vec<QueuedRun>, JournalError>;

    /// Removes a queued run: its first event is recorded, or its end. Returns `true` if it existed.
    ///
    /// # Errors
    /// If the store can't be written.
    async fn unqueue_run(&self, id: &RunId) -> Result<bool, JournalError>;

    /// Returns the last checkpoint that [`store_checkpoint`](Self::store_checkpoint) has stored;
    /// `None` if there is none, or retention has dropped its events.
    ///
    /// # Errors
    /// If it can't be read.
    async fn checkpoint(&self, session: &SessionId) -> Result<Option<Checkpoint>, JournalError>;

    /// Stores the state after a session's events up to a number, so that they need not be read
    /// again; it replaces the last checkpoint. Stores nothing if the session does not exist or if
    /// any of these events is not committed.
    ///
    /// # Errors
    /// If the store can't be written.
    async fn store_checkpoint(&self, session: &SessionId, checkpoint: Checkpoint)
    -> Result<(), JournalError>;

    /// Returns the latest state of the fleet that is not after an event, of those that
    /// [`store_moment`](Self::store_moment) has stored; `None` if none is.
    ///
    /// # Errors
    /// If it can't be read.
    async fn moment(&self, session: &SessionId, seq: u64) -> Result<Option<Checkpoint>, JournalError>;

    /// Stores the state of the fleet after a committed event, so that an earlier moment of the
    /// session is shown without the events before it. Stores nothing if the session does not exist.
    /// It is removed when retention drops any event of the session, and with the session.
    ///
    /// # Errors
    /// If the store can't be written.
    async fn store_moment(&self, session: &SessionId, moment: Checkpoint) -> Result<(), JournalError>;

    /// Stores a link of a session, and removes all links that had ended when it was created.
    /// Returns `false`, and stores nothing, if the session does not exist.
    ///
    /// # Errors
    /// If the store can't be written.
    async fn add_link(&self, link: Link) -> Result<bool, JournalError>;

    /// Returns a link, which may have ended; `None` if there is none of this id.
    ///
    /// # Errors
    /// If it can't be read.
    async fn link(&self, id: &LinkId) -> Result<Option<Link>, JournalError>;

    /// Returns the links of a session, the oldest first; some may have ended.
    ///
    /// # Errors
    /// If they can't be read.
    async fn links(&self, session: &SessionId) -> Result<Vec<Link>, JournalError>;

    /// Removes a link. Returns `true` if it existed.
    ///
    /// # Errors
    /// If the store can't be written.
    async fn remove_link(&self, id: &LinkId) -> Result<bool, JournalError>;

    /// Stores data beside the events of a session. It is committed when this returns. Data that is
    /// stored already stays as it is. If the session has not begun
    /// [`DATA_WAITS`](crate::DATA_WAITS) later, the data may be removed.
    ///
    /// Returns `false`, and stores nothing, if the session has not begun and its tenant has
    /// [`MAX_WAITING_DATA`](crate::MAX_WAITING_DATA) of such sessions already.
    ///
    /// # Errors
    /// If the store can't be written.
    async fn store_data(&self, session: &SessionId, id: &DataId, bytes: Bytes) -> Result<bool, JournalError>;

    /// Returns how many bytes data of a session has; `None` if there is none of this id.
    ///
    /// # Errors
    /// If it can't be read.
    async fn data_size(&self, session: &SessionId, id: &DataId) -> Result<Option<u64>, JournalError>;

    /// Returns a part of the data of a session, as far as it has these bytes; `None` if there is no
    /// data of this id.
    ///
    /// # Errors
    /// If it can't be read.
    async fn data(
        &self,
        session: &SessionId,
        id: &DataId,
        part: Range<u64>,
    ) -> Result<Option<Bytes>, JournalError>;

    /// Deletes a session, and its claims, links, queued runs and data. Returns `true` if it
    /// existed.
    ///
    /// # Errors
    /// [`JournalError::Busy`] while it is open; or if the store can't be written.
    async fn delete(&self, session: &SessionId) -> Result<bool, JournalError>;

    /// Drops old events of all sessions, also of those that are open. Returns how many. In a
    /// damaged session the events after the damage stay.
    ///
    /// # Errors
    /// If the store can't be read or written; what was dropped before stays so.
    async fn retain(&self, retention: &Retention, now: Timestamp) -> Result<u64, JournalError>;

    /// Resolves when all events appended before are committed, as durably as the store can.
    ///
    /// # Errors
    /// If the store can't be written. The failure of one record is in [`Record::failure`].
    async fn flush(&self) -> Result<(), JournalError>;

    /// Flushes, then closes the journal: records that are still open fail at their next event.
    ///
    /// # Errors
    /// Those of [`flush`](Self::flush).
    async fn close(&self) -> Result<(), JournalError>;
}

/// An item for each change of a session, or for several that came together. It ends when the
/// journal can tell no more changes.
pub type Changes = BoxStream<'static, ()>;

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

/// A session with a run that has begun and not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "built by journals in other crates")]
pub struct ActiveSession {
    /// What the journal has of it.
    pub session: SessionSummary,
    /// Whether a process has it open for writing.
    pub is_open: bool,
    /// The name of that process, if several share the journal.
    pub node: Option<String>,
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
    /// The run that was cut off when its process ended, if processes share the journal: from the
    /// next opening of the session on, until a run has begun since.
    pub cut: Option<RunId>,
    /// Time of the first event, which retention may have deleted since.
    pub created_at: Timestamp,
    /// When the last event was recorded.
    pub updated_at: Timestamp,
    /// Its place in the list of sessions, which says when its last run began.
    pub place: Place,
    /// The error if the session's record is damaged: fields of this summary that can't be read are
    /// empty. Such a session can be deleted; opening it may fail.
    pub damage: Option<String>,
}

impl SessionSummary {
    /// Creates the summary of a session without events; for implementations of [`Journal`].
    pub fn new(id: SessionId) -> Self {
        let (first, last, runs) = (1, 0, 0);
        let (created_at, updated_at) = (Timestamp::default(), Timestamp::default());
        let place = Place { at: created_at, name: id.as_str().to_owned() };
        Self {
            id,
            first,
            last,
            runs,
            unfinished: None,
            cut: None,
            created_at,
            updated_at,
            place,
            damage: None,
        }
    }

    /// Returns the number of stored events; 0 if a damaged row has a first number after the last.
    pub fn events(&self) -> u64 {
        self.last.saturating_add(1).saturating_sub(self.first)
    }
}
