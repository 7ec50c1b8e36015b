//! The children of a session as its events tell of them. Pure: a fold, from which an opened session
//! restores its roster.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use mainstem_event::{AgentEvent, EventKind, Outcome, RunSettings, fold::Transcript};
use mainstem_message::{AgentKey, Failure, Message, ReplyId, RunId, SessionId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::spawn::{
    report::{RESTARTED, Report},
    roster::{open_calls::OpenCalls, record::ChildRecord},
};

/// The children of a session, a fold of its events: which can be sent to, with what they were
/// spawned as and what was said; and what the open calls of their parents have come to.
///
/// It is serialized between turns of the session, when neither turns nor calls are open.
#[derive(Debug, Default)]
pub struct RecordedRoster {
    /// In the order of their start; those that were closed are `None`.
    children: Vec<Option<RecordedChild>>,
    places: HashMap<AgentKey, usize>,
    /// The declarations that children were spawned as, by version.
    specs: BTreeMap<Arc<str>, Arc<Value>>,
    /// What the callers of runs have set, for runs with settings.
    settings: HashMap<RunId, Arc<RunSettings>>,
    /// The turns that are running, each with its child.
    turns: HashMap<ReplyId, (AgentKey, Transcript)>,
    calls: OpenCalls,
    /// The children whose turns were cut off, by the sessions of their parents, which have not gone
    /// on since.
    lost: HashMap<SessionId, Vec<AgentKey>>,
}

/// A child that can be sent to.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RecordedChild {
    pub(crate) record: ChildRecord,
    /// The version of the declaration that it was spawned as.
    pub(crate) version: Arc<str>,
    /// The settings of the run that spawned it.
    #[serde(default)]
    pub(crate) settings: Option<Arc<RunSettings>>,
}

impl RecordedRoster {
    /// Takes in the next event of the session.
    pub fn apply(&mut self, event: &AgentEvent) {
        match &event.kind {
            EventKind::AgentStart { settings, spec_version, spec, .. } => {
                if let (Some(run), Some(settings)) = (event.run_id(), settings) {
                    self.settings.insert(run.clone(), settings.clone());
                }
                if let (Some(version), Some(spec)) = (spec_version, spec) {
                    self.specs.insert(version.clone(), spec.clone());
                }
                self.start(event, spec_version.as_ref());
            }
            EventKind::ToolResultStart { tool_call_id, input, .. } => {
                self.calls.open(session(event), tool_call_id, input);
            }
            EventKind::ModelCallStart { purpose: None, .. } => self.go_on(session(event)),
            EventKind::AgentClosed { agent_key } => self.close(agent_key),
            EventKind::StateCheckpoint { agent_key, messages, .. } => self.replace(agent_key, messages),
            _ => {}
        }
        if let Some((_, turn)) = event.reply_id().and_then(|reply| self.turns.get_mut(reply)) {
            turn.apply(&event.kind);
        }
        match &event.kind {
            EventKind::ToolResultEnd { tool_call_id, .. } => self.calls.close(session(event), tool_call_id),
            EventKind::AgentEnd { outcome, error, .. } => self.end(event, *outcome, error.as_ref()),
            _ => {}
        }
    }

    /// Changes an event that closes a call which was cut: the reports of the call's children become
    /// its result.
    pub fn amend(&self, session: &SessionId, closing: &mut EventKind) {
        self.calls.amend(session, closing);
    }

    /// Returns what a child was spawned as: its agent's id, the version and the declaration.
    pub(crate) fn spawned_as(&self, key: &AgentKey) -> Option<(&str, &str, Option<&Value>)> {
        let child = self.places.get(key).and_then(|place| self.children.get(*place)?.as_ref())?;
        let spec = self.specs.get(&child.version).map(Arc::as_ref);
        Some((&child.record.source.agent_id, &child.version, spec))
    }

    /// Returns the children in the order of their start, and the declarations by version.
    pub(crate) fn into_parts(self) -> (impl Iterator<Item = RecordedChild>, BTreeMap<Arc<str>, Arc<Value>>) {
        (self.children.into_iter().flatten(), self.specs)
    }

    /// A turn starts. A child without a version, such as an agent that is a tool, can't be sent to.
    fn start(&mut self, event: &AgentEvent, version: Option<&Arc<str>>) {
        let (Some(source), Some(reply)) = (event.source(), event.reply_id()) else { return };
        if let Some(place) = self.places.get(&source.agent_key) {
            let Some(Some(child)) = self.children.get_mut(*place) else { return };
            child.record.start(source.clone(), event.at);
        } else {
            let Some(version) = version.cloned() else { return };
            let settings = event.run_id().and_then(|run| self.settings.get(run)).cloned();
            let record = ChildRecord::new(source.clone(), event.at);
            self.places.insert(source.agent_key.clone(), self.children.len());
            self.children.push(Some(RecordedChild { record, version, settings }));
        }
        let turn = (source.agent_key.clone(), Transcript::new(reply.clone()));
        self.turns.insert(reply.clone(), turn);
    }

    /// A turn ends: what was said is remembered, and reported to the call that waits for it.
    fn end(&mut self, event: &AgentEvent, outcome: Outcome, error: Option<&Failure>) {
        let turn = event.reply_id().and_then(|reply| self.turns.remove(reply));
        let (Some(source), Some((_, turn))) = (event.source(), turn) else { return };
        if let Some(child) = self.child(&source.agent_key) {
            let is_lost = error.is_some_and(|error| error.code == RESTARTED);
            child.record.end(turn.messages(), event.at);
            child.record.set_lost(is_lost);
            if is_lost {
                let lost = self.lost.entry(source.parent_session_id.clone()).or_default();
                lost.push(source.agent_key.clone());
            }
        }
        self.calls.report(source, || Report::recorded(source, outcome, turn.messages(), error));
    }

    /// An agent goes on: those of its children that were cut off have begun another turn by now, or
    /// it has been told that they don't.
    fn go_on(&mut self, parent: &SessionId) {
        for key in self.lost.remove(parent).into_iter().flatten() {
            if let Some(child) = self.child(&key) {
                child.record.is_lost = false;
            }
        }
    }

    fn close(&mut self, key: &AgentKey) {
        if let Some(child) = self.places.get(key).and_then(|place| self.children.get_mut(*place)) {
            *child = None;
        }
    }

    /// A checkpoint replaces a child's conversation before it, also that of its present turn.
    fn replace(&mut self, key: &AgentKey, messages: &[Arc<Message>]) {
        let Some(child) = self.child(key) else { return };
        child.record.replace(messages);
        let turns = self.turns.values_mut().filter(|(agent, _)| agent == key);
        turns.for_each(|(_, turn)| turn.forget());
    }

    fn child(&mut self, key: &AgentKey) -> Option<&mut RecordedChild> {
        self.places.get(key).and_then(|place| self.children.get_mut(*place))?.as_mut()
    }

    fn specs_in_use(&self) -> BTreeMap<&str, &Value> {
        let children = self.children.iter().flatten();
        let spec = |child: &'_ RecordedChild| self.specs.get_key_value(&child.version);
        children.filter_map(spec).map(|(version, spec)| (&**version, &**spec)).collect()
    }
}

/// The serialized form, with the declarations of the children that it has.
#[derive(Serialize)]
struct Written<'a> {
    children: Vec<&'a RecordedChild>,
    specs: BTreeMap<&'a str, &'a Value>,
}

#[derive(Deserialize)]
struct Read {
    children: Vec<RecordedChild>,
    specs: BTreeMap<Arc<str>, Arc<Value>>,
}

impl Serialize for RecordedRoster {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let children: Vec<_> = self.children.iter().flatten().collect();
        Written { children, specs: self.specs_in_use() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RecordedRoster {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Read { children, specs } = Read::deserialize(deserializer)?;
        let keys = children.iter().map(|child| child.record.source.agent_key.clone());
        let places = keys.enumerate().map(|(place, key)| (key, place)).collect();
        let mut lost = HashMap::<_, Vec<_>>::new();
        for RecordedChild { record, .. } in children.iter().filter(|child| child.record.is_lost) {
            let keys = lost.entry(record.source.parent_session_id.clone()).or_default();
            keys.push(record.source.agent_key.clone());
        }
        let children = children.into_iter().map(Some).collect();
        Ok(Self { children, places, specs, lost, ..Self::default() })
    }
}

/// Returns the session of the agent that emitted the event.
fn session(event: &AgentEvent) -> &SessionId {
    event.source().map_or(&event.origin.session_id, |source| &source.session_id)
}

#[cfg(test)]
mod tests;
