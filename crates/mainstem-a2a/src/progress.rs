//! The updates of a task, from the events of its run. Pure.

use a2a::{
    Artifact, Message, Part, Role, StreamResponse, TaskArtifactUpdateEvent, TaskState, TaskStatus,
    TaskStatusUpdateEvent,
};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use chrono::{DateTime, Utc};
use mainstem_event::{AgentEvent, EventKind, Outcome, Timestamp};
use mainstem_message::{BlockId, ConfirmId, Failure, ToolCallId};
use serde_json::json;

use crate::{
    Request,
    extension::{Extension, Metadata},
};

/// The largest file that a part has, in bytes of base64.
const MAX_FILE: usize = 8 << 20;

/// Turns the events of a run into updates of its task.
///
/// The root's text blocks are artifacts, appended to as they grow. Requests for approval and calls
/// that the client runs are the state "input required" until they are answered. The rest is in the
/// metadata of status updates, if there is an [`Extension`]. Artifacts that are discarded become
/// empty. The memory that it needs does not grow with the run, apart from a file of up to 8 MiB and
/// the ids of one model call's artifacts.
#[derive(Debug)]
pub struct Progress {
    task: String,
    context: String,
    pub(crate) state: TaskState,
    pub(crate) pending: Vec<Request>,
    /// The root's open block.
    open: Option<Open>,
    /// The complete artifacts of the root's open model call.
    attempt: Vec<String>,
    extension: Option<Extension>,
    /// How many requests there were.
    pub(crate) requests: usize,
}

#[derive(Debug)]
enum Open {
    Text { id: BlockId, has_begun: bool },
    File { id: BlockId, media_type: String, base64: String, bytes: usize },
}

impl Progress {
    /// Creates the progress of a run that is requested.
    pub(crate) fn new(task: impl Into<String>, context: impl Into<String>) -> Self {
        let (pending, open, attempt, extension, requests) = Default::default();
        Self {
            task: task.into(),
            context: context.into(),
            state: TaskState::Submitted,
            pending,
            open,
            attempt,
            extension,
            requests,
        }
    }

    pub(crate) fn set_extension(&mut self, extension: Option<Extension>) {
        self.extension = extension;
    }

    /// Returns the task, which is the run.
    pub fn task_id(&self) -> &str {
        &self.task
    }

    /// Returns the context, which is the session.
    pub fn context_id(&self) -> &str {
        &self.context
    }

    pub(crate) fn has_extension(&self) -> bool {
        self.extension.is_some()
    }

    /// Returns `true` if the task waits for its client.
    pub fn is_interrupted(&self) -> bool {
        self.state == TaskState::InputRequired
    }

    /// Notes that a request was answered, before its event arrives.
    pub(crate) fn answered(&mut self, confirm: Option<&ConfirmId>, call: Option<&ToolCallId>) {
        for request in &mut self.pending {
            request.calls.retain(|one| Some(&one.id) != call || request.confirm.is_some());
        }
        self.pending.retain(|one| {
            !one.calls.is_empty() && (one.confirm.is_none() || one.confirm.as_ref() != confirm)
        });
        if self.pending.is_empty() && self.is_interrupted() {
            self.state = TaskState::Working;
        }
    }

    /// Takes in the next event of the session, and returns the updates of the task. The last one
    /// has the event itself, if there is an extension.
    pub fn apply(&mut self, event: &AgentEvent) -> Vec<StreamResponse> {
        let is_of_run = event.run_id().is_some_and(|run| *run == *self.task);
        let is_gap = matches!(event.kind, EventKind::Gap { .. });
        if self.state.is_terminal() || !(is_of_run || is_gap) {
            return Vec::new();
        }
        let discarded = if event.is_root() { self.discarded(&event.kind) } else { Vec::new() };
        discarded.into_iter().map(StreamResponse::ArtifactUpdate).chain(self.update_of(event)).collect()
    }

    /// Returns the update that has an event.
    fn update_of(&mut self, event: &AgentEvent) -> Option<StreamResponse> {
        let artifact = if event.is_root() { self.artifact(event) } else { None };
        match artifact {
            Some(Some(mut update)) => {
                update.metadata = self.extension.as_ref().map(|extension| extension.metadata(event));
                Some(StreamResponse::ArtifactUpdate(update))
            }
            Some(None) if self.extension.is_none() => None,
            _ => self.status(event),
        }
    }

    /// Returns the updates of the complete artifacts that a model call discards.
    fn discarded(&mut self, kind: &EventKind) -> Vec<TaskArtifactUpdateEvent> {
        match kind {
            EventKind::ModelCallStart { .. } | EventKind::ModelCallEnd { .. } => self.attempt.clear(),
            kind if kind.taken_back().is_some() => {
                let artifacts = std::mem::take(&mut self.attempt);
                return artifacts.into_iter().map(|artifact| self.emptied(artifact)).collect();
            }
            _ => {}
        }
        Vec::new()
    }

    /// Returns the update of an event of the root's output, if it has one; `None` for other events.
    fn artifact(&mut self, event: &AgentEvent) -> Option<Option<TaskArtifactUpdateEvent>> {
        match &event.kind {
            EventKind::TextBlockStart { block_id } => {
                self.open = Some(Open::Text { id: block_id.clone(), has_begun: false });
                Some(None)
            }
            EventKind::TextBlockDelta { delta, .. } => {
                let Some(Open::Text { id, has_begun }) = &mut self.open else { return Some(None) };
                let (id, append) = (id.to_string(), std::mem::replace(has_begun, true));
                Some(Some(self.update(id, vec![Part::text(delta)], append, false)))
            }
            EventKind::DataBlockStart { block_id, media_type } => {
                let (id, media_type) = (block_id.clone(), media_type.clone());
                self.open = Some(Open::File { id, media_type, base64: String::new(), bytes: 0 });
                Some(None)
            }
            EventKind::DataBlockDelta { delta, .. } => {
                if let Some(Open::File { base64, bytes, .. }) = &mut self.open {
                    *bytes += delta.len();
                    if *bytes <= MAX_FILE {
                        base64.push_str(delta);
                    }
                }
                Some(None)
            }
            EventKind::TextBlockEnd { discarded: true, .. }
            | EventKind::DataBlockEnd { discarded: true, .. } => Some(self.discard()),
            EventKind::TextBlockEnd { .. } | EventKind::DataBlockEnd { .. } => Some(self.close()),
            _ => None,
        }
    }

    /// Ends the root's open block.
    fn close(&mut self) -> Option<TaskArtifactUpdateEvent> {
        let (id, part, append) = match self.open.take()? {
            Open::Text { has_begun: false, .. } => return None,
            // The end is known only now, and an artifact has at least one part.
            Open::Text { id, .. } => (id, Part::text(""), true),
            Open::File { id, media_type, base64, bytes } => {
                let part = match BASE64_STANDARD.decode(&base64) {
                    Ok(decoded) if bytes <= MAX_FILE => Part::raw(decoded).with_media_type(media_type),
                    _ => Part::data(json!({ "omitted": { "mediaType": media_type, "base64Bytes": bytes } })),
                };
                (id, part, false)
            }
        };
        self.attempt.push(id.to_string());
        Some(self.update(id.to_string(), vec![part], append, true))
    }

    /// Discards the root's open block.
    fn discard(&mut self) -> Option<TaskArtifactUpdateEvent> {
        match self.open.take()? {
            Open::Text { id, has_begun: true } => Some(self.emptied(id.to_string())),
            _ => None,
        }
    }

    /// Returns the update of an artifact that is discarded: it becomes empty.
    fn emptied(&self, artifact: String) -> TaskArtifactUpdateEvent {
        self.update(artifact, vec![Part::text("")], false, true)
    }

    fn update(
        &self,
        artifact_id: String,
        parts: Vec<Part>,
        append: bool,
        last: bool,
    ) -> TaskArtifactUpdateEvent {
        let (name, description, metadata, extensions) = Default::default();
        TaskArtifactUpdateEvent {
            task_id: self.task.clone(),
            context_id: self.context.clone(),
            artifact: Artifact { artifact_id, name, description, parts, metadata, extensions },
            append: Some(append),
            last_chunk: Some(last),
            metadata: None,
        }
    }

    /// Returns the status update of an event: of a new state, or for its metadata.
    fn status(&mut self, event: &AgentEvent) -> Option<StreamResponse> {
        let before = (self.state.clone(), self.pending.len());
        let message = self.advance(event);
        let is_gap = matches!(event.kind, EventKind::Gap { .. });
        let is_new = before != (self.state.clone(), self.pending.len());
        let metadata = match &self.extension {
            Some(extension) => Some(extension.metadata(event)),
            // What a reader misses is said to every reader.
            None if is_gap => Some(Extension::default().metadata(event)),
            None if is_new => None,
            None => return None,
        };
        let message = message.or_else(|| (is_new && self.is_interrupted()).then(|| self.requests(event)));
        Some(StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id: self.task.clone(),
            context_id: self.context.clone(),
            status: TaskStatus { state: self.state.clone(), message, timestamp: time(event.at) },
            metadata,
        }))
    }

    /// Advances the state, and returns the message of the new one.
    fn advance(&mut self, event: &AgentEvent) -> Option<Message> {
        match &event.kind {
            EventKind::AgentStart { .. } if event.is_root() => self.state = TaskState::Working,
            EventKind::AgentEnd { outcome, error, .. } if event.is_root() => {
                return self.end(*outcome, error.as_ref(), event);
            }
            EventKind::RunCancelled { error, .. } => return self.end(Outcome::Cancelled, Some(error), event),
            EventKind::AgentEnd { .. } => {
                self.pending.retain(|request| request.asker.as_ref() != event.reply_id());
            }
            EventKind::RequireUserConfirm { confirm_id, tool_calls, .. } => {
                self.ask(event, Some(confirm_id.clone()), tool_calls.clone());
            }
            EventKind::RequireExternalExecution { tool_calls, .. } => {
                self.ask(event, None, tool_calls.clone())
            }
            EventKind::UserConfirmResult { confirm_id, .. } => self.answered(Some(confirm_id), None),
            EventKind::ExternalExecutionResult { tool_results, .. } => {
                tool_results.iter().for_each(|result| self.answered(None, Some(&result.tool_call_id)));
            }
            _ => {}
        }
        if self.pending.is_empty() && self.is_interrupted() {
            self.state = TaskState::Working;
        }
        None
    }

    fn ask(
        &mut self,
        event: &AgentEvent,
        confirm: Option<ConfirmId>,
        calls: Vec<mainstem_message::ToolCall>,
    ) {
        let (asker, agent) = (event.reply_id().cloned(), event.agent_label().to_owned());
        self.requests += 1;
        self.pending.push(Request { asker, agent, confirm, calls });
        self.state = TaskState::InputRequired;
    }

    fn end(&mut self, outcome: Outcome, error: Option<&Failure>, event: &AgentEvent) -> Option<Message> {
        self.pending.clear();
        self.open = None;
        self.state = match outcome {
            // At the limit of iterations there is an answer, too.
            Outcome::Success | Outcome::MaxIterations => TaskState::Completed,
            Outcome::Cancelled => TaskState::Canceled,
            _ => TaskState::Failed,
        };
        if outcome == Outcome::Success {
            return None;
        }
        let text = error.map_or_else(|| outcome.as_str().replace('_', " "), |error| error.message.clone());
        let code = error.map(|error| json!(error.code));
        let mut metadata: Metadata = [("outcome".to_owned(), json!(outcome))].into();
        metadata.extend(code.map(|code| ("code".to_owned(), code)));
        Some(Message { metadata: Some(metadata), ..self.message(event, vec![Part::text(text)]) })
    }

    /// Returns the message of a status that requires input.
    fn requests(&self, event: &AgentEvent) -> Message {
        self.message(event, self.pending.iter().flat_map(Request::parts).collect())
    }

    fn message(&self, event: &AgentEvent, parts: Vec<Part>) -> Message {
        Message {
            message_id: format!("{}.{}", self.task, event.seq),
            context_id: Some(self.context.clone()),
            task_id: Some(self.task.clone()),
            role: Role::Agent,
            parts,
            metadata: None,
            extensions: None,
            reference_task_ids: None,
        }
    }
}

/// Returns a point in time, in whole milliseconds.
fn time(at: Timestamp) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(i64::try_from(at.as_micros() / 1000).ok()?)
}
