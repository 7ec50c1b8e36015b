//! The fields of a request: those of the API, and the caller's own.

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

/// A map in which the caller's own fields take precedence.
#[derive(Debug)]
pub struct Fields<'a, M> {
    map: M,
    extra: &'a Map<String, Value>,
    /// Fields of `extra` that are merged into ours.
    merged: Vec<&'static str>,
}

impl<'a, M: SerializeMap> Fields<'a, M> {
    /// Creates a map without fields.
    ///
    /// # Errors
    /// The serializer's.
    pub fn new<S>(serializer: S, extra: &'a Map<String, Value>) -> Result<Self, S::Error>
    where
        S: Serializer<SerializeMap = M>,
    {
        Ok(Self { map: serializer.serialize_map(None)?, extra, merged: Vec::new() })
    }

    /// Writes a field, unless it has no value or the caller has set it.
    ///
    /// # Errors
    /// The serializer's.
    pub fn field(&mut self, name: &str, value: Option<impl Serialize>) -> Result<(), M::Error> {
        match value {
            Some(value) if !self.extra.contains_key(name) => self.map.serialize_entry(name, &value),
            _ => Ok(()),
        }
    }

    /// Writes a field into which the caller's own is merged already.
    ///
    /// # Errors
    /// The serializer's.
    pub fn merged(&mut self, name: &'static str, value: Option<impl Serialize>) -> Result<(), M::Error> {
        self.merged.push(name);
        value.map_or(Ok(()), |value| self.map.serialize_entry(name, &value))
    }

    /// Writes the caller's own fields, and ends the map.
    ///
    /// # Errors
    /// The serializer's.
    pub fn end(mut self) -> Result<M::Ok, M::Error> {
        for (name, value) in self.extra.iter().filter(|(name, _)| !self.merged.contains(&name.as_str())) {
            self.map.serialize_entry(name, value)?;
        }
        self.map.end()
    }
}
