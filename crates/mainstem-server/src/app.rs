//! What all requests share: the harness, who may ask, the sessions and runs that there are, how much is going on.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::http::StatusCode;
use dashmap::DashMap;
use mainstem::{
    Harness,
    event::{Clock, SystemClock, Timestamp},
    journal::{JournalError, SessionSummary},
    message::RunId,
    prelude::{RunHandle, Session},
};
use tokio_util::sync::CancellationToken;

use crate::{caller::Caller, hosts::Hosts, problem::Problem, tokens::Tokens};

/// How much may go on at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) runs: usize,
    pub(crate) readers_per_session: usize,
}

pub(crate) struct App {
    pub(crate) harness: Harness,
    pub(crate) tokens: Tokens,
    pub(crate) hosts: Hosts,
    pub(crate) limits: Limits,
    /// No more runs, and readers are sent away.
    pub(crate) stop: CancellationToken,
    /// By tenant and id: a session's id is chosen by whoever begins it.
    sessions: DashMap<(Option<Arc<str>>, String), Arc<Conversation>>,
    runs: DashMap<RunId, Arc<Started>>,
}

/// A session that somebody has begun here.
pub(crate) struct Conversation {
    pub(crate) session: Session,
    pub(crate) created_at: Timestamp,
    /// How many runs the journal had of it.
    pub(crate) earlier_runs: u64,
    pub(crate) runs: std::sync::Mutex<Vec<RunId>>,
    readers: AtomicUsize,
}

/// A run that somebody has begun here.
pub(crate) struct Started {
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) handle: RunHandle,
    /// None of its events is before this one.
    pub(crate) first: u64,
    pub(crate) created_at: Timestamp,
}

impl App {
    pub(crate) fn new(harness: Harness, tokens: Tokens, hosts: Hosts, limits: Limits) -> Self {
        let stop = CancellationToken::new();
        Self { harness, tokens, hosts, limits, stop, sessions: DashMap::new(), runs: DashMap::new() }
    }

    /// A caller's session, begun if need be.
    pub(crate) async fn open(&self, caller: &Caller, id: &str) -> Result<Arc<Conversation>, Problem> {
        if !is_id(id) {
            let detail = "a session's id has 1 to 128 letters, digits, -, _, . and :";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_session_id", detail));
        }
        let key = (caller.tenant.clone(), id.to_owned());
        if let Some(known) = self.sessions.get(&key) {
            return Ok(known.clone());
        }
        let kept = kept(caller, id).await?;
        let session = caller.harness.open_session(id.to_owned()).await.map_err(|error| unreadable(&error))?;
        let begin = || {
            let (created_at, earlier_runs) =
                kept.map_or_else(|| (SystemClock.now(), 0), |kept| (kept.created_at, kept.runs));
            let (runs, readers) = (Default::default(), AtomicUsize::new(0));
            Arc::new(Conversation { session, created_at, earlier_runs, runs, readers })
        };
        Ok(self.sessions.entry(key).or_insert_with(begin).clone())
    }

    /// A caller's session that there is, here or in the journal.
    pub(crate) async fn session(&self, caller: &Caller, id: &str) -> Result<Arc<Conversation>, Problem> {
        let found = self.sessions.get(&(caller.tenant.clone(), id.to_owned())).map(|entry| entry.clone());
        match found {
            Some(found) => Ok(found),
            None if kept(caller, id).await?.is_some() => self.open(caller, id).await,
            None => Err(Problem::not_found("session", id)),
        }
    }

    /// A caller's sessions that are open here, by id.
    pub(crate) fn sessions(&self, caller: &Caller) -> Vec<(String, Arc<Conversation>)> {
        let own = self.sessions.iter().filter(|entry| entry.key().0 == caller.tenant);
        let mut sessions: Vec<_> = own.map(|entry| (entry.key().1.clone(), entry.value().clone())).collect();
        sessions.sort_by(|one, other| one.0.cmp(&other.0));
        sessions
    }

    /// Keeps a run that has begun.
    pub(crate) fn keep(&self, conversation: &Conversation, run: Started) -> Arc<Started> {
        let run = Arc::new(run);
        self.runs.insert(run.handle.id().clone(), run.clone());
        lock(&conversation.runs).push(run.handle.id().clone());
        run
    }

    /// A caller's run.
    pub(crate) fn run(&self, caller: &Caller, id: &str) -> Result<Arc<Started>, Problem> {
        let found = self.runs.get(&RunId::new(id)).map(|entry| entry.clone());
        found.filter(|run| run.tenant == caller.tenant).ok_or_else(|| Problem::not_found("run", id))
    }

    /// Takes a place for one more run.
    pub(crate) fn admit(&self) -> Result<(), Problem> {
        if self.stop.is_cancelled() {
            let detail = "the server is shutting down";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", detail).retry_after(5));
        }
        if self.live_runs() >= self.limits.runs {
            let detail = format!("{} runs are at work, which is the limit", self.limits.runs);
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_runs", detail).retry_after(5));
        }
        Ok(())
    }

    /// How many runs have not ended.
    pub(crate) fn live_runs(&self) -> usize {
        self.runs.iter().filter(|run| run.ended().is_none()).count()
    }
}

impl Started {
    /// How it ended; `None` while it goes on.
    pub(crate) fn ended(&self) -> Option<mainstem::react::RunOutcome> {
        use futures_util::FutureExt;
        self.handle.outcome().now_or_never().flatten()
    }

    /// Whether nothing more will come of it: it has ended, or was dropped.
    pub(crate) fn is_over(&self) -> bool {
        use futures_util::FutureExt;
        self.handle.outcome().now_or_never().is_some()
    }
}

/// A place among a session's readers; given back when dropped.
pub(crate) struct Seat(Arc<Conversation>);

impl Seat {
    pub(crate) fn take(conversation: &Arc<Conversation>, most: usize) -> Result<Self, Problem> {
        if conversation.readers.fetch_add(1, Ordering::AcqRel) >= most {
            conversation.readers.fetch_sub(1, Ordering::AcqRel);
            let detail = format!("{most} readers follow this session, which is the limit");
            return Err(
                Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_readers", detail).retry_after(2)
            );
        }
        Ok(Self(conversation.clone()))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What the journal has of a session.
async fn kept(caller: &Caller, id: &str) -> Result<Option<SessionSummary>, Problem> {
    match caller.harness.journal() {
        Some(journal) => journal.session(&id.into()).await.map_err(|error| unreadable(&error)),
        None => Ok(None),
    }
}

/// A journal that can't be read just now, or a session that another process writes.
pub(crate) fn unreadable(error: &JournalError) -> Problem {
    match error {
        JournalError::Busy { .. } => Problem::new(StatusCode::CONFLICT, "session_busy", error.to_string()),
        _ => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "journal_unavailable", error.to_string()),
    }
}

fn is_id(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    (1..=128).contains(&id.len()) && id.bytes().all(plain) && !id.starts_with('.')
}

pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
