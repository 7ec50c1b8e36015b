//! What a process leaves that is killed, for the binaries of tests that begin again behind it.

use std::sync::Arc;

use mainstem::{
    journal::{Journal, MemoryJournal},
    prelude::*,
    task::{MemoryTaskStore, TaskRecord, TaskStore},
};
use serde_json::json;

/// Returns what a process leaves that is killed after these events: its journal, and the record of
/// its task.
pub(crate) async fn killed_after(
    events: &[AgentEvent],
    task: &TaskRecord,
) -> (Arc<MemoryJournal>, MemoryTaskStore) {
    let (journal, store) = (Arc::new(MemoryJournal::new()), MemoryTaskStore::new());
    let record = journal.open(&"s".parse().unwrap()).await.unwrap();
    events.iter().for_each(|event| record.append(event));
    let mut open = serde_json::to_value(task).unwrap();
    let fields = open.as_object_mut().unwrap();
    ["result", "error", "cancel", "deliveredAt"].iter().for_each(|field| _ = fields.remove(*field));
    fields.extend([("status".to_owned(), json!("running")), ("executor".to_owned(), json!("killed"))]);
    store.create(serde_json::from_value(open).unwrap()).await.unwrap();
    (journal, store)
}
