//! A shared journal is one, too.

use std::{ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use mainstem_event::{AgentEvent, Record, Timestamp};
use mainstem_message::{DataId, LinkId, RunId, SessionId};

use super::{ActiveSession, Changes, Checkpoint, Journal, RunPlace, SessionSummary};
use crate::{
    Claim, Claimed, Figures, JobStore, JournalError, Link, Listing, Part, QueuedRun, Relay, Retention,
};

/// A journal that is shared, or chosen at run time as an `Arc<dyn Journal>`.
#[async_trait]
impl<J: Journal + ?Sized> Journal for Arc<J> {
    async fn open(&self, session: &SessionId) -> Result<Arc<dyn Record>, JournalError> {
        (**self).open(session).await
    }

    async fn is_open(&self, session: &SessionId) -> Result<bool, JournalError> {
        (**self).is_open(session).await
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, JournalError> {
        (**self).sessions().await
    }

    async fn list(&self, listing: &Listing) -> Result<Vec<SessionSummary>, JournalError> {
        (**self).list(listing).await
    }

    async fn active(&self, part: &Part, max: usize) -> Result<Vec<ActiveSession>, JournalError> {
        (**self).active(part, max).await
    }

    async fn session(&self, id: &SessionId) -> Result<Option<SessionSummary>, JournalError> {
        (**self).session(id).await
    }

    async fn read(
        &self,
        session: &SessionId,
        from: u64,
        max: usize,
    ) -> Result<Vec<AgentEvent>, JournalError> {
        (**self).read(session, from, max).await
    }

    async fn sizes(&self) -> Result<Vec<(SessionId, u64)>, JournalError> {
        (**self).sizes().await
    }

    async fn changes(&self, session: &SessionId) -> Result<Option<Changes>, JournalError> {
        (**self).changes(session).await
    }

    async fn abandoned(&self) -> Result<Vec<SessionId>, JournalError> {
        (**self).abandoned().await
    }

    async fn forget_cut(&self, session: &SessionId) -> Result<(), JournalError> {
        (**self).forget_cut(session).await
    }

    fn node(&self) -> Option<String> {
        (**self).node()
    }

    fn relay(&self) -> Option<Arc<dyn Relay>> {
        (**self).relay()
    }

    fn jobs(&self) -> Option<Arc<dyn JobStore>> {
        (**self).jobs()
    }

    fn figures(&self) -> Option<Figures> {
        (**self).figures()
    }

    async fn ready(&self) -> Result<(), JournalError> {
        (**self).ready().await
    }

    async fn run(&self, id: &RunId) -> Result<Option<RunPlace>, JournalError> {
        (**self).run(id).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, JournalError> {
        (**self).claim(claim).await
    }

    async fn queue_run(&self, run: QueuedRun) -> Result<(), JournalError> {
        (**self).queue_run(run).await
    }

    async fn queued_run(&self, id: &RunId) -> Result<Option<QueuedRun>, JournalError> {
        (**self).queued_run(id).await
    }

    async fn queued_runs(&self, session: &SessionId) -> Result<Vec<QueuedRun>, JournalError> {
        (**self).queued_runs(session).await
    }

    async fn unqueue_run(&self, id: &RunId) -> Result<bool, JournalError> {
        (**self).unqueue_run(id).await
    }

    async fn checkpoint(&self, session: &SessionId) -> Result<Option<Checkpoint>, JournalError> {
        (**self).checkpoint(session).await
    }

    async fn store_checkpoint(
        &self,
        session: &SessionId,
        checkpoint: Checkpoint,
    ) -> Result<(), JournalError> {
        (**self).store_checkpoint(session, checkpoint).await
    }

    async fn moment(&self, session: &SessionId, seq: u64) -> Result<Option<Checkpoint>, JournalError> {
        (**self).moment(session, seq).await
    }

    async fn store_moment(&self, session: &SessionId, moment: Checkpoint) -> Result<(), JournalError> {
        (**self).store_moment(session, moment).await
    }

    async fn add_link(&self, link: Link) -> Result<bool, JournalError> {
        (**self).add_link(link).await
    }

    async fn link(&self, id: &LinkId) -> Result<Option<Link>, JournalError> {
        (**self).link(id).await
    }

    async fn links(&self, session: &SessionId) -> Result<Vec<Link>, JournalError> {
        (**self).links(session).await
    }

    async fn remove_link(&self, id: &LinkId) -> Result<bool, JournalError> {
        (**self).remove_link(id).await
    }

    async fn store_data(&self, session: &SessionId, id: &DataId, bytes: Bytes) -> Result<bool, JournalError> {
        (**self).store_data(session, id, bytes).await
    }

    async fn data_size(&self, session: &SessionId, id: &DataId) -> Result<Option<u64>, JournalError> {
        (**self).data_size(session, id).await
    }

    async fn data(
        &self,
        session: &SessionId,
        id: &DataId,
        part: Range<u64>,
    ) -> Result<Option<Bytes>, JournalError> {
        (**self).data(session, id, part).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, JournalError> {
        (**self).delete(session).await
    }

    async fn retain(&self, retention: &Retention, now: Timestamp) -> Result<u64, JournalError> {
        (**self).retain(retention, now).await
    }

    async fn flush(&self) -> Result<(), JournalError> {
        (**self).flush().await
    }

    async fn close(&self) -> Result<(), JournalError> {
        (**self).close().await
    }
}
