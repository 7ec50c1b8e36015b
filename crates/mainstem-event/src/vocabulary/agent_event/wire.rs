//! The flat JSON form, written and read by hand so that unknown kinds survive and writing needs no
//! buffer.

use std::{fmt, sync::Arc};

use mainstem_message::{ReplyId, RunId, SessionId};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, IgnoredAny, MapAccess, Visitor},
    ser::SerializeMap,
};
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
        if let Some(root_id) = &origin.root_id {
            map.serialize_entry("rootId", root_id)?;
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

/// `<session>.<seq>`, written without an intermediate string.
struct Id<'a>(&'a SessionId, u64);

impl Serialize for Id<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}.{}", self.0, self.1))
    }
}

impl<'de> Deserialize<'de> for AgentEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader::default())
    }
}

/// The names of the envelope's fields; all others belong to the kind.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Name {
    Type,
    Seq,
    Id,
    SessionId,
    RunId,
    CreatedAt,
    Source,
    RootId,
    ReplyId,
    Metadata,
    #[serde(untagged)]
    Other(String),
}

/// The fields read so far. Those of the envelope are decoded as they come; those of the kind wait
/// for `type`, which may come last.
#[derive(Default)]
struct Reader {
    tag: Option<String>,
    seq: Option<u64>,
    session_id: Option<SessionId>,
    run_id: Option<RunId>,
    at: Option<Timestamp>,
    source: Option<Arc<EventSource>>,
    root_id: Option<Arc<str>>,
    reply_id: Option<ReplyId>,
    metadata: Option<Box<Map<String, Value>>>,
    fields: Map<String, Value>,
}

impl<'de> Visitor<'de> for Reader {
    type Value = AgentEvent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event, which is a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<AgentEvent, A::Error> {
        while let Some(name) = map.next_key()? {
            match name {
                Name::Type => self.tag = Some(value(&mut map, "type")?),
                Name::Seq => self.seq = Some(value(&mut map, "seq")?),
                Name::Id => _ = map.next_value::<IgnoredAny>()?,
                Name::SessionId => self.session_id = Some(value(&mut map, "sessionId")?),
                Name::RunId => self.run_id = value(&mut map, "runId")?,
                Name::CreatedAt => self.at = Some(value(&mut map, "createdAt")?),
                Name::Source => self.source = value(&mut map, "source")?,
                Name::RootId => self.root_id = value(&mut map, "rootId")?,
                Name::ReplyId => self.reply_id = value(&mut map, "replyId")?,
                Name::Metadata => self.metadata = value(&mut map, "metadata")?,
                Name::Other(name) => _ = self.fields.insert(name, map.next_value()?),
            }
        }
        self.finish().map_err(A::Error::custom)
    }
}

/// Returns a value of the envelope, or an error with its place.
fn value<'de, T: Deserialize<'de>, A: MapAccess<'de>>(map: &mut A, name: &str) -> Result<T, A::Error> {
    map.next_value().map_err(|error| A::Error::custom(format_args!("field {name:?} of an event: {error}")))
}

impl Reader {
    fn finish(mut self) -> Result<AgentEvent, String> {
        let tag = self.tag.ok_or("an event has no field \"type\"")?;
        let missing = |name| format!("{tag} has no field {name:?}");
        let seq = self.seq.ok_or_else(|| missing("seq"))?;
        let session_id = self.session_id.ok_or_else(|| missing("sessionId"))?;
        let at = self.at.ok_or_else(|| missing("createdAt"))?;
        let Self { run_id, reply_id, source, root_id, metadata, .. } = self;
        let origin = Arc::new(Origin { session_id, run_id, reply_id, source, root_id });
        let kind = EventKind::read(&tag, &mut self.fields)?;
        Ok(AgentEvent(Arc::new(EventData { seq, at, origin, kind, metadata })))
    }
}

#[cfg(test)]
mod tests;
