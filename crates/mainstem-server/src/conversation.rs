//! A session that was requested here, with its readers and runs.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mainstem::{
    Harness,
    event::{Clock, FleetState, SystemClock, Timestamp},
    journal::SessionSummary,
    prelude::Session,
};
use mainstem_api::Code;
use tokio::time::Instant;

use crate::{
    app::{App, unrecorded},
    caller::Caller,
    encoded::Encoded,
    problem::Problem,
    shares::Share,
};

pub(crate) struct Conversation {
    pub(crate) session: Session,
    pub(crate) created_at: Timestamp,
    /// The number of its first stored event when it was opened.
    pub(crate) first_seq: u64,
    harness: Harness,
    readers: AtomicUsize,
    encoded: Encoded,
    /// When it was last requested.
    asked: Mutex<Instant>,
    /// Its place among those that are open.
    _share: Share,
}

impl Conversation {
    /// A session that was opened; `recorded` is what the journal had of it.
    pub(crate) fn new(
        session: Session,
        harness: Harness,
        recorded: Option<&SessionSummary>,
        share: Share,
    ) -> Self {
        let created_at = recorded.map_or_else(|| SystemClock.now(), |recorded| recorded.created_at);
        let first_seq = recorded.map_or(1, |recorded| recorded.first);
        let (readers, encoded, asked) = (AtomicUsize::new(0), Encoded::default(), Mutex::new(Instant::now()));
        Self { session, created_at, first_seq, harness, readers, encoded, asked, _share: share }
    }

    /// What every agent is doing, up to an event that is committed: the reader can go on after it,
    /// also after a crash.
    pub(crate) async fn fleet(&self) -> Result<FleetState, Problem> {
        let (fleet, log) = (self.session.fleet(), self.session.log());
        if fleet.seq > 0 {
            log.committed_from(fleet.seq).at_hand().await;
        }
        match log.failure() {
            Some(_) => Err(unrecorded()),
            None => Ok(fleet),
        }
    }

    /// How many follow it.
    pub(crate) fn readers(&self) -> usize {
        self.readers.load(Ordering::Acquire)
    }

    /// Returns the time of the last request for it.
    pub(crate) fn asked(&self) -> Instant {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request for it.
    pub(crate) fn touch(&self) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Returns `true` if it was not requested for this time, has no readers, runs and tasks, and
    /// can be opened again from its record.
    pub(crate) fn is_left_for(&self, time: Duration) -> bool {
        let asked = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.elapsed() >= time && self.harness.journal().is_some() && self.busy_with().is_none()
    }

    /// Lets the harness forget it. It is closed when it is dropped.
    pub(crate) fn close(&self) {
        self.harness.close_session(self.session.id());
    }

    /// Checks that the session has no run, no open task and no reader.
    pub(crate) fn is_idle(&self) -> Result<(), Problem> {
        self.busy_with().map_or(Ok(()), |what| Err(busy(what)))
    }

    /// Whether its record has failed.
    pub(crate) fn is_lost(&self) -> bool {
        self.session.log().failure().is_some()
    }

    /// Returns `true` if a run or a background task of the session is open.
    pub(crate) fn is_running(&self) -> bool {
        self.running().is_some()
    }

    fn running(&self) -> Option<&'static str> {
        if self.session.active().is_some() {
            return Some("a run of it is active: cancel that first");
        }
        let tasks = self.session.task_set().live_below(self.session.id());
        (!tasks.is_empty()).then_some("background tasks of it are running: cancel these first")
    }

    fn busy_with(&self) -> Option<&'static str> {
        if let Some(what) = self.running() {
            return Some(what);
        }
        (self.readers() > 0).then_some("it has readers")
    }
}

pub(crate) fn busy(what: &str) -> Problem {
    let detail = format!("the session can't be deleted while {what}");
    Problem::new(Code::SessionBusy, detail).retry_after(5)
}

/// A place among a session's readers and its tenant's; given back when dropped.
pub(crate) struct Seat {
    conversation: Arc<Conversation>,
    _share: Share,
}

impl Seat {
    /// Returns the frames that readers of the session share; `None` for its only reader.
    pub(crate) fn shared(&self) -> Option<&Encoded> {
        (self.conversation.readers() > 1).then_some(&self.conversation.encoded)
    }

    pub(crate) fn take(
        app: &App,
        caller: &Caller,
        conversation: &Arc<Conversation>,
    ) -> Result<Self, Problem> {
        let refused = |detail: String| Problem::new(Code::TooManyReaders, detail).retry_after(2);
        let most = app.reader_shares.most();
        let full =
            || refused(format!("your share of the {most} readers that this server has at once is in use"));
        let share = app.reader_shares.take(&caller.tenant).ok_or_else(full)?;
        let most = app.limits.readers_per_session;
        if conversation.readers.fetch_add(1, Ordering::AcqRel) >= most {
            conversation.readers.fetch_sub(1, Ordering::AcqRel);
            return Err(refused(format!("{most} readers follow this session, which is the limit")));
        }
        Ok(Self { conversation: conversation.clone(), _share: share })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.conversation.readers.fetch_sub(1, Ordering::AcqRel);
    }
}
