//! The events of a session with the data that their messages refer to, so that a file of events
//! has its pictures without the session.

use std::{collections::HashMap, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use futures_util::{Stream, TryStreamExt};
use mainstem::{
    api::{AnySession, Code, Error, EventQuery},
    event::{AgentEvent, EventKind},
    message::{DataSource, StoredData},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Returns the recorded events of a session, with their data. A reference to deleted data stays.
pub(crate) fn recorded(session: Arc<dyn AnySession>) -> impl Stream<Item = Result<AgentEvent, Error>> {
    session.events(EventQuery::stored()).and_then(move |event| with_data(session.clone(), event))
}

async fn with_data(session: Arc<dyn AnySession>, event: AgentEvent) -> Result<AgentEvent, Error> {
    if !has_content(&event.kind) {
        return Ok(event);
    }
    let Ok(mut json) = serde_json::to_value(&event) else { return Ok(event) };
    let mut sources = Vec::new();
    collect(&mut json, &mut sources);
    let mut loaded = HashMap::new();
    for (source, data) in sources {
        if !loaded.contains_key(&data) {
            match session.data(&data).await {
                Ok(bytes) => _ = loaded.insert(data.clone(), BASE64_STANDARD.encode(bytes)),
                Err(error) if error.has_code(&Code::NotFound) => continue,
                Err(error) => return Err(error),
            }
        }
        *source = json!(DataSource::Base64(loaded[&data].clone()));
    }
    if loaded.is_empty() { Ok(event) } else { Ok(serde_json::from_value(json).unwrap_or(event)) }
}

/// Returns `true` if an event of this kind may have content of messages.
fn has_content(kind: &EventKind) -> bool {
    use EventKind as E;
    matches!(
        kind,
        E::AgentStart { .. }
            | E::AgentResult { .. }
            | E::ToolResultDataDelta { .. }
            | E::MessageSent { .. }
            | E::StateCheckpoint { .. }
    )
}

/// Collects the sources that refer to stored data.
fn collect<'a>(value: &'a mut Value, sources: &mut Vec<(&'a mut Value, StoredData)>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| collect(item, sources)),
        Value::Object(fields) => {
            for (name, value) in fields {
                let stored = value.get("stored").filter(|_| name == "source");
                match stored.and_then(|stored| StoredData::deserialize(stored).ok()) {
                    Some(data) => sources.push((value, data)),
                    None => collect(value, sources),
                }
            }
        }
        _ => {}
    }
}
