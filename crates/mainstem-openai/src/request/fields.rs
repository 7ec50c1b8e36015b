//! The fields of a request, ours and the caller's.

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

/// A map in which the caller's own fields win.
pub(crate) struct Fields<'a, M> {
    map: M,
    extra: &'a Map<String, Value>,
}

impl<'a, M: SerializeMap> Fields<'a, M> {
    pub(crate) fn new<S>(serializer: S, extra: &'a Map<String, Value>) -> Result<Self, S::Error>
    where
        S: Serializer<SerializeMap = M>,
    {
        Ok(Self { map: serializer.serialize_map(None)?, extra })
    }

    pub(crate) fn field(&mut self, name: &str, value: Option<impl Serialize>) -> Result<(), M::Error> {
        match value {
            Some(value) if !self.extra.contains_key(name) => self.map.serialize_entry(name, &value),
            _ => Ok(()),
        }
    }

    pub(crate) fn end(mut self) -> Result<M::Ok, M::Error> {
        for (name, value) in self.extra {
            self.map.serialize_entry(name, value)?;
        }
        self.map.end()
    }
}
