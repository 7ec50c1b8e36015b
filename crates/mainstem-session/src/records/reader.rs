//! Events from a journal, a page at a time, and what other processes append meanwhile.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures_util::StreamExt;
use mainstem_api::{Error, EventQuery, Problem};
use mainstem_event::{AgentEvent, Timestamp};
use mainstem_journal::{Changes, Journal, JournalError, SessionSummary};
use mainstem_message::SessionId;
use tokio::time::{sleep, timeout};

use crate::{refusal::no_session, selection::Selection};

/// How many events are read at once.
const PAGE: usize = 1024;

/// How often a journal that can't tell changes is read for events of other processes.
const INTERVAL: Duration = Duration::from_millis(50);

/// How often a journal that can tell changes is read nevertheless: one may be missed.
const LONGEST: Duration = Duration::from_secs(1);

/// What a reader gets in the place of events that retention has deleted.
const DELETED: &str = "these events are no longer stored";

pub(crate) struct Reader {
    journal: Arc<dyn Journal>,
    id: SessionId,
    selection: Selection,
    is_following: bool,
    is_over: bool,
    /// The number of the next event to read.
    next: u64,
    /// The time of the last event that was read; `None` before the first page.
    at: Option<Timestamp>,
    page: VecDeque<AgentEvent>,
    changes: Option<Changes>,
    /// The time of the session's first event, by which it is told from a later one of the same id.
    created_at: Option<Timestamp>,
}

impl Reader {
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        id: SessionId,
        query: &EventQuery,
        selection: Selection,
    ) -> Self {
        let next = query.after.unwrap_or(0) + 1;
        let (is_following, is_over) = (query.is_following(), false);
        let (page, changes, created_at) = (VecDeque::new(), None, None);
        Self { journal, id, selection, is_following, is_over, next, at: None, page, changes, created_at }
    }

    /// Reads the session that began at this time, and no later one of the same id.
    pub(crate) fn of(self, created_at: Timestamp) -> Self {
        Self { created_at: Some(created_at), ..self }
    }

    /// The next selected event. Dropping the wait loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<AgentEvent>, Error> {
        while !self.is_over {
            let Some(event) = self.page.pop_front() else {
                if !self.read().await? && !self.is_following {
                    return Ok(None);
                }
                continue;
            };
            self.is_over = self.selection.ends_with(&event);
            if self.selection.has(&event) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Reads a page; returns whether there was one.
    async fn read(&mut self) -> Result<bool, Error> {
        let at = match self.at {
            Some(at) => at,
            None => self.begin().await?,
        };
        if !self.page.is_empty() {
            return Ok(true);
        }
        let page = match self.journal.read(&self.id, self.next, PAGE).await {
            Err(JournalError::Damaged { seq, through, why, .. }) if seq >= self.next => {
                vec![AgentEvent::unreadable(self.id.clone(), seq..=through, at, why)]
            }
            page => page.map_err(|error| no_session(&error))?,
        };
        if let Some(last) = page.last() {
            if self.is_following {
                self.same_session().await?;
            }
            (self.next, self.at) = (last.seq.saturating_add(1), Some(last.at));
            self.page.extend(page);
            return Ok(true);
        }
        if self.is_following {
            self.wait().await;
        }
        Ok(false)
    }

    /// Waits until there may be further events.
    async fn wait(&mut self) {
        let Some(changes) = &mut self.changes else { return sleep(INTERVAL).await };
        if let Ok(None) = timeout(LONGEST, changes.next()).await {
            self.changes = None;
        }
    }

    /// Returns the session, unless it was deleted, also if another one has its id now.
    async fn same_session(&mut self) -> Result<SessionSummary, Error> {
        let session = self.journal.session(&self.id).await.map_err(|error| no_session(&error))?;
        let is_same = |session: &SessionSummary| {
            self.created_at.is_none_or(|created_at| created_at == session.created_at)
        };
        let session =
            session.filter(is_same).ok_or_else(|| Problem::not_found("session", self.id.as_str()))?;
        self.created_at = Some(session.created_at);
        Ok(session)
    }

    /// Finds the first stored event.
    async fn begin(&mut self) -> Result<Timestamp, Error> {
        let session = self.same_session().await?;
        if self.is_following {
            self.changes = self.journal.changes(&self.id).await.map_err(|error| no_session(&error))?;
        }
        if self.next < session.first && session.first <= session.last {
            let deleted = self.next..=session.first - 1;
            self.page.push_back(AgentEvent::unreadable(
                self.id.clone(),
                deleted,
                session.created_at,
                DELETED,
            ));
            self.next = session.first;
        }
        self.at = Some(session.created_at);
        Ok(session.created_at)
    }
}
