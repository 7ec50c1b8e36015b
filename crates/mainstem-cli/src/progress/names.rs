//! Names of agents for people: `reviewer`, and what tells it from others of its kind.

use std::{collections::HashMap, fmt, sync::Arc};

use mainstem::message::SessionId;
use mainstem_event::{AgentEvent, EventKind, EventSource};

/// An agent's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Name {
    /// Its id; with a number, if nothing else tells it from a twin.
    pub(crate) id: String,
    /// Its [title](EventSource::title); empty if it has none.
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
    /// Each agent's number among the twins without a label.
    known: HashMap<SessionId, u32>,
    twins: HashMap<(SessionId, Arc<str>), u32>,
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
            (Some(source), _) if !self.known.contains_key(&source.session_id) => self.meet(source),
            (None, EventKind::AgentStart { name, .. }) => name.as_ref().clone_into(&mut self.root),
            _ => {}
        }
    }

    fn meet(&mut self, source: &EventSource) {
        let nth = if source.label.is_some() { 0 } else { self.count(source) };
        self.known.insert(source.session_id.clone(), nth);
    }

    fn count(&mut self, source: &EventSource) -> u32 {
        let twins = self.twins.entry(twins(source)).or_default();
        *twins += 1;
        *twins
    }

    /// Returns the name of an agent; `None` is the root.
    pub(crate) fn of(&self, source: Option<&EventSource>) -> Name {
        let Some(source) = source else { return Name { id: self.root.clone(), about: String::new() } };
        let about = source.title.as_deref().unwrap_or_default().to_owned();
        let has_twins = self.twins.get(&twins(source)).is_some_and(|count| *count > 1);
        let nth = self.known.get(&source.session_id).filter(|nth| has_twins && **nth > 0);
        let id = match nth {
            Some(nth) => format!("{}#{nth}", source.agent_id),
            None => source.agent_id.to_string(),
        };
        Name { id, about }
    }
}

fn twins(source: &EventSource) -> (SessionId, Arc<str>) {
    (source.parent_session_id.clone(), source.agent_id.clone())
}

#[cfg(test)]
mod tests;
