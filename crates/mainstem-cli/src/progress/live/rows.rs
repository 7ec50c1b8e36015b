//! Which agents the tree shows, and in what order: each below its parent. Pure.

use std::{collections::HashMap, ptr};

use mainstem::message::SessionId;
use mainstem_event::{FleetState, Outcome, fleet::AgentState};

/// The deepest level that is shown.
const DEEPEST: usize = 32;

/// A place in the tree.
#[derive(Debug)]
pub(super) enum Place<'a> {
    Agent {
        agent: &'a AgentState,
        depth: usize,
    },
    /// Agents that have ended well, with all below them.
    Ended {
        count: usize,
        depth: usize,
    },
}

/// Returns the agents in the order of the tree. If there are more than `most`, those that have
/// ended well are folded, for each parent.
pub(super) fn places(fleet: &FleetState, most: usize) -> Vec<Place<'_>> {
    let forest = Forest::of(fleet);
    let mut places = Vec::new();
    let is_folded = fleet.agents.len() > most;
    forest.tops.iter().for_each(|agent| forest.add(agent, 0, is_folded, &mut places));
    places
}

struct Forest<'a> {
    root_session: Option<&'a SessionId>,
    /// The root, and agents whose parent is not shown.
    tops: Vec<&'a AgentState>,
    children: HashMap<&'a SessionId, Vec<&'a AgentState>>,
    /// The agent of each session.
    known: HashMap<&'a SessionId, &'a AgentState>,
}

impl<'a> Forest<'a> {
    fn of(fleet: &'a FleetState) -> Self {
        let root_session = fleet.root().and(fleet.session_id.as_ref());
        let (children, known) = (HashMap::new(), HashMap::new());
        let mut forest = Self { root_session, tops: Vec::new(), children, known };
        forest.known =
            fleet.agents.iter().filter_map(|agent| Some((forest.session(agent)?, agent))).collect();
        for agent in &fleet.agents {
            let parent = agent.source.as_ref().map(|source| &source.parent_session_id);
            match parent.filter(|parent| forest.known.contains_key(parent)) {
                Some(parent) => forest.children.entry(parent).or_default().push(agent),
                None => forest.tops.push(agent),
            }
        }
        forest
    }

    fn session(&self, agent: &'a AgentState) -> Option<&'a SessionId> {
        agent.source.as_ref().map(|source| &source.session_id).or(self.root_session)
    }

    fn children(&self, agent: &'a AgentState) -> &[&'a AgentState] {
        // A damaged record may have two agents of one session; each child has one parent.
        let is_known = |session: &&SessionId| self.known.get(session).is_some_and(|one| ptr::eq(*one, agent));
        let session = self.session(agent).filter(is_known);
        session.and_then(|session| self.children.get(session)).map_or(&[], Vec::as_slice)
    }

    fn add(&self, agent: &'a AgentState, depth: usize, is_folded: bool, places: &mut Vec<Place<'a>>) {
        places.push(Place::Agent { agent, depth });
        if depth == DEEPEST {
            return;
        }
        let mut ended = 0;
        for child in self.children(agent) {
            match self.ended(child, depth + 1).filter(|_| is_folded) {
                Some(count) => ended += count,
                None => self.add(child, depth + 1, is_folded, places),
            }
        }
        if ended > 0 {
            places.push(Place::Ended { count: ended, depth: depth + 1 });
        }
    }

    /// Returns the number of agents from this one down, if all have ended well.
    fn ended(&self, agent: &'a AgentState, depth: usize) -> Option<usize> {
        if agent.outcome != Some(Outcome::Success) || depth > DEEPEST {
            return None;
        }
        let mut count = 1;
        for child in self.children(agent) {
            count += self.ended(child, depth + 1)?;
        }
        Some(count)
    }
}
