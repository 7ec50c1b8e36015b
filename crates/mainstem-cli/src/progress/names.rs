//! Names of agents for people: `reviewer`, and what tells it from others of its kind.

use std::{collections::HashMap, fmt, sync::Arc};

use mainstem::message::SessionId;
use mainstem_event::{AgentEvent, EventKind, EventSource};

/// The most characters of a task that tell an agent from others.
const TASK: usize = 24;

/// An agent's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Name {
    /// Its id; with a number, if nothing else tells it from a twin.
    pub(crate) id: String,
    /// Its label; without a label, the first words of its task. Empty if it has neither.
    pub(crate) about: String,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)?;
        if self.about.is_empty() { Ok(()) } else { write!(f, " {}", self.about) }
    }
}

/// The names of all agents so far. A twin's number appears with the second of its kind.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    root: String,
    known: HashMap<SessionId, Known>,
    twins: HashMap<(SessionId, Arc<str>), u32>,
}

#[derive(Clone, Debug)]
struct Known {
    /// Its number among the twins without a label.
    nth: u32,
    task: String,
}

impl Default for Names {
    fn default() -> Self {
        Self { root: "main".to_owned(), known: HashMap::new(), twins: HashMap::new() }
    }
}

impl Names {
    /// Applies an event.
    pub(crate) fn event(&mut self, event: &AgentEvent) {
        match (event.source(), &event.kind) {
            (Some(source), kind) if !self.known.contains_key(&source.session_id) => self.meet(source, kind),
            (None, EventKind::AgentStart { name, .. }) => name.as_ref().clone_into(&mut self.root),
            _ => {}
        }
    }

    fn meet(&mut self, source: &EventSource, kind: &EventKind) {
        let nth = if source.label.is_some() { 0 } else { self.count(source) };
        let task = match kind {
            EventKind::AgentStart { input, .. } => input.last().map(|message| words(&message.text())),
            _ => None,
        };
        self.known.insert(source.session_id.clone(), Known { nth, task: task.unwrap_or_default() });
    }

    fn count(&mut self, source: &EventSource) -> u32 {
        let twins = self.twins.entry(twins(source)).or_default();
        *twins += 1;
        *twins
    }

    /// Returns the name of an agent; `None` is the root.
    pub(crate) fn of(&self, source: Option<&EventSource>) -> Name {
        let Some(source) = source else { return Name { id: self.root.clone(), about: String::new() } };
        let known = self.known.get(&source.session_id);
        if let Some(label) = &source.label {
            return Name { id: source.agent_id.to_string(), about: label.to_string() };
        }
        let has_twins = self.twins.get(&twins(source)).is_some_and(|count| *count > 1);
        let id = match known.filter(|_| has_twins) {
            Some(known) => format!("{}#{}", source.agent_id, known.nth),
            None => source.agent_id.to_string(),
        };
        Name { id, about: known.map_or_else(String::new, |known| known.task.clone()) }
    }
}

fn twins(source: &EventSource) -> (SessionId, Arc<str>) {
    (source.parent_session_id.clone(), source.agent_id.clone())
}

/// Returns the first words of a task.
fn words(task: &str) -> String {
    let mut words = String::new();
    for word in task.split_whitespace() {
        let space = usize::from(!words.is_empty());
        if words.chars().count() + space + word.chars().count() > TASK {
            // A single long word is cut.
            return if words.is_empty() { word.chars().take(TASK).collect() } else { words };
        }
        words.push_str(&" "[..space]);
        words.push_str(word);
    }
    words
}

#[cfg(test)]
mod tests;
