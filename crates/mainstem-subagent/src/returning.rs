//! Children of an earlier process, as the record of their session tells of them: who can be sent to again, and what became of the calls
//! that waited for them.

use std::{collections::HashMap, sync::Arc};

use mainstem_event::{AgentEvent, EventKind, EventSource, Outcome, Timestamp};
use mainstem_message::{AgentKey, Failure, Message, SessionId, ToolCallId, ToolState};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::{Carried, Crew, Fleet, lineage::Lineage, report::Report, roster::Return};

/// The tools by which children are begun, sent to and closed.
const ABOUT_CHILDREN: [&str; 4] = ["agent_spawn", "agent_fanout", "agent_send", "agent_close"];

/// What a session's events tell of its children, taken in one by one.
#[derive(Debug, Default)]
pub struct Returning {
    /// In the order of their start; those that were closed are `None`.
    children: Vec<Option<Child>>,
    places: HashMap<AgentKey, usize>,
    /// Calls under way in which children are begun, sent to or closed.
    calls: HashMap<(SessionId, ToolCallId), Call>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Child {
    /// Of its latest turn.
    source: EventSource,
    history: Vec<Arc<Message>>,
    last_activity: Timestamp,
}

#[derive(Debug)]
struct Call {
    input: Value,
    /// Of children that have ended.
    reports: Vec<Report>,
}

/// Between its turns: who there is. Of calls under way there are none then.
impl Serialize for Returning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.children.iter().flatten())
    }
}

impl<'de> Deserialize<'de> for Returning {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let children = Vec::<Child>::deserialize(deserializer)?;
        let places =
            children.iter().enumerate().map(|(place, child)| (child.source.agent_key.clone(), place));
        let places = places.collect();
        let children = children.into_iter().map(Some).collect();
        Ok(Self { children, places, calls: HashMap::new() })
    }
}

impl Returning {
    /// Takes in the next event of the session.
    pub fn apply(&mut self, event: &AgentEvent) {
        match &event.kind {
            EventKind::AgentStart { .. } => {
                if let Some(source) = &event.origin.source {
                    self.start(source, event.at);
                }
            }
            EventKind::ToolResultStart { tool_call_id, tool_call_name, input }
                if ABOUT_CHILDREN.contains(&&**tool_call_name) =>
            {
                let call = Call { input: input.clone(), reports: Vec::new() };
                self.calls.insert((session(event).clone(), tool_call_id.clone()), call);
            }
            EventKind::ToolResultEnd { tool_call_id, tool_call_name, state, .. } => {
                let call = self.calls.remove(&(session(event).clone(), tool_call_id.clone()));
                if let Some(call) = call
                    && &**tool_call_name == "agent_close"
                    && *state == ToolState::Success
                {
                    self.close(&call.input);
                }
            }
            _ => {}
        }
    }

    /// A turn begins. What has agents below it in another way, such as an agent that is a tool, can't be sent to, then or now.
    fn start(&mut self, source: &EventSource, now: Timestamp) {
        let key = source.agent_key.clone();
        if let Some(place) = self.places.get(&key) {
            if let Some(Some(child)) = self.children.get_mut(*place) {
                child.source = source.clone();
            }
            return;
        }
        let Some(id) = &source.parent_tool_call_id else { return };
        if !self.calls.contains_key(&(source.parent_session_id.clone(), id.clone())) {
            return;
        }
        let child = Child { source: source.clone(), history: Vec::new(), last_activity: now };
        self.places.insert(key, self.children.len());
        self.children.push(Some(child));
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

    /// What closes a call that was cut says what its children had come to: nobody has to ask them again.
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

    fn close(&mut self, input: &Value) {
        let says = |name: &str| input.get(name).and_then(Value::as_str);
        let (key, label) = (says("agent_key"), says("label").map(str::to_lowercase));
        let is_meant = |child: &Child| {
            let same = child.source.label.as_ref().map(|label| label.to_lowercase());
            key.is_some_and(|key| child.source.agent_key.as_str() == key)
                || (label.is_some() && same == label)
        };
        for child in self.children.iter_mut().filter(|child| child.as_ref().is_some_and(is_meant)) {
            *child = None;
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
    /// Takes back the children of an earlier process, which are idle then. One whose agent this crew does not have can't be sent to, and
    /// whoever tries is told why.
    pub fn take_back(&self, crew: &Crew, returning: Returning) {
        let mut lineages = HashMap::<SessionId, Arc<Lineage>>::new();
        for Child { source, history, last_activity } in returning.children.into_iter().flatten() {
            let Some(entry) = crew.catalog.get(&source.agent_id) else {
                self.roster.miss(&source);
                continue;
            };
            let above = lineages.get(&source.parent_session_id).cloned();
            let lineage = Lineage::new(entry.clone(), above);
            lineages.insert(source.session_id.clone(), lineage.clone());
            let (carried, label) = (Carried::default(), source.label.as_deref().map(str::to_owned));
            self.roster.take_back(Return { lineage, source, label, carried, history, last_activity });
        }
    }
}

/// The session of the agent whose event it is.
fn session(event: &AgentEvent) -> &SessionId {
    event.origin.source.as_ref().map_or(&event.origin.session_id, |source| &source.session_id)
}
