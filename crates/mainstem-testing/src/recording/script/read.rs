//! Reads a record from its first event to its last.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use mainstem_event::{
    AgentEvent, ConfirmResult, Decision, EventKind, Outcome, RunSettings, SendMode, Timestamp,
};
use mainstem_message::{ContentBlock, Failure, Message, Opaque, StopReason, ToolCallId, ToolState, Usage};
use mainstem_model::ModelDelta;
use serde_json::Value;

use super::{Act, Answer, Caller, Ending, Found, ROOT, Script, key_of};
use crate::recording::{RecordingError, schedule::Schedule};

/// The outcome of a run whose process ended.
const RESTARTED: &str = "restarted";

pub(super) fn read(events: Vec<AgentEvent>) -> Result<Script, RecordingError> {
    let first = events.first().ok_or(RecordingError::Empty)?.at;
    let mut reader = Reader::new(first);
    for event in &events {
        reader.read(event).map_err(|what| RecordingError::Unplayable { seq: event.seq, what })?;
    }
    let mut script = reader.script;
    if script.root.is_empty() {
        return Err(RecordingError::Empty);
    }
    script.end = Duration::from_millis(events.last().map_or(0, |last| last.at.millis_since(first)));
    script.end = script.end.max(reader.schedule.next(first));
    script.events = events;
    Ok(script)
}

struct Reader {
    script: Script,
    schedule: Schedule,
    /// The answers that have begun.
    open: HashMap<String, Open>,
    /// The tool calls so far, with their tools.
    calls: HashMap<ToolCallId, Arc<str>>,
    /// The results that have begun.
    found: HashMap<Caller, Found>,
    /// The arguments that a person was asked about.
    asked: HashMap<Caller, String>,
    /// The inputs of the running `agent_send` calls.
    sending: HashMap<Caller, Value>,
    /// When the present cancel began.
    cancelled_at: Option<Timestamp>,
}

/// An answer that has begun.
#[derive(Default)]
struct Open {
    answer: Answer,
    slots: HashMap<ToolCallId, usize>,
    /// Where the open block begins.
    block: usize,
    /// The calls that are taken back.
    discarded: HashSet<usize>,
}

impl Reader {
    fn new(first: Timestamp) -> Self {
        Self {
            script: Script::default(),
            schedule: Schedule::new(first),
            open: HashMap::new(),
            calls: HashMap::new(),
            found: HashMap::new(),
            asked: HashMap::new(),
            sending: HashMap::new(),
            cancelled_at: None,
        }
    }

    /// Reads an event; an error says what can't be played.
    fn read(&mut self, event: &AgentEvent) -> Result<(), String> {
        use EventKind as Kind;
        let key = || key_of(event).to_owned();
        match &event.kind {
            Kind::AgentStart { .. } => self.start(event)?,
            Kind::AgentEnd { outcome, error, .. } => self.end(event, *outcome, error.as_ref())?,
            Kind::ModelCallStart { purpose: Some(_), .. } | Kind::StateCheckpoint { .. } => {
                return Err("the conversation was compacted, and the record does not have the summary".into());
            }
            Kind::ModelCallStart { .. } => _ = self.open.insert(key(), Open::default()),
            Kind::ModelCallEnd { usage, stop_reason, .. } => {
                self.answered(event, *usage, stop_reason);
            }
            Kind::ModelRetry { .. } | Kind::ModelFallback { .. } => {
                _ = self.open.insert(key(), Open::default())
            }
            Kind::RequireUserConfirm { .. } | Kind::UserConfirmResult { .. } => self.approval(event),
            Kind::RequireExternalExecution { tool_calls, .. } => {
                self.script.external.extend(tool_calls.iter().map(|call| call.name.as_str().into()));
            }
            Kind::ExternalExecutionResult { tool_results } => {
                for result in tool_results {
                    let (content, state) = (result.content.clone(), result.state);
                    self.act(event.at, Act::Submit { call: result.tool_call_id.clone(), content, state });
                }
            }
            Kind::ToolResultStart { .. }
            | Kind::ToolResultTextDelta { .. }
            | Kind::ToolResultDataDelta { .. }
            | Kind::ToolResultEnd { .. } => self.result(event),
            Kind::ExceedMaxIters { max_iters, .. } => match event.source() {
                None => self.script.max_iterations = Some(*max_iters),
                Some(source) => {
                    let agent = self.script.agents.entry(source.agent_id.clone()).or_default();
                    agent.max_iterations = Some(*max_iters);
                }
            },
            Kind::TaskUpdated { task_id, .. } => _ = self.script.ids.insert(task_id.to_string()),
            Kind::MessageSent { agent_key, message, mode, .. } => {
                let text = message.text();
                if !self.is_sent_by_agent(&text) {
                    self.act(event.at, Act::Send { to: agent_key.clone(), text, mode: *mode });
                }
            }
            Kind::PlanModeChanged { .. } => return Err("plan mode".into()),
            Kind::Gap { .. } => return Err("events are missing".into()),
            Kind::Unknown { .. } => return Err("it is of a later version".into()),
            _ => self.content(event),
        }
        Ok(())
    }

    fn start(&mut self, event: &AgentEvent) -> Result<(), String> {
        let EventKind::AgentStart { input, parent_tool_call_id, settings, spec, .. } = &event.kind else {
            return Ok(());
        };
        let Some(source) = event.source() else { return self.run(event, input, settings.clone()) };
        self.script.ids.insert(source.agent_key.to_string());
        self.script.sessions.insert(source.agent_key.to_string(), source.session_id.to_string());
        self.script.ids.extend(source.task_id.iter().map(ToString::to_string));
        let agent = self.script.agents.entry(source.agent_id.clone()).or_default();
        if spec.is_some() {
            agent.spec.clone_from(spec);
        }
        match parent_tool_call_id.as_ref().map(|call| self.calls.get(call)) {
            Some(Some(tool)) if *tool == source.agent_id => {
                self.script.agent_tools.insert(source.agent_id.clone());
            }
            None if source.turn > 1 => {
                let text = input.last().map(|message| message.text()).unwrap_or_default();
                let to = source.agent_key.clone();
                self.act(event.at, Act::Send { to, text, mode: SendMode::Queue });
            }
            _ => {}
        }
        Ok(())
    }

    fn run(
        &mut self,
        event: &AgentEvent,
        input: &[Arc<Message>],
        settings: Option<Arc<RunSettings>>,
    ) -> Result<(), String> {
        let root = event.agent_id();
        if !self.script.root.is_empty() && *self.script.root != *root {
            return Err(format!("another agent, {root}, leads this run"));
        }
        self.script.root = root.into();
        if settings.as_ref().is_some_and(|settings| settings.compacts) {
            return Err("the run only compacts the conversation".into());
        }
        let [input] = input else {
            return Err("the turn began without an input, as after a restart or the end of a task".into());
        };
        self.act(event.at, Act::Run { input: input.clone(), settings });
        Ok(())
    }

    fn end(&mut self, event: &AgentEvent, outcome: Outcome, error: Option<&Failure>) -> Result<(), String> {
        let key = key_of(event);
        let last = self.script.answers.get_mut(key).and_then(|answers| answers.last_mut());
        if let Some(Ending::Failed(_, failure @ None)) = last.map(|answer| &mut answer.ending) {
            *failure = error.cloned();
        }
        let code = error.map(|error| error.code.as_str());
        if code == Some(RESTARTED) {
            return Err("its process had ended".into());
        }
        if outcome != Outcome::Cancelled {
            self.script.cancelled.remove(key);
            return Ok(());
        }
        self.script.cancelled.insert(key.to_owned());
        let message = error.map(|error| error.message.as_str()).unwrap_or_default();
        let by_user = message.strip_prefix("cancelled by the user");
        let at = *self.cancelled_at.get_or_insert(event.at);
        match (code, by_user) {
            (Some("cancelled_by_user"), Some(how)) if event.is_root() => {
                let how = how.strip_prefix(" (").and_then(|how| how.strip_suffix(')')).map(str::to_owned);
                self.act(at, Act::Cancel { key: ROOT.to_owned(), how });
            }
            (Some("agent_cancelled"), Some(rest))
                if rest.contains(&format!("(agent `{}` and", event.agent_label())) =>
            {
                self.act(at, Act::Cancel { key: key.to_owned(), how: None });
            }
            (Some("task_cancelled"), Some(_)) => return Err("a person has cancelled its task".into()),
            _ if event.is_root() => return Err(format!("the run was {message}")),
            _ => {}
        }
        Ok(())
    }

    fn approval(&mut self, event: &AgentEvent) {
        let key = key_of(event).to_owned();
        match &event.kind {
            EventKind::RequireUserConfirm { tool_calls, rule, .. } => {
                for call in tool_calls {
                    self.asked.insert((key.clone(), call.id.clone()), call.arguments.clone());
                    match rule {
                        Some(rule) => self.script.asking.insert(rule.clone()),
                        None => self.script.changing.insert(call.name.as_str().into()),
                    };
                }
            }
            EventKind::UserConfirmResult { confirm_results, .. } => {
                for result in confirm_results {
                    let call = (key.clone(), result.tool_call.id.clone());
                    let decision = decision(result, self.asked.get(&call));
                    self.act(event.at, Act::Decide { call, decision });
                }
            }
            _ => {}
        }
    }

    fn content(&mut self, event: &AgentEvent) {
        let Some(open) = self.open.get_mut(key_of(event)) else { return };
        let Some(delta) = open.delta(&event.kind) else { return };
        open.answer.pieces.push((self.schedule.next(event.at), delta));
        self.cancelled_at = None;
        if let EventKind::ToolCallEnd { tool_call_id, tool_call_name, discarded: false, .. } = &event.kind {
            self.calls.insert(tool_call_id.clone(), tool_call_name.clone());
            self.script.tools.insert(tool_call_name.clone());
            if let Some(source) = event.source() {
                let agent = self.script.agents.entry(source.agent_id.clone()).or_default();
                agent.tools.insert(tool_call_name.clone());
            }
        }
    }

    fn answered(&mut self, event: &AgentEvent, usage: Option<Usage>, stop: &StopReason) {
        let Some(Open { mut answer, discarded, .. }) = self.open.remove(key_of(event)) else { return };
        answer.pieces.retain(|(_, delta)| slot_of(delta).is_none_or(|slot| !discarded.contains(&slot)));
        answer.pieces.extend(usage.map(|usage| (self.schedule.next(event.at), ModelDelta::Usage(usage))));
        match stop {
            StopReason::Cancelled => {
                answer.ending = Ending::Cancelled;
                self.cancelled_at.get_or_insert(event.at);
            }
            StopReason::Error => answer.ending = Ending::Failed(self.schedule.next(event.at), None),
            stop => answer.pieces.push((self.schedule.next(event.at), ModelDelta::Stop(stop.clone()))),
        }
        self.script.answers.entry(key_of(event).to_owned()).or_default().push(answer);
    }

    fn result(&mut self, event: &AgentEvent) {
        let key = key_of(event).to_owned();
        match &event.kind {
            EventKind::ToolResultStart { tool_call_id, tool_call_name, input, .. } => {
                let call = (key, tool_call_id.clone());
                if **tool_call_name == *"agent_send" {
                    self.sending.insert(call.clone(), input.clone());
                }
                let began = self.schedule.next(event.at);
                self.found_of(call).began = began;
            }
            EventKind::ToolResultTextDelta { tool_call_id, delta } => {
                let found = self.found_of((key, tool_call_id.clone()));
                match found.content.last_mut() {
                    Some(ContentBlock::Text { text, .. }) => text.push_str(delta),
                    _ => found.content.push(ContentBlock::text(delta.clone())),
                }
            }
            EventKind::ToolResultDataDelta { tool_call_id, data } => {
                self.found_of((key, tool_call_id.clone())).content.push((**data).clone());
            }
            EventKind::ToolResultEnd { tool_call_id, state, .. } => {
                let call = (key, tool_call_id.clone());
                self.sending.remove(&call);
                self.found_of(call.clone());
                let Some(mut found) = self.found.remove(&call) else { return };
                found.state = *state;
                found.was_asked = self.asked.contains_key(&call);
                if *state == ToolState::Interrupted {
                    self.cancelled_at.get_or_insert(event.at);
                } else {
                    found.at = self.schedule.next(event.at);
                    self.cancelled_at = None;
                }
                self.script.results.entry(call).or_default().push(found);
            }
            _ => {}
        }
    }

    fn found_of(&mut self, call: Caller) -> &mut Found {
        self.found.entry(call).or_insert_with(|| Found {
            began: Duration::ZERO,
            at: Duration::ZERO,
            content: Vec::new(),
            state: ToolState::Success,
            was_asked: false,
        })
    }

    fn is_sent_by_agent(&self, text: &str) -> bool {
        self.sending.values().any(|input| input.get("message").and_then(Value::as_str) == Some(text))
    }

    fn act(&mut self, at: Timestamp, act: Act) {
        self.script.acts.push((self.schedule.next(at), act));
        self.cancelled_at = None;
    }
}

impl Open {
    /// Returns what the model delivered for an event of its answer to be emitted.
    fn delta(&mut self, kind: &EventKind) -> Option<ModelDelta> {
        use EventKind as Kind;
        let end = |opaque: &Opaque| Some(ModelDelta::BlockEnd { opaque: opaque.clone() });
        match kind {
            Kind::TextBlockStart { .. } | Kind::ThinkingBlockStart { .. } => {
                self.block = self.answer.pieces.len();
                None
            }
            Kind::DataBlockStart { media_type, .. } => {
                self.block = self.answer.pieces.len();
                Some(ModelDelta::DataStart { media_type: media_type.clone() })
            }
            Kind::TextBlockDelta { delta, .. } => Some(ModelDelta::Text(delta.clone())),
            Kind::ThinkingBlockDelta { delta, .. } => Some(ModelDelta::Thinking(delta.clone())),
            Kind::DataBlockDelta { delta, .. } => Some(ModelDelta::Data(delta.clone())),
            Kind::TextBlockEnd { discarded: true, .. }
            | Kind::ThinkingBlockEnd { discarded: true, .. }
            | Kind::DataBlockEnd { discarded: true, .. } => {
                self.answer.pieces.truncate(self.block);
                None
            }
            Kind::TextBlockEnd { opaque, .. }
            | Kind::ThinkingBlockEnd { opaque, .. }
            | Kind::DataBlockEnd { opaque, .. } => end(opaque),
            Kind::ToolCallStart { tool_call_id, tool_call_name } => {
                let slot = self.slots.len();
                self.slots.insert(tool_call_id.clone(), slot);
                let (id, name) = (Some(tool_call_id.clone()), tool_call_name.to_string());
                Some(ModelDelta::CallStart { slot, id, name })
            }
            Kind::ToolCallDelta { tool_call_id, delta } => {
                let slot = *self.slots.get(tool_call_id)?;
                Some(ModelDelta::CallArguments { slot, delta: delta.clone() })
            }
            Kind::ToolCallEnd { tool_call_id, opaque, discarded, .. } => {
                let slot = *self.slots.get(tool_call_id)?;
                if *discarded {
                    self.discarded.insert(slot);
                    return None;
                }
                Some(ModelDelta::CallEnd { slot, opaque: opaque.clone() })
            }
            _ => None,
        }
    }
}

/// Returns a person's decision about a call with these arguments.
fn decision(result: &ConfirmResult, asked: Option<&String>) -> Decision {
    let arguments = &result.tool_call.arguments;
    match result.confirmed {
        true if asked == Some(arguments) => Decision::Allow,
        true => Decision::AllowWith(serde_json::from_str(arguments).unwrap_or_default()),
        false => Decision::Deny(result.reason.clone().unwrap_or_default()),
    }
}

/// Returns the call that a piece belongs to.
fn slot_of(delta: &ModelDelta) -> Option<usize> {
    match delta {
        ModelDelta::CallStart { slot, .. }
        | ModelDelta::CallArguments { slot, .. }
        | ModelDelta::CallEnd { slot, .. } => Some(*slot),
        _ => None,
    }
}
