//! Limits of commands, as files and flags write them.

use std::{collections::BTreeMap, fmt};

use clap::Args;
use mainstem::guard::Limits;
use serde::{Deserialize, Deserializer, de::Error as _};

use super::table::{Layered, Location, Narrow};

/// Limits by name, each with a value that was checked. The last of a name applies.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub(crate) struct ShellLimits {
    /// Limit each command with all its processes: `memory=2GiB`, `cpu=10m`, `file_size=1GiB`,
    /// `processes=64`; repeatable.
    #[arg(id = "shell_limits", long = "shell-limit", value_name = "NAME=VALUE", value_parser = limit)]
    limits: Vec<(String, String)>,
}

impl ShellLimits {
    /// Returns the defaults with these.
    pub(crate) fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        for (name, value) in &self.limits {
            // They were checked when they were read.
            let _ = limits.set(name, value);
        }
        limits
    }

    /// Returns them by name.
    pub(super) fn named(&self) -> impl Iterator<Item = (&str, &str)> {
        self.limits.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns what they do in a file.
    pub(super) fn does(&self) -> String {
        format!("sets the limits of agents' commands ({self})")
    }
}

impl Layered for ShellLimits {
    fn or(self, below: Self) -> Self {
        below.limits.into_iter().chain(self.limits).collect()
    }

    fn locate(&mut self, _file: &Location<'_>) {}
}

impl Narrow for ShellLimits {
    fn narrowed_by(self, user: &Self) -> Self {
        // All limits, of which only this one differs.
        let at = |name: &str, value: &str| {
            let mut limits = Limits::default();
            let _ = limits.set(name, value);
            (limits.cpu, limits.memory, limits.file_size, limits.processes)
        };
        let user: BTreeMap<_, _> = user.limits.iter().cloned().collect();
        let least = |(name, value): (String, String)| {
            let lower = user.get(&name).filter(|user| at(&name, user) < at(&name, &value)).cloned();
            (name, lower.unwrap_or(value))
        };
        self.limits.into_iter().map(least).collect()
    }
}

impl fmt::Display for ShellLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits: Vec<_> = self.limits.iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&limits.join(", "))
    }
}

impl FromIterator<(String, String)> for ShellLimits {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(limits: I) -> Self {
        let by_name: BTreeMap<_, _> = limits.into_iter().collect();
        Self { limits: by_name.into_iter().collect() }
    }
}

/// Reads `NAME=VALUE`.
fn limit(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it like `memory=2GiB`")?;
    Limits::default().set(name, value)?;
    Ok((name.to_owned(), value.to_owned()))
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number, or a text such as \"512MiB\"")]
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
        Ok(limits.into_iter().collect())
    }
}
