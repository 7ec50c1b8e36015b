//! A part of a journal as a separate journal.

use std::{ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use mainstem_event::{AgentEvent, Record, Timestamp};
use mainstem_message::{DataId, LinkId, RunId, SessionId, TenantName};

use crate::{
    ActiveSession, Changes, Checkpoint, Claim, Claimed, JobStore, Journal, JournalError, Link, Listing, Part,
    QueuedRun, Retention, RunPlace, ScopedJobs, SessionSummary,
};

/// A tenant's part of a journal, whose sessions and claims other parts can't read. In the journal
/// itself the ids of its sessions begin with the tenant's name and a slash.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::{ops::Range, sync::Arc};
/// use mainstem_journal::{Journal, MemoryJournal, Scoped};
///
/// let whole: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
/// let acme = Scoped::new(whole.clone(), "acme".parse()?);
/// let other = Scoped::new(whole, "other".parse()?);
/// let session = "s".parse()?;
/// let held = (acme.open(&session).await?, other.open(&session).await?);
/// # drop(held);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Scoped {
    whole: Arc<dyn Journal>,
    tenant: TenantName,
}

impl Scoped {
    /// Creates a tenant's part.
    pub fn new(whole: Arc<dyn Journal>, tenant: TenantName) -> Self {
        Self { whole, tenant }
    }

    fn inner(&self, session: &SessionId) -> SessionId {
        session.scoped(&self.tenant)
    }

    /// Returns a session's id within the part; `None` if it belongs to another part.
    fn outer(&self, session: &SessionId) -> Option<SessionId> {
        session.unscoped(&self.tenant)
    }

    /// Returns a summary as it is within the part; `None` if it belongs to another part.
    fn own(&self, summary: SessionSummary) -> Option<SessionSummary> {
        let id = self.outer(&summary.id)?;
        let place = summary.place.unscoped(&self.tenant)?;
        Some(SessionSummary { id, place, ..summary })
    }

    /// Converts the sessions of an error to their ids within the part.
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
        Ok(all.into_iter().filter_map(|summary| self.own(summary)).collect())
    }

    async fn list(&self, listing: &Listing) -> Result<Vec<SessionSummary>, JournalError> {
        let after = listing.after.as_ref().map(|place| place.scoped(&self.tenant));
        let part = Part::Of(Some(self.tenant.clone()));
        let found = self.whole.list(&Listing { part, after, ..listing.clone() }).await?;
        Ok(found.into_iter().filter_map(|summary| self.own(summary)).collect())
    }

    async fn active(&self, _: &Part, max: usize) -> Result<Vec<ActiveSession>, JournalError> {
        let found = self.whole.active(&Part::Of(Some(self.tenant.clone())), max).await?;
        let own =
            |active: ActiveSession| Some(ActiveSession { session: self.own(active.session)?, ..active });
        Ok(found.into_iter().filter_map(own).collect())
    }

    async fn session(&self, id: &SessionId) -> Result<Option<SessionSummary>, JournalError> {
        let found = self.whole.session(&self.inner(id)).await?;
        Ok(found.and_then(|summary| self.own(summary)))
    }

    async fn read(
        &self,
        session: &SessionId,
        from: u64,
        max: usize,
    ) -> Result<Vec<AgentEvent>, JournalError> {
        self.named(self.whole.read(&self.inner(session), from, max).await)
    }

    async fn sizes(&self) -> Result<Vec<(SessionId, u64)>, JournalError> {
        let all = self.whole.sizes().await?;
        Ok(all.into_iter().filter_map(|(session, bytes)| Some((self.outer(&session)?, bytes))).collect())
    }

    async fn changes(&self, session: &SessionId) -> Result<Option<Changes>, JournalError> {
        self.named(self.whole.changes(&self.inner(session)).await)
    }

    async fn abandoned(&self) -> Result<Vec<SessionId>, JournalError> {
        let all = self.whole.abandoned().await?;
        Ok(all.iter().filter_map(|session| self.outer(session)).collect())
    }

    fn node(&self) -> Option<String> {
        self.whole.node()
    }

    fn jobs(&self) -> Option<Arc<dyn JobStore>> {
        let whole = self.whole.jobs()?;
        Some(Arc::new(ScopedJobs::new(whole, self.tenant.clone())))
    }

    async fn ready(&self) -> Result<(), JournalError> {
        self.whole.ready().await
    }

    async fn run(&self, id: &RunId) -> Result<Option<RunPlace>, JournalError> {
        let place = self.whole.run(id).await?;
        Ok(place.and_then(|place| Some(RunPlace { session: self.outer(&place.session)?, ..place })))
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, JournalError> {
        // A key is any text, so a separator in it could be another part's; a newline can't be in a
        // header, which a caller's key is.
        let (key, session) = (format!("{}\n{}", self.tenant, claim.key), self.inner(&claim.session));
        Ok(match self.whole.claim(Claim { key, session, ..claim }).await? {
            Claimed::Same { session, run } => {
                Claimed::Same { session: self.outer(&session).unwrap_or(session), run }
            }
            claimed => claimed,
        })
    }

    async fn queue_run(&self, run: QueuedRun) -> Result<(), JournalError> {
        let session = self.inner(&run.session);
        self.whole.queue_run(QueuedRun { session, ..run }).await
    }

    async fn queued_run(&self, id: &RunId) -> Result<Option<QueuedRun>, JournalError> {
        let found = self.whole.queued_run(id).await?;
        Ok(found.and_then(|run| Some(QueuedRun { session: self.outer(&run.session)?, ..run })))
    }

    async fn queued_runs(&self, session: &SessionId) -> Result<Vec<QueuedRun>, JournalError> {
        let found = self.whole.queued_runs(&self.inner(session)).await?;
        Ok(found.into_iter().map(|run| QueuedRun { session: session.clone(), ..run }).collect())
    }

    async fn forget_cut(&self, session: &SessionId) -> Result<(), JournalError> {
        self.whole.forget_cut(&self.inner(session)).await
    }

    async fn unqueue_run(&self, id: &RunId) -> Result<bool, JournalError> {
        Ok(self.queued_run(id).await?.is_some() && self.whole.unqueue_run(id).await?)
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

    async fn moment(&self, session: &SessionId, seq: u64) -> Result<Option<Checkpoint>, JournalError> {
        self.whole.moment(&self.inner(session), seq).await
    }

    async fn store_moment(&self, session: &SessionId, moment: Checkpoint) -> Result<(), JournalError> {
        self.whole.store_moment(&self.inner(session), moment).await
    }

    async fn add_link(&self, link: Link) -> Result<bool, JournalError> {
        let session = self.inner(&link.session);
        self.whole.add_link(Link { session, ..link }).await
    }

    async fn link(&self, id: &LinkId) -> Result<Option<Link>, JournalError> {
        let found = self.whole.link(id).await?;
        Ok(found.and_then(|link| Some(Link { session: self.outer(&link.session)?, ..link })))
    }

    async fn links(&self, session: &SessionId) -> Result<Vec<Link>, JournalError> {
        let found = self.whole.links(&self.inner(session)).await?;
        Ok(found.into_iter().map(|link| Link { session: session.clone(), ..link }).collect())
    }

    async fn remove_link(&self, id: &LinkId) -> Result<bool, JournalError> {
        Ok(self.link(id).await?.is_some() && self.whole.remove_link(id).await?)
    }

    async fn store_data(&self, session: &SessionId, id: &DataId, bytes: Bytes) -> Result<bool, JournalError> {
        self.whole.store_data(&self.inner(session), id, bytes).await
    }

    async fn data_size(&self, session: &SessionId, id: &DataId) -> Result<Option<u64>, JournalError> {
        self.whole.data_size(&self.inner(session), id).await
    }

    async fn data(
        &self,
        session: &SessionId,
        id: &DataId,
        part: Range<u64>,
    ) -> Result<Option<Bytes>, JournalError> {
        self.whole.data(&self.inner(session), id, part).await
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
