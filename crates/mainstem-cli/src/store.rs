//! Where sessions are kept on this machine.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use etcetera::BaseStrategy;
use mainstem::{
    Harness,
    journal::{Journal, JournalError, SqliteJournal},
    message::SessionId,
};
use mainstem_event::{AgentEvent, Timestamp};

use crate::{progress, terminal::Terminal};

/// How many events are read at once.
const PAGE: usize = 1024;

/// Opens the user's journal, or the one in that file.
///
/// # Errors
/// There is no place for it, or it can't be opened.
pub(crate) fn open(path: Option<&Path>) -> anyhow::Result<SqliteJournal> {
    let path = path.map_or_else(default_path, |path| Ok(path.to_owned()))?;
    let open = || {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        anyhow::Ok(SqliteJournal::open(&path)?)
    };
    open().with_context(|| format!("the journal {}", path.display()))
}

/// The files of a journal: itself, what SQLite keeps beside it, and the locks of its sessions.
pub(crate) fn files(journal: &Path) -> impl Iterator<Item = PathBuf> {
    ["", "-wal", "-shm", "-journal", ".locks"].into_iter().map(|end| {
        let mut name = journal.as_os_str().to_owned();
        name.push(end);
        std::path::absolute(&name).unwrap_or_else(|_| name.into())
    })
}

/// Waits until everything that a harness has recorded is kept, and says so if it can't be.
pub(crate) async fn close(harness: &Harness, terminal: Terminal) {
    if let Some(journal) = harness.journal()
        && let Err(error) = journal.close().await
    {
        progress::say(&format!("warning: the end of a session may not be kept: {error}"), terminal);
    }
}

/// The events of a session that is kept, a page at a time.
pub(crate) struct Pages {
    journal: SqliteJournal,
    id: SessionId,
    next: u64,
    /// When the last event of the pages so far happened.
    at: Timestamp,
}

impl Pages {
    /// From the first that is kept; `None` if there is no such session.
    pub(crate) async fn of(journal: SqliteJournal, id: &str) -> Result<Option<Self>, JournalError> {
        let id = id.into();
        let known = journal.session(&id).await?;
        Ok(known.map(|known| Self { journal, id, next: known.first, at: known.created_at }))
    }

    /// The same from this event on.
    pub(crate) fn from(mut self, seq: u64) -> Self {
        self.next = self.next.max(seq);
        self
    }

    /// Whether somebody writes the session, as far as that can be found out.
    pub(crate) async fn is_written(&self) -> bool {
        self.journal.is_open(&self.id).await.unwrap_or(true)
    }

    /// Returns the next page; an empty one at the end. A gap with the reason replaces an event that can't be read.
    pub(crate) async fn next(&mut self) -> Result<Vec<AgentEvent>, JournalError> {
        let page = match self.journal.read(&self.id, self.next, PAGE).await {
            Err(JournalError::Damaged { seq, through, why, .. }) if seq >= self.next => {
                vec![AgentEvent::unreadable(self.id.clone(), seq..=through, self.at, why)]
            }
            page => page?,
        };
        if let Some(last) = page.last() {
            (self.next, self.at) = (last.seq.saturating_add(1), last.at);
        }
        Ok(page)
    }
}

fn default_path() -> anyhow::Result<PathBuf> {
    let dirs = etcetera::choose_base_strategy()
        .map_err(|error| anyhow!("there is no place for sessions: {error}; --journal names one"))?;
    Ok(dirs.data_dir().join("mainstem").join("journal.db"))
}
