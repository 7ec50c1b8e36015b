//! The state that an agent and its frontend share: the frontend's own, and `fleet`.

use mainstem_event::{AgentEvent, AgentState, FleetState};
use serde_json::{Map, Value, json};

use super::wire::Patch;

/// The member of the state that is ours; the rest is the frontend's, and is returned as it came.
pub const FLEET: &str = "fleet";

/// The key of the root among the agents.
const ROOT: &str = "root";

/// The state as it was last sent, and the fleet behind it.
#[derive(Debug)]
pub(super) struct SharedState {
    document: Map<String, Value>,
    fleet: FleetState,
}

impl SharedState {
    /// Creates the state of a frontend that sent `theirs`. What is not an object becomes the member
    /// `client`.
    pub(super) fn new(theirs: Value, fleet: FleetState, seq: u64) -> Self {
        let mut document = match theirs {
            Value::Object(members) => members,
            Value::Null => Map::new(),
            other => Map::from_iter([("client".to_owned(), other)]),
        };
        let agents: Map<_, _> =
            fleet.agents.iter().map(|agent| (key(agent).to_owned(), described(agent))).collect();
        let mut ours = Map::from_iter([("seq".to_owned(), seq.into()), ("agents".to_owned(), agents.into())]);
        ours.extend(parts(&fleet).map(|(name, value)| (name.to_owned(), value)));
        document.insert(FLEET.to_owned(), ours.into());
        Self { document, fleet }
    }

    /// Returns the whole state.
    pub(super) fn snapshot(&self) -> Value {
        Value::Object(self.document.clone())
    }

    /// Applies an event without comparing, for one that is not shown.
    pub(super) fn skip(&mut self, event: &AgentEvent) {
        self.fleet.apply(event);
        self.put("seq", event.seq.into());
    }

    /// Applies an event; returns how the state changed, but for the number of the latest event.
    pub(super) fn apply(&mut self, event: &AgentEvent) -> Vec<Patch> {
        self.skip(event);
        // The text of an agent is in its messages already.
        if !event.kind.is_lifecycle() {
            return Vec::new();
        }
        let agent = self.fleet.agents.iter().find(|agent| agent.key() == event.agent_key());
        let agent = agent
            .filter(|_| event.reply_id().is_some())
            .map(|agent| (key(agent).to_owned(), described(agent)));
        let mut patches: Vec<_> =
            agent.into_iter().filter_map(|(key, value)| self.put_agent(&key, value)).collect();
        let parts: Vec<_> = parts(&self.fleet).collect();
        patches.extend(parts.into_iter().filter_map(|(name, value)| self.put(name, value)));
        if !patches.is_empty() {
            patches.push(self.position());
        }
        patches
    }

    /// Returns the number of the latest event, as a change of the state.
    pub(super) fn position(&self) -> Patch {
        let seq = self.document.get(FLEET).and_then(|fleet| fleet.get("seq")).cloned();
        Patch::add(format!("/{FLEET}/seq"), seq.unwrap_or_default())
    }

    fn put(&mut self, name: &str, value: Value) -> Option<Patch> {
        let member = self.document.get_mut(FLEET)?.as_object_mut()?.entry(name).or_insert(Value::Null);
        replace(member, value).map(|value| Patch::add(format!("/{FLEET}/{name}"), value))
    }

    fn put_agent(&mut self, key: &str, value: Value) -> Option<Patch> {
        let member = self
            .document
            .get_mut(FLEET)?
            .get_mut("agents")?
            .as_object_mut()?
            .entry(key)
            .or_insert(Value::Null);
        let escaped = key.replace('~', "~0").replace('/', "~1");
        replace(member, value).map(|value| Patch::add(format!("/{FLEET}/agents/{escaped}"), value))
    }
}

/// Replaces a value; returns the new one if it differs.
fn replace(member: &mut Value, value: Value) -> Option<Value> {
    if *member == value {
        return None;
    }
    member.clone_from(&value);
    Some(value)
}

fn key(agent: &AgentState) -> &str {
    agent.key().map_or(ROOT, |key| key.as_str())
}

/// Returns an agent without the arguments of its tools, which its calls have.
fn described(agent: &AgentState) -> Value {
    let mut value = json!(agent);
    if let Some(tools) = value.get_mut("tools").and_then(Value::as_array_mut) {
        tools.iter_mut().filter_map(Value::as_object_mut).for_each(|tool| drop(tool.remove("input")));
    }
    value
}

fn parts(fleet: &FleetState) -> impl Iterator<Item = (&'static str, Value)> {
    let FleetState { tasks, confirmations, usage, plan_mode, missed, .. } = fleet;
    let parts = [
        ("tasks", json!(tasks)),
        ("confirmations", json!(confirmations)),
        ("usage", json!(usage)),
        ("planMode", json!(plan_mode)),
        ("missed", json!(missed)),
    ];
    parts.into_iter()
}
