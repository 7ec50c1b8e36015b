//! A part of a journal as a separate journal.

use std::sync::Arc;

use async_trait::async_trait;
use mainstem_event::{AgentEvent, Record, Timestamp};
use mainstem_message::{RunId, SessionId};

use crate::{Checkpoint, Claim, Claimed, Journal, JournalError, Retention, RunPlace, SessionSummary};

/// Separates the name of a part from that of a session.
const SEPARATOR: char = '/';

/// A part of a journal whose sessions and claims other parts can't read. In the journal itself
/// their names begin with the name of the part.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mainstem_journal::JournalError> {
/// use std::sync::Arc;
/// use mainstem_journal::{Journal, MemoryJournal, Scoped};
///
/// let whole: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
/// let (acme, other) = (Scoped::new(whole.clone(), "acme"), Scoped::new(whole, "other"));
/// let held = (acme.open(&"s".into()).await?, other.open(&"s".into()).await?);
/// # drop(held);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Scoped {
    whole: Arc<dyn Journal>,
    name: String,
}

impl Scoped {
    /// Creates the part of this name.
    pub fn new(whole: Arc<dyn Journal>, name: impl Into<String>) -> Self {
        Self { whole, name: name.into() }
    }

    fn inner(&self, session: &SessionId) -> SessionId {
        SessionId::new(format!("{}{SEPARATOR}{session}", self.name))
    }

    /// Returns a session's name within the part; `None` if it belongs to another part.
    fn outer(&self, session: &SessionId) -> Option<SessionId> {
        let own = session.as_str().strip_prefix(&*self.name)?.strip_prefix(SEPARATOR)?;
        Some(SessionId::new(own))
    }

    /// Converts the sessions of an error to their names within the part.
    fn named<T>(&self, result: Result<T, JournalError>) -> Result<T, JournalError> {
        let own = |session: SessionId| self.outer(&session).unwrap_or(session);
        result.map_err(|error| match error {
            JournalError::Unknown { session } => JournalError::Unknown { session: own(session) },
            JournalError::Busy { session } => JournalError::Busy { session: own(session) },
            JournalError::Damaged { session, seq, through, why } => {
                JournalError::Damaged { session: own(session), seq, through, why }
            }
            error => error,
        })
    }
}

#[async_trait]
impl Journal for Scoped {
    async fn open(&self, session: &SessionId) -> Result<Arc<dyn Record>, JournalError> {
        self.named(self.whole.open(&self.inner(session)).await)
    }

    async fn is_open(&self, session: &SessionId) -> Result<bool, JournalError> {
        self.whole.is_open(&self.inner(session)).await
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, JournalError> {
        let all = self.whole.sessions().await?;
        let own = |summary: SessionSummary| Some(SessionSummary { id: self.outer(&summary.id)?, ..summary });
        Ok(all.into_iter().filter_map(own).collect())
    }

    async fn session(&self, id: &SessionId) -> Result<Option<SessionSummary>, JournalError> {
        let found = self.whole.session(&self.inner(id)).await?;
        Ok(found.map(|summary| SessionSummary { id: id.clone(), ..summary }))
    }

    async fn read(
        &self,
        session: &SessionId,
        from: u64,
        max: usize,
    ) -> Result<Vec<AgentEvent>, JournalError> {
        self.named(self.whole.read(&self.inner(session), from, max).await)
    }

    async fn run(&self, id: &RunId) -> Result<Option<RunPlace>, JournalError> {
        let place = self.whole.run(id).await?;
        Ok(place.and_then(|place| Some(RunPlace { session: self.outer(&place.session)?, ..place })))
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, JournalError> {
        let (key, session) = (format!("{}{SEPARATOR}{}", self.name, claim.key), self.inner(&claim.session));
        Ok(match self.whole.claim(Claim { key, session, ..claim }).await? {
            Claimed::Same { session, run } => {
                Claimed::Same { session: self.outer(&session).unwrap_or(session), run }
            }
            claimed => claimed,
        })
    }

    async fn checkpoint(&self, session: &SessionId) -> Result<Option<Checkpoint>, JournalError> {
        self.whole.checkpoint(&self.inner(session)).await
    }

    async fn store_checkpoint(
        &self,
        session: &SessionId,
        checkpoint: Checkpoint,
    ) -> Result<(), JournalError> {
        self.whole.store_checkpoint(&self.inner(session), checkpoint).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, JournalError> {
        self.named(self.whole.delete(&self.inner(session)).await)
    }

    /// Drops old events of the whole journal, not of this part alone.
    async fn retain(&self, retention: &Retention, now: Timestamp) -> Result<u64, JournalError> {
        self.whole.retain(retention, now).await
    }

    async fn flush(&self) -> Result<(), JournalError> {
        self.whole.flush().await
    }

    /// Closes the whole journal, not this part alone.
    async fn close(&self) -> Result<(), JournalError> {
        self.whole.close().await
    }
}
