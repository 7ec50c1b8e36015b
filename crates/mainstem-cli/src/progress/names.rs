//! Names of agents for people: `main › tester › runner`, with numbers for twins.

use std::{collections::HashMap, sync::Arc};

use mainstem::message::SessionId;
use mainstem_event::{AgentEvent, EventKind, EventSource};

/// The names of all agents so far. A twin's number appears with the second of its kind.
#[derive(Debug)]
pub(super) struct Names {
    root: String,
    known: HashMap<SessionId, Known>,
    twins: HashMap<(SessionId, Arc<str>), u32>,
}

#[derive(Debug)]
struct Known {
    parent: SessionId,
    id: Arc<str>,
    nth: u32,
}

impl Default for Names {
    fn default() -> Self {
        Self { root: "main".to_owned(), known: HashMap::new(), twins: HashMap::new() }
    }
}

impl Names {
    /// Applies an event.
    pub(super) fn event(&mut self, event: &AgentEvent) {
        match (event.source(), &event.kind) {
            (Some(source), _) if !self.known.contains_key(&source.session_id) => self.meet(source),
            (None, EventKind::AgentStart { name, .. }) => name.as_ref().clone_into(&mut self.root),
            _ => {}
        }
    }

    fn meet(&mut self, source: &EventSource) {
        let (parent, id) = (source.parent_session_id.clone(), source.agent_id.clone());
        let count = self.twins.entry((parent.clone(), id.clone())).or_default();
        *count += 1;
        self.known.insert(source.session_id.clone(), Known { parent, id, nth: *count });
    }

    /// Returns the path from the root to the agent.
    pub(super) fn path(&self, source: Option<&EventSource>) -> Vec<String> {
        let Some(source) = source else { return vec![self.root.clone()] };
        let mut names = Vec::new();
        let mut session = &source.session_id;
        while let Some(known) = self.known.get(session) {
            let twins =
                self.twins.get(&(known.parent.clone(), known.id.clone())).copied().unwrap_or_default();
            names.push(if twins > 1 { format!("{}#{}", known.id, known.nth) } else { known.id.to_string() });
            session = &known.parent;
        }
        // The path has the ids of ancestors that were filtered out.
        let above: Vec<_> = source.path.split('/').skip(1).collect();
        let unseen = above.len().saturating_sub(names.len());
        names.extend(above[..unseen].iter().rev().map(|id| (*id).to_owned()));
        names.push(self.root.clone());
        names.reverse();
        names
    }
}

#[cfg(test)]
mod tests;
