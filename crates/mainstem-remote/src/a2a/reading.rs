//! What a task's updates and states say, as lawful events. Pure.
//!
//! A state repeats what updates have said before. So the reading knows how much of each artifact
//! and which messages it has shown, and shows the rest.

mod artifacts;
mod recorded;

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use mainstem_a2a::sdk::{
    Artifact, Message, Part, PartContent, Role, StreamResponse, Task, TaskArtifactUpdateEvent, TaskState,
    TaskStatus,
};
use mainstem_event::{Decision, EventKind, Outcome, fold::RecordedInvocation};
use mainstem_message::{ConfirmId, ContentBlock, Failure, ToolCall, ToolCallId, ToolResult, ToolState};
use sha2::{Digest as _, Sha256};

use self::{artifacts::Artifacts, recorded::Recorded};
use super::{
    ask::{self, Ask, Kind},
    remote_id::RemoteId,
};
use crate::{RemoteEvent, Translation, translation::NO_ANSWER};

/// The most artifacts and messages of one task.
const MAX_SHOWN: usize = 4_096;

/// The longest text of a remote in an error, in characters.
const MAX_REASON: usize = 500;

/// The reading of one turn.
#[derive(Debug)]
pub(super) struct Reading {
    out: Translation,
    task: Option<String>,
    context: String,
    artifacts: Artifacts,
    /// How many blocks each artifact has in the present answer, and how many were replaced.
    said: HashMap<String, usize>,
    replaced: usize,
    /// The artifact of the open block.
    open: Option<String>,
    /// The digests of the ids of the messages that were shown.
    messages: HashSet<[u8; 32]>,
    /// Whether any text was shown.
    has_text: bool,
    /// Whether it has shown a file.
    has_file: bool,
    /// What the task waits for.
    asks: Vec<Ask>,
    /// The answers that are given, until all are.
    answers: Vec<Part>,
    /// The number of states that required input.
    waits: usize,
    /// Whether the task needs to be cancelled, because nothing here can answer it.
    abandoned: bool,
    /// What another process has shown of the turn.
    recorded: Recorded,
}

/// A server sends more than is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl Reading {
    /// Begins the reading of a turn of the agent with this name.
    pub(super) fn new(name: &str) -> Self {
        let mut out = Translation::new(name);
        out.start(name, Vec::new());
        Self {
            out,
            task: None,
            context: String::new(),
            artifacts: Artifacts::default(),
            said: HashMap::new(),
            replaced: 0,
            open: None,
            messages: HashSet::new(),
            has_text: false,
            has_file: false,
            asks: Vec::new(),
            answers: Vec::new(),
            waits: 0,
            abandoned: false,
            recorded: Recorded::default(),
        }
    }

    /// Begins the reading of a turn whose task is known.
    pub(super) fn begun(name: &str, task: String) -> Self {
        let mut reading = Self::new(name);
        reading.name(task);
        reading
    }

    /// Goes on with a turn behind what another process has recorded of it.
    pub(super) fn recorded(name: &str, task: String, own: &RecordedInvocation) -> Self {
        let recorded = Recorded::of(own);
        Self {
            out: Translation::recorded(name, own),
            task: Some(task),
            has_text: recorded.has_text(),
            has_file: recorded.has_file(),
            // Each request has had a call.
            waits: own.parts.calls.len(),
            recorded,
            ..Self::new(name)
        }
    }

    /// Returns the id of the task, once it is known.
    pub(super) fn task(&self) -> Option<&str> {
        self.task.as_deref()
    }

    /// Returns the context, once it is known.
    pub(super) fn context(&self) -> &str {
        &self.context
    }

    /// Takes the events so far.
    pub(super) fn take(&mut self) -> Vec<RemoteEvent> {
        self.out.take()
    }

    /// Returns `true` if the turn is over.
    pub(super) fn is_over(&self) -> bool {
        self.out.is_over()
    }

    /// Returns `true` if the turn is over although the task is not.
    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned
    }

    /// Returns `true` if the task waits for answers.
    pub(super) fn is_waiting(&self) -> bool {
        !self.asks.is_empty()
    }

    /// Notes that the agent's output comes in pieces of whole states.
    pub(super) fn falls_back(&mut self, reason: &str) {
        self.out.other(EventKind::StreamFallback { reason: reason.to_owned() });
    }

    /// Takes in an update.
    pub(super) fn apply(&mut self, update: StreamResponse) -> Result<(), TooMany> {
        match update {
            StreamResponse::Task(task) => self.state(task),
            StreamResponse::Message(message) => self.answer(message),
            StreamResponse::StatusUpdate(update) => self.status(update.status),
            StreamResponse::ArtifactUpdate(update) => self.artifact(update),
        }
    }

    /// Takes in the state of the task.
    fn state(&mut self, task: Task) -> Result<(), TooMany> {
        self.name(task.id);
        self.context = task.context_id;
        for message in task.history.unwrap_or_default() {
            if message.role == Role::Agent {
                self.progress(&message)?;
            }
        }
        for artifact in task.artifacts.unwrap_or_default() {
            self.whole(&artifact)?;
        }
        self.status(task.status)
    }

    /// Notes the id of the task, in an event: a later process finds the task by it.
    fn name(&mut self, task: String) {
        if self.task.is_none() {
            let id = RemoteId { task: &task, event: None }.to_string();
            let value = serde_json::json!({ "id": task });
            self.out.other_with_id(EventKind::Custom { name: "a2a.task".to_owned(), value }, id);
            self.task = Some(task);
        }
    }

    /// An answer without a task.
    fn answer(&mut self, message: Message) -> Result<(), TooMany> {
        self.context = message.context_id.clone().unwrap_or_default();
        if self.is_new(&message)? {
            self.parts(&message.parts);
        }
        self.succeed();
        Ok(())
    }

    fn succeed(&mut self) {
        if !self.has_text && !self.has_file {
            self.out.text(NO_ANSWER);
        }
        self.out.end(Outcome::Success, None);
    }

    fn status(&mut self, TaskStatus { state, message, .. }: TaskStatus) -> Result<(), TooMany> {
        let text = message.as_ref().map(reason).unwrap_or_default();
        let failed = |what: &str, code| {
            let message = if text.is_empty() { what.to_owned() } else { format!("{what}: {text}") };
            Some(Failure::new(code, message))
        };
        match state {
            TaskState::Submitted | TaskState::Working | TaskState::Unspecified => {
                self.withdraw();
                if let Some(message) = &message {
                    self.progress(message)?;
                }
            }
            TaskState::InputRequired => self.wait(message)?,
            TaskState::Completed => {
                // What is said at the end is the answer, unless artifacts are.
                if let Some(message) = message
                    && self.is_new(&message)?
                    && !self.has_text
                {
                    self.parts(&message.parts);
                }
                self.succeed();
            }
            TaskState::Failed => {
                self.out.end(Outcome::Error, failed("the remote agent failed", "remote_failed"));
            }
            TaskState::Rejected => {
                self.out.end(Outcome::Error, failed("the remote agent rejected the task", "remote_rejected"));
            }
            TaskState::Canceled => {
                self.out.end(Outcome::Cancelled, failed("the remote task was cancelled", "remote_cancelled"));
            }
            TaskState::AuthRequired => {
                self.abandoned = true;
                let what = "the remote agent requires authentication; give it as a header of the declaration";
                self.out.end(Outcome::Error, failed(what, "remote_auth_required"));
            }
        }
        Ok(())
    }

    /// Shows a message about the work, which is not its result.
    fn progress(&mut self, message: &Message) -> Result<(), TooMany> {
        let texts: Vec<_> = message.parts.iter().filter_map(Part::as_text).collect();
        let text = texts.join("\n");
        if self.is_new(message)? && !self.recorded.has_thought(&text) {
            self.close();
            self.out.thinking(&text);
            self.out.end_block();
        }
        Ok(())
    }

    /// Returns `true` for a message that was not shown, which then is.
    fn is_new(&mut self, message: &Message) -> Result<bool, TooMany> {
        let is_new = self.messages.insert(Sha256::digest(message.message_id.as_bytes()).into());
        if self.messages.len() > MAX_SHOWN { Err(TooMany) } else { Ok(is_new) }
    }

    /// Shows what an update adds to an artifact.
    fn artifact(&mut self, update: TaskArtifactUpdateEvent) -> Result<(), TooMany> {
        let artifact = update.artifact;
        if update.append == Some(true) {
            self.added(&artifact)?;
        } else {
            self.whole(&artifact)?;
        }
        if update.last_chunk == Some(true) {
            self.close();
        }
        Ok(())
    }

    fn added(&mut self, artifact: &Artifact) -> Result<(), TooMany> {
        self.enter(&artifact.artifact_id)?;
        for part in &artifact.parts {
            self.part(&artifact.artifact_id, part);
        }
        Ok(())
    }

    /// Shows what a whole artifact has beyond what was shown of it. One that was replaced is shown
    /// again.
    fn whole(&mut self, artifact: &Artifact) -> Result<(), TooMany> {
        let id = &artifact.artifact_id;
        for part in self.recorded.shown_of(artifact, &self.artifacts) {
            self.artifacts.add(id)?;
            self.artifacts.show(id, &part);
        }
        let Some(rest) = self.artifacts.rest(artifact) else {
            self.replace(id);
            return self.added(artifact);
        };
        if !rest.is_empty() {
            self.enter(id)?;
            rest.iter().for_each(|part| self.part(id, part));
        }
        Ok(())
    }

    /// Forgets an artifact that is replaced. Once all that the present answer has said is replaced,
    /// the answer is discarded; until then it stays beside what is new.
    fn replace(&mut self, id: &str) {
        self.replaced += self.said.remove(id).unwrap_or_default();
        if self.replaced > 0 && self.replaced == self.out.parts_of_answer() {
            let why = Failure::new("replaced", "the remote agent replaced the artifact");
            self.out.take_back(EventKind::model_retry(1, 0, why));
            (self.open, self.replaced) = (None, 0);
            (self.has_text, self.has_file) = (false, false);
        }
        self.close();
        self.artifacts.forget(id);
    }

    /// Begins the block of an artifact, unless it is open.
    fn enter(&mut self, id: &str) -> Result<(), TooMany> {
        if self.open.as_deref() != Some(id) {
            self.close();
            self.open = Some(id.to_owned());
        }
        self.artifacts.add(id)
    }

    fn part(&mut self, id: &str, part: &Part) {
        self.artifacts.show(id, part);
        let before = self.out.parts_of_answer();
        if before == 0 {
            self.begin_answer();
        }
        self.show(part);
        let begun = self.out.parts_of_answer().saturating_sub(before);
        *self.said.entry(id.to_owned()).or_default() += begun;
    }

    fn begin_answer(&mut self) {
        self.said.clear();
        self.replaced = 0;
    }

    fn parts(&mut self, parts: &[Part]) {
        self.close();
        parts.iter().for_each(|part| self.show(part));
        self.close();
    }

    fn show(&mut self, part: &Part) {
        match &part.content {
            PartContent::Raw(bytes) => {
                self.has_file = true;
                self.out.file(part.media_type.as_deref().unwrap_or("application/octet-stream"), bytes);
            }
            _ => {
                let text = text_of(part);
                self.has_text |= !text.is_empty();
                self.out.text(&text);
            }
        }
    }

    fn close(&mut self) {
        self.open = None;
        self.out.end_block();
    }

    /// Asks what the task waits for.
    fn wait(&mut self, message: Option<Message>) -> Result<(), TooMany> {
        if let Some(message) = &message
            && !self.is_new(message)?
        {
            return Ok(());
        }
        if self.is_waiting() && message.is_none() {
            return Ok(());
        }
        self.close();
        self.begin_answer();
        self.waits += 1;
        let pending: HashSet<_> = self.asks.iter().map(|ask| ask.kind.id()).collect();
        let asked = ask::asks(message.as_ref(), self.waits);
        // A further request repeats those that are still open.
        let mut new: Vec<_> = asked.into_iter().filter(|ask| !pending.contains(&ask.kind.id())).collect();
        for ask in &mut new {
            ask.calls.iter_mut().for_each(|call| self.recorded.reuse(call));
            for call in &ask.calls {
                self.out.call(&call.id, &call.name);
                self.out.arguments(&call.id, &call.arguments);
                self.out.end_call(&call.id);
            }
        }
        self.out.end_answer();
        for ask in new {
            self.out.other(match ask.confirm() {
                Some(id) => EventKind::require_user_confirm(id.clone(), ask.calls.clone()),
                None => EventKind::require_external_execution(ask.calls.clone()),
            });
            self.asks.push(ask);
        }
        Ok(())
    }

    /// The task goes on: another client has answered.
    fn withdraw(&mut self) {
        for ask in std::mem::take(&mut self.asks) {
            let kind = match ask.confirm() {
                Some(id) => {
                    EventKind::UserConfirmResult { confirm_id: id.clone(), confirm_results: Vec::new() }
                }
                None => EventKind::ExternalExecutionResult {
                    tool_results: ask.calls.into_iter().map(given).collect(),
                },
            };
            self.out.other(kind);
        }
        self.answers.clear();
    }

    /// Takes in a person's decision.
    pub(super) fn decide(&mut self, id: &ConfirmId, decision: &Decision) {
        let Some(at) = self.asks.iter().position(|ask| ask.confirm() == Some(id)) else { return };
        let ask = self.asks.remove(at);
        let (part, text) = ask::decided(&ask, decision);
        let state =
            if matches!(decision, Decision::Deny(_)) { ToolState::Denied } else { ToolState::Success };
        self.answered(&ask, &text, state);
        self.answers.push(part);
    }

    /// Takes in the result of a call.
    pub(super) fn ran(&mut self, call: &ToolCallId, text: &str, is_error: bool) {
        let is_it = |ask: &Ask| ask.confirm().is_none() && ask.calls.iter().any(|one| one.id == *call);
        let Some(at) = self.asks.iter().position(is_it) else { return };
        let ask = self.asks.remove(at);
        let state = if is_error { ToolState::Error } else { ToolState::Success };
        self.answered(&ask, text, state);
        if let Kind::Result(there) = &ask.kind {
            self.answers.push(ask::ran(there, text, is_error));
        }
    }

    /// Returns the message that answers the task, once all is answered that it waits for.
    pub(super) fn reply(&mut self) -> Option<Message> {
        if self.is_waiting() || self.answers.is_empty() || self.is_over() {
            return None;
        }
        let message = Message::new(Role::User, std::mem::take(&mut self.answers));
        let context = Some(self.context.clone()).filter(|context| !context.is_empty());
        Some(Message { task_id: self.task.clone(), context_id: context, ..message })
    }

    fn answered(&mut self, ask: &Ask, text: &str, state: ToolState) {
        for call in &ask.calls {
            self.out.begin_result(&call.id, &call.name);
            self.out.result(&call.id, text);
            self.out.end_result(&call.id, state);
        }
    }
}

/// Returns the result of a call that another client has given.
fn given(ToolCall { id, name, .. }: ToolCall) -> ToolResult {
    let content = vec![ContentBlock::text("another client has given the result")];
    ToolResult { tool_call_id: id, name, content, state: ToolState::Success }
}

/// Returns the text that stands for a part: a link for a URL, and an empty text for a file that is
/// sent inline.
fn text_of(part: &Part) -> Cow<'_, str> {
    match &part.content {
        PartContent::Text(text) => text.into(),
        PartContent::Data(json) => format!("\n```json\n{json}\n```\n").into(),
        PartContent::Url(url) => format!("[{}]({url})", part.filename.as_deref().unwrap_or("file")).into(),
        PartContent::Raw(_) => Cow::default(),
    }
}

/// Returns the text of a status, for an error.
fn reason(message: &Message) -> String {
    let texts: Vec<_> = message.parts.iter().filter_map(Part::as_text).collect();
    texts.join("\n").trim().chars().take(MAX_REASON).collect()
}

#[cfg(test)]
mod tests;
