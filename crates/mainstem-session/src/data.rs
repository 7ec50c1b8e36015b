//! The data of a session's messages, in the journal that records the session.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

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

/// How many bytes are kept that were loaded.
const KEPT: usize = 16 << 20;

/// The data of a session, for one run: each of its model calls has the data of the conversation, so
/// what was loaded is kept, up to a limit.
pub(crate) struct SessionData {
    journal: Arc<dyn Journal>,
    session: SessionId,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    data: HashMap<DataId, Bytes>,
    bytes: usize,
}

impl SessionData {
    pub(crate) fn new(journal: Arc<dyn Journal>, session: SessionId) -> Self {
        Self { journal, session, kept: Mutex::default() }
    }

    fn kept(&self, id: &DataId) -> Option<Bytes> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).data.get(id).cloned()
    }

    fn keep(&self, id: &DataId, data: &Bytes) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes + data.len() <= KEPT && kept.data.insert(id.clone(), data.clone()).is_none() {
            kept.bytes += data.len();
        }
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
        if let Some(kept) = self.kept(&data.sha256) {
            return Ok(Some(kept));
        }
        let found = self.journal.data(&self.session, &data.sha256, WHOLE).await;
        let found = found.map_err(|error| Failure::new(CODE, error.to_string()))?;
        found.iter().for_each(|found| self.keep(&data.sha256, found));
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    //! What is kept of a run's data.

    use mainstem_journal::MemoryJournal;

    use super::*;

    #[tokio::test]
    async fn data_is_read_once_while_there_is_room() {
        let (journal, session): (Arc<dyn Journal>, SessionId) =
            (Arc::new(MemoryJournal::new()), "s".parse().unwrap());
        let data = SessionData::new(journal, session);
        let sizes = [KEPT / 2, KEPT / 2 + 1, 10];
        let mut stored = Vec::new();
        for (byte, size) in sizes.into_iter().enumerate() {
            let byte = u8::try_from(byte).unwrap();
            stored.push(data.store(vec![byte; size].into()).await.unwrap());
        }
        for stored in stored.iter().chain(&stored) {
            let loaded = data.load(stored).await.unwrap().unwrap();
            assert_eq!((loaded.len() as u64, data_id(&loaded)), (stored.bytes, stored.sha256.clone()));
        }
        let kept: Vec<_> = stored.iter().map(|stored| data.kept(&stored.sha256).is_some()).collect();
        assert_eq!(kept, [true, false, true]);
        // It is not read again: another journal does not have it.
        let data = SessionData { journal: Arc::new(MemoryJournal::new()), ..data };
        let loaded: Vec<_> = [data.load(&stored[0]).await, data.load(&stored[1]).await].into();
        assert_eq!(
            loaded.iter().map(|one| one.as_ref().unwrap().is_some()).collect::<Vec<_>>(),
            [true, false]
        );
    }
}
