//! Data of messages: stored once beside the events, which refer to it, and loaded for a model.

use std::{collections::HashMap, fmt, sync::Arc};

use async_trait::async_trait;
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use mainstem_message::{ContentBlock, DataSource, Failure, Message, StoredData};
use mainstem_model::ModelRequest;

use crate::RunContext;

/// The size, in base64 digits, from which data is stored beside the events.
const MIN: usize = 4 << 10;

/// The limit of the data in one request to a model, in bytes, which are a third more as base64.
/// OpenAI accepts requests of 50 MB, other services less: see `ask_with_less` in `drive`.
pub(crate) const MAX_LOADED: u64 = 32 << 20;

/// Stores the data of one session's messages beside its events.
#[async_trait]
pub trait DataStore: Send + Sync + 'static {
    /// Stores data. Does nothing if it is stored.
    ///
    /// # Errors
    /// If it can't be stored; the data then stays in its message.
    async fn store(&self, bytes: Bytes) -> Result<StoredData, Failure>;

    /// Returns stored data; `None` if there is none of this id.
    ///
    /// # Errors
    /// If it can't be read; the model call that needs it fails.
    async fn load(&self, data: &StoredData) -> Result<Option<Bytes>, Failure>;
}

impl fmt::Debug for dyn DataStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataStore")
    }
}

/// Stores the data of messages, and returns them with references to it. Small data, addresses, and
/// what can't be stored stay as they are.
pub async fn store_data(store: &dyn DataStore, messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    let mut stored = Vec::with_capacity(messages.len());
    for mut message in messages {
        if has(&message.content, is_large) {
            put_aside(store, &mut Arc::make_mut(&mut message).content).await;
        }
        stored.push(message);
    }
    stored
}

impl RunContext {
    /// Returns the content of a result with references to its data, which the run's [`DataStore`]
    /// stores.
    pub(crate) async fn with_stored_data(&self, mut content: Vec<ContentBlock>) -> Vec<ContentBlock> {
        if let Some(store) = self.data_store()
            && has(&content, is_large)
        {
            // Boxed: few results have data, and the future of each call would hold it.
            Box::pin(put_aside(&**store, &mut content)).await;
        }
        content
    }

    /// Returns a request with the data that its messages refer to, the latest [`MAX_LOADED`] bytes
    /// of it.
    ///
    /// # Errors
    /// It can't be read.
    pub(crate) async fn with_loaded_data(&self, mut request: ModelRequest) -> Result<ModelRequest, Failure> {
        if !request.messages.iter().any(|message| has(&message.content, is_stored)) {
            return Ok(request);
        }
        // Boxed: few conversations have data, and the future of each call would hold it.
        Box::pin(async {
            let mut loading = Loading::default();
            for message in request.messages.iter_mut().rev() {
                if has(&message.content, is_stored) {
                    loading.load(self.data_store(), &mut Arc::make_mut(message).content).await?;
                }
            }
            Ok(request)
        })
        .await
    }
}

/// The data of one request.
#[derive(Default)]
struct Loading {
    /// Each is read once.
    loaded: HashMap<StoredData, Option<String>>,
    /// The size of the loaded data, in bytes; data that is referred to twice counts twice.
    bytes: u64,
}

impl Loading {
    async fn load(
        &mut self,
        store: Option<&Arc<dyn DataStore>>,
        content: &mut [ContentBlock],
    ) -> Result<(), Failure> {
        for block in blocks_mut(content) {
            let ContentBlock::Data { media_type, source, .. } = block else { continue };
            let DataSource::Stored(data) = source else { continue };
            let loaded = self.get(store, data).await;
            match loaded? {
                Ok(digits) => *source = DataSource::Base64(digits),
                Err(why) => {
                    let note = format!("[{media_type} of {} bytes was here; {why}]", data.bytes);
                    *block = ContentBlock::text(note);
                }
            }
        }
        Ok(())
    }

    /// Returns data as base64, or why the model does not get it.
    async fn get(
        &mut self,
        store: Option<&Arc<dyn DataStore>>,
        data: &StoredData,
    ) -> Result<Result<String, &'static str>, Failure> {
        const GONE: &str = "it is no longer stored";
        if self.bytes.saturating_add(data.bytes) > MAX_LOADED {
            return Ok(Err("it was left out, because later messages have much data"));
        }
        if let Some(known) = self.loaded.get(data) {
            self.bytes += known.as_ref().map_or(0, |_| data.bytes);
            return Ok(known.clone().ok_or(GONE));
        }
        let bytes = match store {
            Some(store) => store.load(data).await?,
            None => None,
        };
        // The length in a reference may be wrong.
        let bytes = bytes.filter(|bytes| bytes.len() as u64 == data.bytes);
        let digits = bytes.map(|bytes| BASE64_STANDARD.encode(bytes));
        self.bytes += digits.as_ref().map_or(0, |_| data.bytes);
        self.loaded.insert(data.clone(), digits.clone());
        Ok(digits.ok_or(GONE))
    }
}

async fn put_aside(store: &dyn DataStore, content: &mut [ContentBlock]) {
    for block in blocks_mut(content).filter(|block| is_large(block)) {
        let ContentBlock::Data { source, .. } = block else { continue };
        let DataSource::Base64(digits) = &*source else { continue };
        // The model's service refuses invalid base64.
        let Ok(bytes) = BASE64_STANDARD.decode(digits) else { continue };
        match store.store(bytes.into()).await {
            Ok(data) => *source = DataSource::Stored(data),
            Err(error) => {
                tracing::warn!(%error, "data can't be stored, and stays in its message");
                return;
            }
        }
    }
}

fn is_large(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Data { source: DataSource::Base64(digits), .. } if digits.len() >= MIN)
}

fn is_stored(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Data { source: DataSource::Stored(_), .. })
}

/// Returns `true` if a block matches, of the content or of a result in it.
fn has(content: &[ContentBlock], matches: fn(&ContentBlock) -> bool) -> bool {
    blocks(content).any(matches)
}

/// Returns the blocks of a message, and of the results in it.
pub(crate) fn blocks(content: &[ContentBlock]) -> impl Iterator<Item = &ContentBlock> {
    content.iter().flat_map(|block| match block {
        ContentBlock::ToolResult(result) => result.content.iter(),
        block => std::slice::from_ref(block).iter(),
    })
}

/// Returns them mutably.
pub(crate) fn blocks_mut(content: &mut [ContentBlock]) -> impl Iterator<Item = &mut ContentBlock> + Send {
    content.iter_mut().flat_map(|block| match block {
        ContentBlock::ToolResult(result) => result.content.iter_mut(),
        block => std::slice::from_mut(block).iter_mut(),
    })
}

#[cfg(test)]
mod tests;
