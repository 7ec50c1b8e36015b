//! A table whose entries are checked by name while they are read, so that an error has the place of
//! its entry.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, Visitor},
};

/// Reads a table; `check` sees the name and the value of each entry.
pub(super) fn checked<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
    deserializer: D,
    check: fn(&str, &V) -> Result<(), String>,
) -> Result<BTreeMap<String, V>, D::Error> {
    deserializer.deserialize_map(Entries { check })
}

struct Entries<V> {
    check: fn(&str, &V) -> Result<(), String>,
}

impl<'de, V: Deserialize<'de>> Visitor<'de> for Entries<V> {
    type Value = BTreeMap<String, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value_seed(Entry { name: &name, check: self.check })?;
            entries.insert(name, value);
        }
        Ok(entries)
    }
}

struct Entry<'a, V> {
    name: &'a str,
    check: fn(&str, &V) -> Result<(), String>,
}

impl<'de, V: Deserialize<'de>> DeserializeSeed<'de> for Entry<'_, V> {
    type Value = V;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<V, D::Error> {
        let value = V::deserialize(deserializer)?;
        (self.check)(self.name, &value).map_err(D::Error::custom)?;
        Ok(value)
    }
}
