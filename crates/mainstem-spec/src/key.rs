//! The keys of an agent's file, each declared once: how it is read, checked, shown and documented.

mod rows;

use std::fmt::Write;

use serde_json::Value;

use crate::{
    AgentSpec, SpecError,
    node::Entry,
    parse::{Read, Reader},
};

/// A key of an agent's file.
///
/// ```
/// use mainstem_spec::{AgentSpec, Key};
///
/// let spec = AgentSpec::new("researcher", "Looks things up").with_steps(5);
/// let steps = Key::named("steps").unwrap();
/// assert_eq!((steps.value(&spec), steps.default), (5.into(), "10"));
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Key {
    /// Its name; `workspace.mode` is `mode` below `workspace`, too.
    pub name: &'static str,
    /// Its other names. If a file has several, the first counts.
    pub aliases: &'static [&'static str],
    /// What its value is, in Markdown.
    pub form: &'static str,
    /// What an absent key means, in plain text; empty if it means nothing.
    pub default: &'static str,
    /// What it is for, in Markdown.
    pub about: &'static str,
    /// Which of its names no other product has: a file that has one of them is ours.
    pub(crate) only_ours: &'static [&'static str],
    /// Whether its value is plain text, or names in one text, which `repair` can put in quotes.
    pub(crate) text: Text,
    /// Whether later checks look up the names that it lists.
    pub(crate) lists_names: bool,
    /// Puts the value of a file into the spec.
    pub(crate) read: fn(&mut Reader, &Entry) -> Read<()>,
    /// Checks the value of a spec built in code.
    check: fn(&AgentSpec) -> Vec<String>,
    /// The value, without secrets; null if it is absent.
    value: fn(&AgentSpec) -> Value,
}

/// The key whose keys are written below it, or with a dot.
pub(crate) const SECTION: &str = "workspace";

/// Whether a key's value is text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Text {
    No,
    Plain,
    /// A list, or text with commas.
    Names,
}

impl Key {
    /// Returns every key, in the order in which a file would have them.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        rows::ROWS.iter()
    }

    /// Returns the key of this name or alias.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::all().find(|key| key.names().any(|own| own == name))
    }

    /// Returns every name that a key can have.
    pub(crate) fn vocabulary() -> impl Iterator<Item = &'static str> {
        Self::all().flat_map(Self::names).chain([SECTION])
    }

    /// Returns its name and its aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Returns the key's value in a spec; null if it is absent. Secrets are left out: headers and
    /// MCP servers have only their names, and a URL has no password.
    #[must_use]
    pub fn value(&self, spec: &AgentSpec) -> Value {
        (self.value)(spec)
    }

    /// Returns what is wrong with the value in a spec.
    pub(crate) fn check(&self, spec: &AgentSpec) -> impl Iterator<Item = SpecError> + use<> {
        let name = self.name;
        (self.check)(spec).into_iter().map(move |message| SpecError::error(message).about(name))
    }

    /// Returns a table of all keys, in Markdown.
    #[must_use]
    pub fn table() -> String {
        let mut table = "| key | value | default | |\n|---|---|---|---|\n".to_owned();
        for key in Self::all() {
            let Self { name, aliases, form, default, about, .. } = key;
            let aliases: Vec<_> = aliases.iter().map(|alias| format!("`{alias}`")).collect();
            let also = if aliases.is_empty() { "" } else { ", also " };
            // Writing to a string can't fail.
            let _ =
                writeln!(table, "| `{name}`{also}{} | {form} | {default} | {about} |", aliases.join(", "));
        }
        table
    }
}

#[cfg(test)]
mod tests;
