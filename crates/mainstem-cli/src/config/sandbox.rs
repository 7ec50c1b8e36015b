//! Limits of commands, as files and flags write them.

use std::{collections::BTreeMap, fmt};

use mainstem::guard::Limits;
use serde::{Deserialize, Deserializer, de::Error as _};

/// Limits by name, each with a value that was checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ShellLimits(BTreeMap<String, String>);

impl ShellLimits {
    /// Fills unset values from `others`.
    pub(super) fn or(self, others: Self) -> Self {
        others.0.into_iter().chain(self.0).collect()
    }

    /// Lowers each limit to that of `others` where the latter is lower.
    pub(super) fn within(self, others: &Self) -> Self {
        // All limits, of which only this one differs.
        let at = |name: &str, value: &str| {
            let mut limits = Limits::default();
            let _ = limits.set(name, value);
            (limits.cpu, limits.memory, limits.file_size, limits.processes)
        };
        let least = |(name, value): (String, String)| {
            let other = others.0.get(&name).filter(|other| at(&name, other) < at(&name, &value)).cloned();
            (name, other.unwrap_or(value))
        };
        self.0.into_iter().map(least).collect()
    }

    /// Returns `true` if no limit is set.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The defaults with these.
    pub(crate) fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        for (name, value) in &self.0 {
            // They were checked when they were read.
            let _ = limits.set(name, value);
        }
        limits
    }
}

impl fmt::Display for ShellLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits: Vec<_> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&limits.join(", "))
    }
}

impl FromIterator<(String, String)> for ShellLimits {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(limits: I) -> Self {
        Self(limits.into_iter().collect())
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Number(u64),
    Text(String),
}

impl<'de> Deserialize<'de> for ShellLimits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut limits = BTreeMap::new();
        for (name, value) in BTreeMap::<String, Value>::deserialize(deserializer)? {
            let value = match value {
                Value::Number(number) => number.to_string(),
                Value::Text(text) => text,
            };
            Limits::default().set(&name, &value).map_err(D::Error::custom)?;
            limits.insert(name, value);
        }
        Ok(Self(limits))
    }
}
