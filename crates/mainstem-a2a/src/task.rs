//! A task, folded from the events of its run.

use a2a::{
    Artifact, Message, Part, PartContent, Role, StreamResponse, Task, TaskArtifactUpdateEvent, TaskState,
    TaskStatus,
};
use mainstem_event::{AgentEvent, EventKind};
use serde_json::json;

use crate::{
    Framing, Progress, Request, TaskStream,
    answer::Answer,
    extension::{Extension, URI},
    input::to_message,
};

/// The state of a task: what a client has that applied all of its updates.
#[derive(Debug)]
pub struct TaskFold {
    progress: Progress,
    status: TaskStatus,
    artifacts: Vec<Artifact>,
    history: Vec<Message>,
    /// The number of events that are no longer stored.
    missed: u64,
}

impl TaskFold {
    /// Creates the task of a run that is requested. The task has the id of the run, its context
    /// that of the session.
    pub fn new(run: impl Into<String>, session: impl Into<String>) -> Self {
        let progress = Progress::new(run, session);
        let status = TaskStatus { state: progress.state.clone(), message: None, timestamp: None };
        Self { progress, status, artifacts: Vec::new(), history: Vec::new(), missed: 0 }
    }

    /// Sets the extension of the updates, if the client asked for it.
    #[must_use]
    pub fn with_extension(mut self, extension: Option<Extension>) -> Self {
        self.progress.set_extension(extension);
        self
    }

    /// Sets the message that requests the run, which is not in its events yet.
    #[must_use]
    pub fn with_input(mut self, input: &mainstem_message::Message) -> Self {
        self.remember(std::iter::once(input));
        self
    }

    /// Takes in the next event of the session.
    pub fn apply(&mut self, event: &AgentEvent) {
        if let EventKind::AgentStart { input, .. } = &event.kind
            && event.is_root()
            && event.run_id().is_some_and(|run| *run == *self.progress.task_id())
        {
            self.remember(input.iter().map(|input| &**input));
        }
        if let EventKind::Gap { missed, .. } = event.kind {
            self.missed += missed;
        }
        for update in self.progress.apply(event) {
            match update {
                StreamResponse::StatusUpdate(update) => self.status = update.status,
                StreamResponse::ArtifactUpdate(update) => merge(&mut self.artifacts, update),
                StreamResponse::Task(_) | StreamResponse::Message(_) => {}
            }
        }
    }

    /// Notes an answer whose event has not arrived, so that the task does not wait for it.
    pub fn answered(&mut self, answer: &Answer) {
        match answer {
            Answer::Decided(id, _) => self.progress.answered(Some(id), None),
            Answer::Result { call, .. } => self.progress.answered(None, Some(call)),
        }
        if self.progress.is_interrupted() {
            if let Some(message) = &mut self.status.message {
                message.message_id.push_str(".rest");
                message.parts = self.progress.pending.iter().flat_map(Request::parts).collect();
            }
        } else if !self.is_over() {
            self.status.state = self.progress.state.clone();
            self.status.message = None;
        }
    }

    /// Notes that the task can't go on, for this reason: its process has ended.
    pub fn lose(&mut self, reason: &str) {
        self.progress.state = TaskState::Failed;
        self.progress.pending.clear();
        let message = Message {
            message_id: format!("{}.lost", self.progress.task_id()),
            context_id: Some(self.progress.context_id().to_owned()),
            task_id: Some(self.progress.task_id().to_owned()),
            ..Message::new(Role::Agent, vec![Part::text(reason)])
        };
        self.status = TaskStatus { state: TaskState::Failed, message: Some(message), ..self.status.clone() };
    }

    /// Returns the requests that wait for an answer.
    pub fn pending(&self) -> &[Request] {
        &self.progress.pending
    }

    /// Returns `true` if the task is in a terminal state.
    pub fn is_over(&self) -> bool {
        self.status.state.is_terminal()
    }

    /// Returns `true` if the task waits for its client.
    pub fn is_interrupted(&self) -> bool {
        self.progress.is_interrupted()
    }

    /// Returns its status.
    pub fn status(&self) -> &TaskStatus {
        &self.status
    }

    /// Returns the task, with at most this many messages of its history. If events of the run are
    /// no longer stored, its metadata has their number as `missed`, under the extension.
    pub fn task(&self, history: Option<usize>) -> Task {
        let skipped = self.history.len().saturating_sub(history.unwrap_or(usize::MAX));
        let history: Vec<_> = self.history.iter().skip(skipped).cloned().collect();
        Task {
            id: self.progress.task_id().to_owned(),
            context_id: self.progress.context_id().to_owned(),
            status: self.status.clone(),
            artifacts: Some(self.artifacts.clone()).filter(|artifacts| !artifacts.is_empty()),
            history: Some(history).filter(|history| !history.is_empty()),
            metadata: (self.missed > 0).then(|| [(URI.to_owned(), json!({ "missed": self.missed }))].into()),
        }
    }

    /// Returns the stream that begins with the task and goes on with its updates.
    pub fn into_stream(self, framing: Framing) -> TaskStream {
        TaskStream::new(self.task(None), self.progress, framing)
    }

    /// Returns the stream that begins with a later state of the task, and goes on with the updates
    /// from this state on. If the task waits for its client in this state, the stream does not end
    /// before it waits for something else.
    pub fn into_resumed_stream(self, now: Task, framing: Framing) -> TaskStream {
        TaskStream::new(now, self.progress, framing).resumed()
    }

    fn remember<'a>(&mut self, input: impl Iterator<Item = &'a mainstem_message::Message>) {
        let (task, context) = (self.progress.task_id(), self.progress.context_id());
        let messages = input.enumerate().map(|(number, input)| to_message(input, task, context, number));
        self.history = messages.filter(|message| !message.parts.is_empty()).collect();
    }
}

/// Applies an update of an artifact; texts are joined.
fn merge(artifacts: &mut Vec<Artifact>, update: TaskArtifactUpdateEvent) {
    let known = artifacts.iter_mut().find(|one| one.artifact_id == update.artifact.artifact_id);
    match known {
        Some(known) if update.append == Some(true) => {
            update.artifact.parts.into_iter().for_each(|part| append(&mut known.parts, part));
        }
        Some(known) => *known = update.artifact,
        None => artifacts.push(update.artifact),
    }
}

fn append(parts: &mut Vec<Part>, part: Part) {
    match (parts.last_mut().map(|last| &mut last.content), &part.content) {
        (Some(PartContent::Text(text)), PartContent::Text(delta)) => text.push_str(delta),
        _ => parts.push(part),
    }
}
