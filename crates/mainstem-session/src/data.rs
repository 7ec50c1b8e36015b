//! The data of a session's messages, in the journal that records the session.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use mainstem_journal::{Journal, data_id};
use mainstem_message::{Failure, SessionId, StoredData};
use mainstem_react::DataStore;

/// The error code of data that can't be stored or read.
const CODE: &str = "data";

pub(crate) struct SessionData {
    journal: Arc<dyn Journal>,
    session: SessionId,
}

impl SessionData {
    pub(crate) fn new(journal: Arc<dyn Journal>, session: SessionId) -> Self {
        Self { journal, session }
    }
}

#[async_trait]
impl DataStore for SessionData {
    async fn store(&self, bytes: Bytes) -> Result<StoredData, Failure> {
        let data = StoredData::new(data_id(&bytes), bytes.len() as u64);
        let stored = self.journal.store_data(&self.session, &data.sha256, bytes).await;
        stored.map_err(|error| Failure::new(CODE, error.to_string()))?;
        Ok(data)
    }

    async fn load(&self, data: &StoredData) -> Result<Option<Bytes>, Failure> {
        let found = self.journal.data(&self.session, &data.sha256).await;
        found.map_err(|error| Failure::new(CODE, error.to_string()))
    }
}
