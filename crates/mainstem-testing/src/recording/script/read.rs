//! Reads a record from its first event to its last.

mod cancels;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use mainstem_event::{
    AgentEvent, ConfirmResult, Decision, EventKind, Outcome, RunSettings, SendMode, Timestamp,
};
use mainstem_message::{
    AgentKey, ContentBlock, Failure, Message, Opaque, StopReason, TaskId, ToolCallId, ToolState, Usage,
};
use mainstem_model::ModelDelta;
use serde_json::Value;

use self::cancels::Named;
use super::{Act, Answer, Caller, Ending, Found, ROOT, Script, key_of};
use crate::recording::{
    RecordingError,
    cast::is_of_harness,
    rules::{Judged, rules},
    schedule::Schedule,
};

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
    script.rules = rules(&reader.judged, &reader.asking, &script.changing).map_err(|seq| {
        let what = "whether it needs approval depends on more than the tool and its arguments".to_owned();
        RecordingError::Unplayable { seq, what }
    })?;
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
    calls: HashMap<Caller, Arc<str>>,
    /// The instances, by their sessions.
    instances: HashMap<String, String>,
    /// The instances below the root, by their keys.
    named: HashMap<String, Named>,
    /// The patterns of the rules that asked for an approval.
    asking: BTreeSet<String>,
    /// The calls that reached their tool, or a person.
    judged: Vec<Judged>,
    /// The instances that have answered, and called no tool since.
    answered: HashSet<String>,
    /// Whether a run is active.
    is_running: bool,
    /// Whether background tasks were cancelled with the active run.
    with_tasks: bool,
    /// The results that have begun.
    found: HashMap<Caller, Found>,
    /// The arguments that a person was asked about.
    asked: HashMap<Caller, String>,
    /// The inputs of the running `agent_send` calls.
    sending: HashMap<Caller, Value>,
    /// The texts that were sent to the leading agent, and that it has not read.
    unread: Vec<String>,
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
            instances: HashMap::new(),
            named: HashMap::new(),
            asking: BTreeSet::new(),
            judged: Vec::new(),
            answered: HashSet::new(),
            is_running: false,
            with_tasks: false,
            found: HashMap::new(),
            asked: HashMap::new(),
            sending: HashMap::new(),
            unread: Vec::new(),
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
            Kind::TaskUpdated { task_id, .. } => self.task(task_id),
            Kind::HintBlock { hint_source, .. } if hint_source == "output_schema" => {
                let agent = event.source().and_then(|source| self.script.agents.get(&source.agent_id));
                if agent.is_none_or(|agent| agent.spec.is_none()) {
                    return Err("its answer had to fit a schema, which is not in the record".into());
                }
            }
            Kind::HintBlock { hint_source, hint, .. } if hint_source == "message" => {
                self.unread.retain(|text| event.source().is_some() || text != hint);
            }
            Kind::MessageSent { agent_key, message, mode, .. } => {
                self.sent(event.at, agent_key, message.text(), *mode);
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
        let key = source.agent_key.to_string();
        let parent = self.instances.get(source.parent_session_id.as_str());
        let parent = parent.map_or(ROOT, String::as_str).to_owned();
        let name = source.label.as_ref().unwrap_or(&source.agent_id).to_string();
        self.named.insert(key.clone(), Named { name, parent: parent.clone() });
        let call = parent_tool_call_id.clone().map(|call| (parent, call));
        let causing = call.as_ref().and_then(|call| self.found.get_mut(call));
        let began = causing.map(|found| {
            found.began_child = true;
            found.began
        });
        self.script.ids.entry(key.clone()).or_insert_with(|| began.unwrap_or_default());
        source.task_id.iter().for_each(|task| self.task(task));
        self.instances.insert(source.session_id.to_string(), key.clone());
        self.script.sessions.insert(key, source.session_id.to_string());
        let tool = call.map(|call| self.calls.get(&call).cloned());
        let agent = self.script.agents.entry(source.agent_id.clone()).or_default();
        if spec.is_some() {
            agent.spec.clone_from(spec);
        }
        match tool {
            Some(Some(tool)) if !is_of_harness(&tool) && *tool != *"agent_generate" => {
                self.script.agent_tools.insert(tool, source.agent_id.clone());
            }
            Some(Some(tool)) => agent.persists |= source.turn > 1 && *tool != *"agent_send",
            None if source.turn > 1 => {
                let text = input.last().map(|message| message.text()).unwrap_or_default();
                let to = source.agent_key.clone();
                self.act(event.at, Act::Send { to, text, mode: SendMode::Queue });
            }
            _ => {}
        }
        Ok(())
    }

    fn task(&mut self, id: &TaskId) {
        self.script.ids.insert(id.to_string(), Duration::ZERO);
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
        (self.is_running, self.with_tasks) = (true, false);
        if settings.as_ref().is_some_and(|settings| settings.compacts) {
            return Err("the run only compacts the conversation".into());
        }
        // What was sent into an earlier turn is sent again.
        let unread =
            input.iter().zip(self.unread.drain(..)).take_while(|(message, text)| message.text() == *text);
        let unread = unread.count();
        let [input] = &input[unread..] else {
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
            // What others do between an answer and the end of its agent comes before the end.
            let last = self.script.answers.get_mut(key).and_then(|answers| answers.last_mut());
            if let (true, Some(Answer { pieces, ending: Ending::Complete })) =
                (self.answered.remove(key), last)
                && let Some((time, ModelDelta::Stop(_))) = pieces.last_mut()
            {
                *time = self.schedule.next(event.at);
            }
            self.is_running &= !event.is_root();
            return Ok(());
        }
        self.cancelled(event, error)
    }

    fn approval(&mut self, event: &AgentEvent) {
        let key = key_of(event).to_owned();
        match &event.kind {
            EventKind::RequireUserConfirm { tool_calls, rule, .. } => {
                for call in tool_calls {
                    self.asked.insert((key.clone(), call.id.clone()), call.arguments.clone());
                    match rule {
                        Some(rule) => self.asking.insert(rule.to_string()),
                        None => self.script.changing.insert(call.name.clone()),
                    };
                    let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
                    let (seq, tool) = (event.seq, call.name.clone());
                    self.judged.push(Judged { seq, tool, arguments, was_asked: true });
                }
            }
            EventKind::UserConfirmResult { confirm_results, .. } => {
                // A person did nothing about a request that was withdrawn.
                for result in confirm_results.iter().filter(|result| !result.withdrawn) {
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
        open.answer.pieces.push((self.schedule.shared(event.at), delta));
        self.cancelled_at = None;
        if let EventKind::ToolCallEnd { tool_call_id, tool_call_name, discarded: false, .. } = &event.kind {
            self.calls.insert((key_of(event).to_owned(), tool_call_id.clone()), tool_call_name.clone());
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
        answer.pieces.extend(usage.map(|usage| (self.schedule.shared(event.at), ModelDelta::Usage(usage))));
        match stop {
            StopReason::Cancelled => {
                answer.ending = Ending::Cancelled;
                self.cancelled_at.get_or_insert(event.at);
            }
            StopReason::Error => answer.ending = Ending::Failed(self.schedule.next(event.at), None),
            stop => answer.pieces.push((self.schedule.next(event.at), ModelDelta::Stop(stop.clone()))),
        }
        self.answered.insert(key_of(event).to_owned());
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
                self.answered.remove(&call.0);
                // A harness's own tools change nothing, and what is not JSON reaches no rule.
                let reaches_rules = !is_of_harness(tool_call_name) && !input.is_null();
                if reaches_rules && !self.asked.contains_key(&call) {
                    let (seq, tool, arguments) = (event.seq, tool_call_name.to_string(), input.clone());
                    self.judged.push(Judged { seq, tool, arguments, was_asked: false });
                }
                let began = self.schedule.next(event.at);
                let found = self.found_of(call);
                (found.seq, found.began) = (event.seq, began);
            }
            EventKind::ToolResultTextDelta { tool_call_id, delta } => {
                let Found { progress, content, .. } = self.found_of((key, tool_call_id.clone()));
                match &mut content[..] {
                    // What came in pieces is the progress of the tool, up to the last one.
                    [ContentBlock::Text { text, .. }] => {
                        progress.push(std::mem::replace(text, delta.clone()));
                    }
                    [.., ContentBlock::Text { text, .. }] => text.push_str(delta),
                    _ => content.push(ContentBlock::text(delta.clone())),
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
                if *state == ToolState::Denied && !found.was_asked {
                    self.judged.retain(|judged| judged.seq != found.seq);
                }
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
            seq: 0,
            began: Duration::ZERO,
            at: Duration::ZERO,
            progress: Vec::new(),
            content: Vec::new(),
            state: ToolState::Success,
            was_asked: false,
            began_child: false,
        })
    }

    /// Returns whether an agent has sent this message, which it does once.
    fn was_sent_by_agent(&mut self, text: &str) -> bool {
        let is_it = |input: &Value| input.get("message").and_then(Value::as_str) == Some(text);
        let call = self.sending.iter().find(|(_, input)| is_it(input)).map(|(call, _)| call.clone());
        call.and_then(|call| self.sending.remove(&call)).is_some()
    }

    fn sent(&mut self, at: Timestamp, to: &AgentKey, text: String, mode: SendMode) {
        if to.as_str() == ROOT {
            self.unread.push(text.clone());
        }
        if !self.was_sent_by_agent(&text) {
            self.act(at, Act::Send { to: to.clone(), text, mode });
        }
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
