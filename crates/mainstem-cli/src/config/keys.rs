//! The keys of a configuration as documentation: what the declaration says about each.

use std::{cell::RefCell, collections::BTreeSet};

use clap::{Arg, Command};

use super::{
    PROJECT,
    settings::Settings,
    table::{Table, Var},
};

/// A key of a configuration file.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// The key with the tables before it: `limits.max_depth`.
    pub(crate) path: String,
    pub(crate) about: String,
    /// The flag, with its short form if there is one.
    pub(crate) flag: Option<Flag>,
    /// The variables of the environment.
    pub(crate) variables: Vec<String>,
    /// What needs trust in a project's file, and what it does.
    pub(crate) guarded: Option<(String, String)>,
}

/// The flag of a setting.
#[derive(Clone, Debug)]
pub(crate) struct Flag {
    pub(crate) short: Option<char>,
    pub(crate) long: String,
}

impl Key {
    /// Returns the keys of this table, or the key itself if it is not a table.
    pub(super) fn or_within(self, keys: Vec<Self>) -> Vec<Self> {
        if keys.is_empty() {
            return vec![self];
        }
        let within = |path: &str| format!("{}.{path}", self.path);
        let full = |key: Self| Self {
            path: within(&key.path),
            guarded: key.guarded.map(|(what, does)| (within(&what), does)),
            ..key
        };
        keys.into_iter().map(full).collect()
    }

    /// Returns the key as a file has it. The flag of a switch that is on by default turns it off.
    pub(crate) fn in_file(&self) -> String {
        let is_turned_off = self.flag.as_ref().is_some_and(|flag| flag.long.starts_with("--no-"));
        if is_turned_off { format!("{} = false", self.path) } else { self.path.clone() }
    }

    /// Returns its names: in a file, as a flag, and in the environment.
    fn names(&self) -> Vec<String> {
        let flags = self.flag.iter().flat_map(|flag| {
            let short = flag.short.map(|short| format!("-{short}"));
            short.into_iter().chain([flag.long.clone()])
        });
        [self.in_file()].into_iter().chain(flags).chain(self.variables.iter().cloned()).collect()
    }

    /// Returns how to set it: `-m, MAINSTEM_MODEL or "model" in ./mainstem.toml`.
    fn ways(&self) -> String {
        let flag = self.flag.iter().map(|flag| match flag.short {
            Some(short) => format!("-{short}"),
            None => flag.long.clone(),
        });
        let ways: Vec<_> = flag.chain(self.variables.iter().cloned()).collect();
        let file = format!("`{}` in {PROJECT}", self.path);
        if ways.is_empty() { file } else { format!("{} or {file}", ways.join(", ")) }
    }
}

/// Returns the keys of a configuration file, each with its flag, its variable and what it is for.
pub(crate) fn listed() -> String {
    Settings::keys()
        .iter()
        .map(|key| wrapped("  ", &key.names().join(", ")) + &wrapped("      ", &key.about))
        .collect()
}

/// Returns a text in lines of at most 80 columns, indented.
fn wrapped(indent: &str, text: &str) -> String {
    let mut lines = vec![indent.to_owned()];
    for word in text.split(' ') {
        let space = if lines.last().is_some_and(|line| line == indent) { "" } else { " " };
        match lines.last_mut() {
            Some(line) if line.chars().count() + space.len() + word.chars().count() <= 80 => {
                line.push_str(&format!("{space}{word}"));
            }
            _ => lines.push(format!("{indent}{word}")),
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Returns how a setting is set, for advice: by flag, variable or key.
pub(crate) fn ways(path: &str) -> String {
    Settings::keys().iter().find(|key| key.path == path).map(Key::ways).unwrap_or_default()
}

/// Returns what needs trust in a project's file, a line each.
pub(crate) fn guarded() -> String {
    let rows: Vec<_> = Settings::keys().into_iter().filter_map(|key| key.guarded).collect();
    let width = rows.iter().map(|(what, _)| what.len()).max().unwrap_or_default();
    rows.iter().map(|(what, does)| format!("    {what:width$}  {does}\n")).collect()
}

/// Returns the flag of a key among these.
pub(super) fn flag(flags: &Command, key: &str) -> Option<Flag> {
    let arg: &Arg = flags.get_arguments().find(|arg| arg.get_id() == key)?;
    Some(Flag { short: arg.get_short(), long: format!("--{}", arg.get_long()?) })
}

/// Returns the variables that a function reads.
pub(super) fn variables(read: impl FnOnce(Var<'_>)) -> Vec<String> {
    let names = RefCell::new(Vec::new());
    read(&|name| {
        names.borrow_mut().push(name.to_owned());
        None
    });
    let mut seen = BTreeSet::new();
    names.into_inner().into_iter().filter(|name| seen.insert(name.clone())).collect()
}

/// Returns the lines of a doc comment up to its first empty line, as one, without the variable that
/// help ends with.
pub(super) fn about(lines: &[&str]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| line.trim()).take_while(|line| !line.is_empty()).collect();
    let text = lines.join(" ");
    match text.split_once(" [env: ") {
        Some((before, _)) => format!("{before}."),
        None => text,
    }
}

#[cfg(test)]
mod tests;
