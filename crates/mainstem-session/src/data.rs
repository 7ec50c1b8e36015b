//! The data of a session's messages, in the journal that records the session.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use mainstem_journal::{Journal, WHOLE};
use mainstem_message::{DataId, Failure, SessionId, StoredData};
use mainstem_react::DataStore;
use sha2::{Digest, Sha256};

/// The error code of data that can't be stored or read.
const CODE: &str = "data";

/// Returns the id of data: its SHA-256 in hexadecimal digits.
///
/// ```
/// let id = mainstem_session::data_id(b"abc");
/// assert_eq!(id.as_str(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
/// ```
pub fn data_id(bytes: &[u8]) -> DataId {
    let digits: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    DataId::from_lossy(digits)
}

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
        match stored.map_err(|error| Failure::new(CODE, error.to_string()))? {
            true => Ok(data),
            false => Err(Failure::new(CODE, "the tenant has too much data in sessions that have not begun")),
        }
    }

    async fn load(&self, data: &StoredData) -> Result<Option<Bytes>, Failure> {
        let found = self.journal.data(&self.session, &data.sha256, WHOLE).await;
        found.map_err(|error| Failure::new(CODE, error.to_string()))
    }
}
