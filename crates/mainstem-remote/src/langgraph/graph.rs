//! The graphs of one run, as events of the agent that was asked and of agents below it. Pure.

mod ending;
mod recorded;

use std::{collections::HashMap, mem, sync::Arc};

use mainstem_event::{EventKind, EventSource, Outcome};
use mainstem_message::{AgentKey, Failure, Message as Input, SessionId, ToolCall, ToolCallId};
use serde_json::{Value, json};

use self::recorded::Recorded;
use super::{
    interrupts::Questions,
    namespace::{Level, levels},
    remote_id::RemoteId,
    speaker::{Speaker, text_of},
    wire::{Failed, Interrupt, Message, Metadata, Task, read},
};
use crate::{RemoteEvent, RemoteTurn, Translation};

/// The most graphs below that of the assistant in one turn. What further ones say is said by the
/// graph above them.
const MAX_AGENTS: usize = 256;

/// The most tasks and inputs that are remembered, and the most questions at once.
const MAX_TASKS: usize = 1_024;
const MAX_QUESTIONS: usize = 64;

/// The longest namespace, name of an event or id, and the longest input that is remembered, in
/// bytes.
const MAX_ID: usize = 1_024;
const MAX_INPUT: usize = 16 << 10;

/// The longest name of an agent, in characters.
const MAX_NAME: usize = 64;

/// The graph of the assistant.
const ROOT: usize = 0;

/// The argument of a call that names the agent which is asked.
const SUBAGENT_TYPE: &str = "subagent_type";

/// What a run has said so far.
#[derive(Debug)]
pub(super) struct Graph {
    turn: RemoteTurn,
    model: Arc<str>,
    agents: Vec<Agent>,
    /// The agents by their namespaces.
    places: HashMap<String, usize>,
    /// The last message of a person in the input of a graph that has said nothing yet.
    inputs: HashMap<String, String>,
    /// The call that a task of a tool node runs.
    calls: HashMap<String, ToolCallId>,
    interrupts: Vec<(usize, Interrupt)>,
    questions: Questions,
    /// The interrupts of this run that another client has answered.
    answered: Vec<String>,
    failed: Option<Failed>,
    events: Vec<RemoteEvent>,
    /// The run and the frame that is read.
    run: String,
    frame: String,
    /// What another process has shown of the turn.
    recorded: Recorded,
}

/// A graph that has said something.
#[derive(Debug)]
struct Agent {
    speaker: Speaker,
    parent: usize,
    /// The task whose graph it is.
    task: String,
    /// The call of the parent that runs it.
    cause: Option<ToolCallId>,
    source: Option<EventSource>,
    failure: Option<Failure>,
}

impl Graph {
    /// Begins the turn of an assistant.
    pub(super) fn new(turn: RemoteTurn, assistant: &str) -> Self {
        let mut speaker = Speaker::new(Translation::new(assistant));
        speaker.agent.start(assistant, Vec::new());
        let mut graph = Self::with(turn, assistant, speaker);
        graph.drain(ROOT);
        graph
    }

    fn with(turn: RemoteTurn, assistant: &str, speaker: Speaker) -> Self {
        let (task, cause, source, failure) = Default::default();
        let root = Agent { speaker, parent: ROOT, task, cause, source, failure };
        let (places, inputs, calls) = Default::default();
        let (interrupts, questions, answered, failed) = Default::default();
        let (run, frame, recorded) = Default::default();
        Self {
            turn,
            model: assistant.into(),
            agents: vec![root],
            places,
            inputs,
            calls,
            interrupts,
            questions,
            answered,
            failed,
            events: Vec::new(),
            run,
            frame,
            recorded,
        }
    }

    /// Notes the run whose frames follow.
    pub(super) fn set_run(&mut self, run: &str) {
        self.run = run.to_owned();
        self.frame.clear();
        self.answered.clear();
    }

    /// Tells that a run has begun: a later process finds it by the event.
    pub(super) fn begin_run(&mut self, run: &str) {
        self.set_run(run);
        self.custom("", "langgraph.run", json!({ "id": run }));
    }

    /// Notes the id of the frame that is taken in next.
    pub(super) fn set_frame(&mut self, id: Option<&str>) {
        id.into_iter().for_each(|id| id.clone_into(&mut self.frame));
    }

    /// Takes the events so far.
    pub(super) fn take(&mut self) -> Vec<RemoteEvent> {
        mem::take(&mut self.events)
    }

    /// Adds an event of the assistant's own.
    pub(super) fn add(&mut self, kind: EventKind) {
        self.agents[ROOT].speaker.agent.other(kind);
        self.drain(ROOT);
    }

    /// Takes in a frame of the stream.
    ///
    /// # Errors
    /// It is not in the protocol, or there is too much.
    pub(super) fn take_in(&mut self, event: &str, data: &str) -> Result<(), String> {
        if event.len() > MAX_ID {
            return Err(format!("the name of an event has more than {MAX_ID} bytes"));
        }
        let (mode, namespace) = event.split_once('|').unwrap_or((event, ""));
        let wrong = |error| format!("{mode:?} is not as expected: {error}");
        match mode {
            "messages" => {
                let (mut message, metadata): (Message, Metadata) =
                    serde_json::from_str(data).map_err(wrong)?;
                message.rename_calls(|id| self.recorded.rename(id));
                self.say(namespace, &message, &metadata)?;
            }
            "tasks" => self.task(namespace, &serde_json::from_str(data).map_err(wrong)?),
            "updates" | "values" => self.update(namespace, serde_json::from_str(data).map_err(wrong)?),
            "error" => self.failed = Some(serde_json::from_str(data).map_err(wrong)?),
            "metadata" => self.attempt(&serde_json::from_str(data).map_err(wrong)?),
            "end" | "feedback" => {}
            // What nodes write, and modes that are not asked for.
            mode => {
                let value = serde_json::from_str(data).map_err(wrong)?;
                self.custom(namespace, &format!("langgraph.{mode}"), value);
            }
        }
        Ok(())
    }

    fn say(&mut self, namespace: &str, message: &Message, metadata: &Metadata) -> Result<(), String> {
        if message.id.as_deref().is_some_and(|id| self.recorded.has_shown(id)) {
            return Ok(());
        }
        let at = self.place(namespace, metadata);
        match &message.tool_call_id {
            Some(call) if self.has_open_call(at, call) => {
                self.close(|agent| {
                    agent.parent == at && agent.cause.as_ref().is_some_and(|cause| cause.as_str() == call)
                });
            }
            _ => self.begin_answer(at),
        }
        let said = self.agents[at].speaker.say(message, metadata);
        self.drain_of(at, message.id.as_deref().unwrap_or_default());
        said
    }

    /// Takes in the beginning or the end of a node's task.
    fn task(&mut self, namespace: &str, task: &Task) {
        if let Some(input) = &task.input {
            self.note(namespace, task, input);
            return;
        }
        let at = self.known(namespace);
        task.interrupts.iter().for_each(|interrupt| self.interrupt(at, interrupt.clone()));
        if !task.error.is_null() {
            self.agents[at].failure = Some(Failure::new("remote_failed", shown_error(&task.error)));
        }
        // A task that is interrupted goes on when it is resumed.
        if task.interrupts.is_empty() && !task.id.is_empty() {
            self.close(|agent| agent.task == task.id);
        }
    }

    /// Notes what is asked of a graph, and which call a task runs.
    fn note(&mut self, namespace: &str, task: &Task, input: &Value) {
        let call = input.get("tool_call").or_else(|| input.get(0)).and_then(|call| call.get("id")?.as_str());
        let is_short = |call: &&str| call.len() + task.id.len() <= MAX_ID;
        if let Some(call) = call.filter(is_short).filter(|_| self.calls.len() < MAX_TASKS) {
            let mut call = call.to_owned();
            self.recorded.rename(&mut call);
            self.calls.insert(task.id.clone(), ToolCallId::new(call));
        }
        let Some(level) = levels(namespace).pop() else { return };
        let mut messages = input.get("messages").and_then(Value::as_array).into_iter().flatten();
        let person = messages.rfind(|message| message.get("type").is_some_and(|kind| kind == "human"));
        if let Some(person) = person.filter(|_| self.inputs.len() < MAX_TASKS) {
            let text = person.get("content").map(text_of).unwrap_or_default();
            if text.len() <= MAX_INPUT {
                self.inputs.entry(level.key).or_insert(text);
            }
        }
    }

    /// Takes in what a node has changed: interrupts, and what is not a message.
    fn update(&mut self, namespace: &str, update: Value) {
        let Value::Object(nodes) = update else { return };
        let at = self.known(namespace);
        for (node, change) in nodes {
            if node == "__interrupt__" {
                let interrupts: Vec<Interrupt> = read(&change).unwrap_or_default();
                interrupts.into_iter().for_each(|interrupt| self.interrupt(at, interrupt));
                continue;
            }
            let Value::Object(mut change) = change else { continue };
            change.remove("messages");
            if !change.is_empty() {
                self.custom(namespace, "langgraph.updates", json!({ node: change }));
            }
        }
    }

    /// Notes an interrupt, at the innermost graph that tells it.
    fn interrupt(&mut self, at: usize, interrupt: Interrupt) {
        if self.answered.contains(&interrupt.id) {
            return;
        }
        let is_room = self.interrupts.len() < MAX_QUESTIONS;
        match self.interrupts.iter_mut().find(|(_, known)| known.id == interrupt.id) {
            Some((place, _)) => *place = at.max(*place),
            None if is_room => self.interrupts.push((at, interrupt)),
            None => {}
        }
    }

    /// Tells that the run begins again, after a failure of the server.
    fn attempt(&mut self, metadata: &Value) {
        let attempt = metadata.get("attempt").and_then(Value::as_u64).unwrap_or(1);
        if attempt > 1 {
            self.failed = None;
            self.custom("", "langgraph.attempt", json!(attempt));
        }
    }

    fn custom(&mut self, namespace: &str, name: &str, value: Value) {
        let at = self.known(namespace);
        self.agents[at].speaker.custom(name, value);
        self.drain(at);
    }

    /// Returns the agent of a namespace, or the nearest above it, if it is running.
    fn known(&self, namespace: &str) -> usize {
        let known =
            levels(namespace).into_iter().rev().find_map(|level| self.places.get(&level.key).copied());
        known.filter(|at| !self.agents[*at].speaker.agent.is_over()).unwrap_or(ROOT)
    }

    /// Returns the agent of a namespace, which begins if it is new or had ended.
    fn place(&mut self, namespace: &str, metadata: &Metadata) -> usize {
        let levels = levels(namespace);
        let (mut at, last) = (ROOT, levels.len());
        for (depth, level) in levels.into_iter().enumerate().take(self.turn.levels.into()) {
            let name = metadata.lc_agent_name.as_deref().filter(|_| depth + 1 == last);
            at = match self.places.get(&level.key) {
                Some(known) if self.agents[*known].speaker.agent.is_over() => self.restart(*known),
                Some(known) => *known,
                None if self.agents.len() > MAX_AGENTS => break,
                None => self.start(at, level, name),
            };
        }
        at
    }

    fn start(&mut self, parent: usize, level: Level, name: Option<&str>) -> usize {
        let input = self.inputs.remove(&level.key).unwrap_or_default();
        let cause = self.cause(parent, &level, &input);
        if let Some(call) = &cause {
            // The call runs from here on.
            self.agents[parent].speaker.agent.begin_result(&call.id, &call.name);
            self.drain(parent);
        }
        let asked = cause.as_ref().and_then(subagent);
        let name = named(asked.as_deref().or(name).unwrap_or(&level.node));
        let at = self.agents.len();
        let cause = cause.map(|call| call.id);
        let source = self.source(parent, at, &name, cause.clone());
        let speaker = self.begin(&source, &name, &input);
        let (task, source) = (level.task, Some(source));
        self.agents.push(Agent { speaker, parent, task, cause, source, failure: None });
        self.places.insert(level.key, at);
        self.drain(at);
        at
    }

    /// Begins a further turn of an agent that had ended: its graph goes on.
    fn restart(&mut self, at: usize) -> usize {
        let Some(mut source) = self.agents[at].source.take() else { return ROOT };
        source.turn += 1;
        source.parent_tool_call_id = None;
        let name = source.agent_id.clone();
        let speaker = self.begin(&source, &name, "");
        let agent = &mut self.agents[at];
        (agent.speaker, agent.source, agent.cause, agent.failure) = (speaker, Some(source), None, None);
        self.drain(at);
        at
    }

    fn begin(&self, source: &EventSource, name: &str, input: &str) -> Speaker {
        let translation = Translation::new(self.model.clone()).with_source(Arc::new(source.clone()));
        let mut speaker = Speaker::new(translation);
        let input = (!input.is_empty()).then(|| Arc::new(Input::user(input)));
        speaker.agent.start(name, input.into_iter().collect());
        speaker
    }

    fn source(&self, parent: usize, at: usize, name: &Arc<str>, cause: Option<ToolCallId>) -> EventSource {
        let above = self.agents[parent].source.as_ref();
        let (depth, path) = above.map_or((0, ""), |above| (above.depth, &*above.path));
        let at = self.recorded.agents + at;
        EventSource {
            agent_key: AgentKey::from_lossy(format!("agent:{name}:{at}")),
            agent_id: name.clone(),
            agent_name: None,
            label: None,
            title: None,
            session_id: SessionId::from_lossy(format!("graph-{at}")),
            parent_session_id: above
                .map_or_else(|| self.turn.session.clone(), |above| above.session_id.clone()),
            depth: depth + 1,
            path: format!("{path}/{name}").into(),
            task_id: None,
            turn: 1,
            parent_tool_call_id: cause,
            stream_id: 0,
        }
    }

    /// Returns the call of the parent that runs a graph: that of its task; or the one open call
    /// that has the graph's input among its arguments; or the only open call.
    fn cause(&self, parent: usize, level: &Level, input: &str) -> Option<ToolCall> {
        let is_taken = |call: &ToolCall| {
            self.agents.iter().any(|agent| agent.parent == parent && agent.cause.as_ref() == Some(&call.id))
        };
        let open: Vec<_> = self.agents[parent].speaker.agent.open_calls().collect();
        let free = || open.iter().filter(|call| !is_taken(call));
        if let Some(id) = self.calls.get(&level.task) {
            return free().find(|call| call.id == *id).cloned();
        }
        // A Mainstem server names a namespace after the call.
        if let Some(named) = free().find(|call| call.id.as_str() == level.task) {
            return Some(named.clone());
        }
        let asks = |call: &&ToolCall| !input.is_empty() && texts(&call.arguments).any(|text| text == input);
        let mut asking = free().filter(asks);
        match (asking.next(), asking.next(), &*open) {
            (Some(call), None, _) => Some(call.clone()),
            (None, _, [only]) if !is_taken(only) => Some(only.clone()),
            _ => None,
        }
    }

    fn has_open_call(&self, at: usize, call: &str) -> bool {
        self.agents[at].speaker.agent.open_calls().any(|open| open.id.as_str() == call)
    }

    /// Ends the agents that an agent's calls run, if its next text begins another answer.
    fn begin_answer(&mut self, at: usize) {
        if !self.agents[at].speaker.agent.is_answering() {
            self.close(|agent| agent.parent == at && agent.cause.is_some());
        }
    }

    /// Ends some agents below the assistant and what is below them, the innermost first.
    fn close(&mut self, is_over: impl Fn(&Agent) -> bool) {
        if !self.agents.iter().skip(ROOT + 1).any(&is_over) {
            return;
        }
        let mut over = vec![false; self.agents.len()];
        for (at, agent) in self.agents.iter().enumerate().skip(ROOT + 1) {
            over[at] = is_over(agent) || over[agent.parent];
        }
        for at in (ROOT + 1..self.agents.len()).rev().filter(|at| over[*at]) {
            let agent = &mut self.agents[at];
            match agent.failure.take() {
                Some(failure) => agent.speaker.agent.end(Outcome::Error, Some(failure)),
                None => {
                    agent.speaker.ensure_answer();
                    agent.speaker.agent.end(Outcome::Success, None);
                }
            }
            self.drain(at);
        }
    }

    fn drain(&mut self, at: usize) {
        self.drain_of(at, "");
    }

    /// Takes the events of an agent, which are those of a message.
    fn drain_of(&mut self, at: usize, message: &str) {
        let events = self.agents[at].speaker.agent.take();
        if self.run.is_empty() {
            return self.events.extend(events);
        }
        let id = RemoteId { run: &self.run, frame: &self.frame, message }.to_string();
        self.events.extend(events.into_iter().map(|event| event.with_id(&*id)));
    }
}

/// Returns the agent that a call names.
fn subagent(call: &ToolCall) -> Option<String> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    arguments.get(SUBAGENT_TYPE)?.as_str().map(str::to_owned)
}

/// Returns the texts among the arguments of a call.
fn texts(arguments: &str) -> impl Iterator<Item = String> {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let values = match arguments {
        Value::Object(arguments) => arguments.into_iter().map(|(_, value)| value).collect(),
        _ => Vec::new(),
    };
    values.into_iter().filter_map(|value| value.as_str().map(str::to_owned))
}

/// Returns a name as a segment of a path.
fn named(name: &str) -> Arc<str> {
    let is_valid = |c: &char| *c != '/' && !c.is_control();
    let name: String = name.chars().filter(is_valid).take(MAX_NAME).collect();
    if name.is_empty() { "graph".into() } else { name.into() }
}

/// Returns the text of an error: a text, or a class with a message.
fn shown_error(error: &Value) -> String {
    match read::<Failed>(error) {
        Ok(failed) => format!("{}: {}", failed.error, failed.message),
        Err(_) => text_of(error),
    }
}

#[cfg(test)]
mod tests;
