//! Which data is stored, and what stays in its message.

use std::sync::Mutex;

use mainstem_message::{Message, Opaque, Role, ToolCallId, ToolResult, ToolState};

use super::*;

/// A store in memory, which may be full.
#[derive(Default)]
struct Store {
    stored: Mutex<Vec<(StoredData, Bytes)>>,
    is_full: bool,
}

#[async_trait]
impl DataStore for Store {
    async fn store(&self, bytes: Bytes) -> Result<StoredData, Failure> {
        if self.is_full {
            return Err(Failure::new("data", "the disk is full"));
        }
        let id = format!("id-{:x}-{}", bytes[0], bytes.len());
        let data = StoredData::new(id.parse().unwrap(), bytes.len() as u64);
        self.stored.lock().unwrap().push((data.clone(), bytes));
        Ok(data)
    }

    async fn load(&self, data: &StoredData) -> Result<Option<Bytes>, Failure> {
        let stored = self.stored.lock().unwrap();
        Ok(stored.iter().find(|(known, _)| known == data).map(|(_, bytes)| bytes.clone()))
    }
}

fn image(source: DataSource) -> ContentBlock {
    ContentBlock::Data { media_type: "image/png".to_owned(), source, opaque: Opaque::new() }
}

fn base64(bytes: &[u8]) -> DataSource {
    DataSource::Base64(BASE64_STANDARD.encode(bytes))
}

fn result(content: Vec<ContentBlock>) -> ContentBlock {
    let (id, name) = (ToolCallId::new("call-1"), "look".into());
    ContentBlock::ToolResult(ToolResult { tool_call_id: id, name, content, state: ToolState::Success })
}

/// Stores the data of messages; returns the sources that they have then.
async fn sources(store: &Store, messages: &[Message]) -> Vec<DataSource> {
    let messages = store_data(store, messages.iter().cloned().map(Arc::new).collect()).await;
    let mut messages: Vec<_> = messages.iter().map(|message| Message::clone(message)).collect();
    let blocks = messages.iter_mut().flat_map(|message| blocks_mut(&mut message.content));
    let sources = blocks.filter_map(|block| match block {
        ContentBlock::Data { source, .. } => Some(source.clone()),
        _ => None,
    });
    sources.collect()
}

#[tokio::test]
async fn large_data_is_stored_and_all_else_stays() {
    let (large, small) = (vec![7; 9_000], vec![8; 900]);
    let url = DataSource::Url("https://example.com/plan.png".to_owned());
    let junk = DataSource::Base64("?".repeat(9_000));
    let kept = [base64(&small), url, junk];
    let blocks = kept.iter().cloned().chain([base64(&large)]).map(image);
    let user = Message::new(Role::User, blocks.collect());
    let tool = Message::new(Role::Tool, vec![result(vec![ContentBlock::text("a"), image(base64(&large))])]);

    let store = Store::default();
    let found = sources(&store, &[user.clone(), tool.clone()]).await;
    let stored = DataSource::Stored(StoredData::new("id-7-9000".parse().unwrap(), 9_000));
    assert_eq!(found, [&kept[..], &[stored.clone(), stored]].concat());
    assert_eq!(store.stored.lock().unwrap()[0].1, large);

    // Data that can't be stored stays in its message.
    let found = sources(&Store { is_full: true, ..Store::default() }, &[user, tool]).await;
    assert_eq!(found, [&kept[..], &[base64(&large), base64(&large)]].concat());
}

/// Returns what a model gets of these data, which a store has.
async fn loaded(store: Store, data: &[StoredData]) -> Vec<String> {
    let store: Arc<dyn DataStore> = Arc::new(store);
    let mut content: Vec<_> = data.iter().map(|data| image(DataSource::Stored(data.clone()))).collect();
    let mut loading = Loading::default();
    // As messages are: the latest first.
    for block in content.iter_mut().rev() {
        loading.load(Some(&store), std::slice::from_mut(block)).await.unwrap();
    }
    let shown = content.iter().map(|block| match block {
        ContentBlock::Data { source: DataSource::Base64(digits), .. } => format!("{} digits", digits.len()),
        block => block.as_text().unwrap_or("?").to_owned(),
    });
    shown.collect()
}

#[tokio::test]
async fn a_request_has_so_much_data_and_the_latest_of_it() {
    let store = Store::default();
    let part = (MAX_LOADED / 4) as usize;
    let mut data = Vec::new();
    for byte in 1..=3 {
        data.push(store.store(vec![byte; part].into()).await.unwrap());
    }
    let [one, two, three] = <[StoredData; 3]>::try_from(data).unwrap();
    let small = store.store(vec![9; 30].into()).await.unwrap();
    let wrong = StoredData::new(small.sha256.clone(), 31);
    let digits = format!("{} digits", part.div_ceil(3) * 4);
    let left_out = format!(
        "[image/png of {part} bytes was here; it was left out, because later messages have much data]"
    );
    // One that is shown twice counts twice.
    let shown = loaded(store, &[one, two.clone(), two, three, small, wrong]).await;
    let gone = "[image/png of 31 bytes was here; it is no longer stored]";
    assert_eq!(shown, [&left_out, &digits, &digits, &digits, "40 digits", gone]);
}
