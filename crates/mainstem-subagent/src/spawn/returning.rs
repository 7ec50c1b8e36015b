//! Children of an earlier process, as the record of their session tells of them: who can be sent to
//! again, and what became of the calls that waited for them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use mainstem_event::{AgentEvent, EventKind, EventSource, Outcome, RunSettings, Timestamp};
use mainstem_message::{AgentKey, Failure, Message, RunId, SessionId, ToolCallId, ToolState};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::{
    catalog::CatalogEntry,
    crew::Crew,
    fleet::Fleet,
    spawn::{
        lineage::Lineage,
        report::Report,
        roster::{Carried, Return},
    },
};

/// The tools by which children are begun and sent to.
const ABOUT_CHILDREN: [&str; 3] = ["agent_spawn", "agent_fanout", "agent_send"];

/// What a session's events tell of its children, taken in one by one.
#[derive(Debug, Default)]
pub struct Returning {
    /// In the order of their start; those that were closed are `None`.
    children: Vec<Option<Child>>,
    places: HashMap<AgentKey, usize>,
    /// The declarations that children were spawned as, by version.
    specs: BTreeMap<Arc<str>, Arc<Value>>,
    /// What the callers of runs have set, as far as it was anything.
    settings: HashMap<RunId, Arc<RunSettings>>,
    /// Calls under way in which children are begun or sent to.
    calls: HashMap<(SessionId, ToolCallId), Call>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Child {
    /// Of its latest turn.
    source: EventSource,
    /// What it was spawned as.
    version: Arc<str>,
    /// What the run had that spawned it.
    #[serde(default)]
    settings: Option<Arc<RunSettings>>,
    history: Vec<Arc<Message>>,
    last_activity: Timestamp,
}

#[derive(Debug)]
struct Call {
    input: Value,
    /// Of children that have ended.
    reports: Vec<Report>,
}

/// The children of a session between its turns, and the specs that they were spawned as. No call
/// and no run is open then.
#[derive(Serialize)]
struct Quiet<'a> {
    children: Vec<&'a Child>,
    specs: BTreeMap<&'a str, &'a Value>,
}

#[derive(Deserialize)]
struct Known {
    children: Vec<Child>,
    specs: BTreeMap<Arc<str>, Arc<Value>>,
}

impl Serialize for Returning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let children: Vec<_> = self.children.iter().flatten().collect();
        Quiet { children, specs: self.specs_in_use() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Returning {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Known { children, specs } = Known::deserialize(deserializer)?;
        let places =
            children.iter().enumerate().map(|(place, child)| (child.source.agent_key.clone(), place));
        let places = places.collect();
        let children = children.into_iter().map(Some).collect();
        Ok(Self { children, places, specs, ..Self::default() })
    }
}

impl Returning {
    fn specs_in_use(&self) -> BTreeMap<&str, &Value> {
        let children = self.children.iter().flatten();
        let spec = |child: &'_ Child| self.specs.get_key_value(&child.version);
        children.filter_map(spec).map(|(version, spec)| (&**version, &**spec)).collect()
    }

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
            EventKind::ToolResultStart { tool_call_id, tool_call_name, input }
                if ABOUT_CHILDREN.contains(&&**tool_call_name) =>
            {
                let call = Call { input: input.clone(), reports: Vec::new() };
                self.calls.insert((session(event).clone(), tool_call_id.clone()), call);
            }
            EventKind::ToolResultEnd { tool_call_id, .. } => {
                self.calls.remove(&(session(event).clone(), tool_call_id.clone()));
            }
            EventKind::AgentClosed { agent_key } => {
                if let Some(child) = self.places.get(agent_key).and_then(|at| self.children.get_mut(*at)) {
                    *child = None;
                }
            }
            EventKind::StateCheckpoint { agent_key, messages } => {
                if let Some(Some(child)) =
                    self.places.get(agent_key).and_then(|at| self.children.get_mut(*at))
                {
                    child.history.clone_from(messages);
                }
            }
            _ => {}
        }
    }

    /// A turn begins. An agent without a version, such as one that is a tool, can't be sent to.
    fn start(&mut self, event: &AgentEvent, version: Option<&Arc<str>>) {
        let Some(source) = event.source() else { return };
        let key = source.agent_key.clone();
        if let Some(place) = self.places.get(&key) {
            if let Some(Some(child)) = self.children.get_mut(*place) {
                child.source = source.clone();
            }
            return;
        }
        let Some(version) = version.cloned() else { return };
        let settings = event.run_id().and_then(|run| self.settings.get(run)).cloned();
        let (source, history) = (source.clone(), Vec::new());
        self.places.insert(key, self.children.len());
        self.children.push(Some(Child { source, version, settings, history, last_activity: event.at }));
    }

    /// An invocation of a child has ended, in which this was said.
    pub fn end(
        &mut self,
        source: &EventSource,
        said: &[Arc<Message>],
        now: Timestamp,
        outcome: Outcome,
        error: Option<&Failure>,
    ) {
        if let Some(Some(child)) =
            self.places.get(&source.agent_key).and_then(|at| self.children.get_mut(*at))
        {
            child.history.extend_from_slice(said);
            child.last_activity = now;
        }
        let Some(id) = &source.parent_tool_call_id else { return };
        let call = self.calls.get_mut(&(source.parent_session_id.clone(), id.clone()));
        let answer = said.iter().rev().find(|message| message.role == mainstem_message::Role::Assistant);
        let report = || Report::recorded(source, outcome, answer.map(Arc::as_ref), error);
        call.into_iter().for_each(|call| call.reports.push(report()));
    }

    /// What closes a call that was cut says what its children had come to: nobody has to ask them
    /// again.
    pub fn amend(&self, session: &SessionId, closing: &mut EventKind) {
        let (EventKind::ToolResultTextDelta { tool_call_id, .. }
        | EventKind::ToolResultEnd { tool_call_id, .. }) = closing
        else {
            return;
        };
        let Some(call) = self.calls.get(&(session.clone(), tool_call_id.clone())) else { return };
        if call.reports.is_empty() {
            return;
        }
        match closing {
            EventKind::ToolResultTextDelta { delta, .. } => *delta = call.text(),
            EventKind::ToolResultEnd { state, .. } => *state = call.state(),
            _ => {}
        }
    }
}

impl Call {
    fn text(&self) -> String {
        self.reports.iter().map(Report::text).collect::<Vec<_>>().join("\n\n")
    }

    /// Complete only if every child of the call has ended by itself.
    fn state(&self) -> ToolState {
        let wanted = self.input.get("spawns").and_then(Value::as_array).map_or(1, Vec::len);
        let cut = self.reports.iter().any(|report| report.state() == ToolState::Interrupted);
        if cut || self.reports.len() < wanted {
            return ToolState::Interrupted;
        }
        let failed = self.reports.iter().any(|report| report.state() == ToolState::Error);
        if failed { ToolState::Error } else { ToolState::Success }
    }
}

impl Fleet {
    /// Restores the children of an earlier process as idle, each with the spec that it was spawned
    /// as. Sending to a child whose spec can't be built fails with the reason.
    pub fn take_back(&self, crew: &Crew, returning: Returning) {
        let mut lineages = HashMap::<SessionId, Arc<Lineage>>::new();
        let mut entries = HashMap::<Arc<str>, Option<CatalogEntry>>::new();
        let Returning { children, specs, .. } = returning;
        for Child { source, version, settings, history, last_activity } in children.into_iter().flatten() {
            let recorded = specs.get(&version).map(Arc::as_ref);
            let entry = || crew.spawned_as(&source.agent_id, &version, recorded);
            let Some(entry) = entries.entry(version.clone()).or_insert_with(entry).clone() else {
                self.roster.miss(&source);
                continue;
            };
            let above = lineages.get(&source.parent_session_id).cloned();
            let lineage = Lineage::new(entry, above);
            lineages.insert(source.session_id.clone(), lineage.clone());
            let carried = settings.as_deref().map_or_else(Carried::default, Carried::from);
            let label = source.label.as_deref().map(str::to_owned);
            self.roster.take_back(Return { lineage, source, label, carried, history, last_activity });
        }
    }
}

/// The session of the agent whose event it is.
fn session(event: &AgentEvent) -> &SessionId {
    event.origin.source.as_ref().map_or(&event.origin.session_id, |source| &source.session_id)
}
