//! The flat JSON form, written and read by hand so that unknown kinds survive and nothing is buffered on the way out.

use std::sync::Arc;

use mainstem_message::{ReplyId, RunId, SessionId};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::SerializeMap};
use serde_json::{Map, Value};

use super::{AgentEvent, EventData};
use crate::{EventKind, EventSource, Origin, Timestamp};

impl Serialize for AgentEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let origin = &*self.origin;
        map.serialize_entry("type", self.kind.name())?;
        map.serialize_entry("seq", &self.seq)?;
        map.serialize_entry("id", &Id(&origin.session_id, self.seq))?;
        map.serialize_entry("sessionId", &origin.session_id)?;
        if let Some(run_id) = &origin.run_id {
            map.serialize_entry("runId", run_id)?;
        }
        map.serialize_entry("createdAt", &self.at)?;
        if let Some(source) = &origin.source {
            map.serialize_entry("source", source)?;
        }
        if let Some(reply_id) = &origin.reply_id {
            map.serialize_entry("replyId", reply_id)?;
        }
        self.kind.write_fields(&mut map)?;
        if let Some(metadata) = &self.metadata {
            map.serialize_entry("metadata", metadata)?;
        }
        map.end()
    }
}

/// `<session>.<seq>`, written without a string in between.
struct Id<'a>(&'a SessionId, u64);

impl Serialize for Id<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}.{}", self.0, self.1))
    }
}

/// The envelope's fields, as they are read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    #[serde(rename = "type")]
    kind: String,
    seq: u64,
    session_id: SessionId,
    run_id: Option<RunId>,
    created_at: Timestamp,
    source: Option<Arc<EventSource>>,
    reply_id: Option<ReplyId>,
    metadata: Option<Map<String, Value>>,
}

const ENVELOPE: [&str; 9] =
    ["type", "seq", "id", "sessionId", "runId", "createdAt", "source", "replyId", "metadata"];

impl<'de> Deserialize<'de> for AgentEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        let mut outer = Map::new();
        for name in ENVELOPE {
            outer.extend(fields.remove_entry(name));
        }
        let envelope: Envelope = serde_json::from_value(Value::Object(outer)).map_err(D::Error::custom)?;
        let kind = EventKind::read(&envelope.kind, &mut fields).map_err(D::Error::custom)?;
        Ok(Self(Arc::new(EventData {
            seq: envelope.seq,
            at: envelope.created_at,
            origin: Arc::new(Origin {
                session_id: envelope.session_id,
                run_id: envelope.run_id,
                reply_id: envelope.reply_id,
                source: envelope.source,
            }),
            kind,
            metadata: envelope.metadata,
        })))
    }
}
