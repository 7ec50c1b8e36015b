//! A task of a server that has our extension: all of its events, with those of the agents below it.
//!
//! The stream goes on behind the last event after a lost connection, and whenever the server ends
//! it because the task waits for a person. The runner checks the events, as those of any remote.

use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock},
};

use async_trait::async_trait;
use futures_util::StreamExt;
use mainstem_a2a::{
    extension::{Metadata, URI},
    sdk::{Message, Part, Role, StreamResponse},
};
use mainstem_event::{AgentEvent, CancelReason, Decision};
use mainstem_message::{ConfirmId, ToolCallId};
use mainstem_tool::ToolOutput;
use tokio::time::sleep;

use super::{
    ask,
    losses::Losses,
    remote_id::RemoteId,
    wire::{Streamed, Wire},
};
use crate::{
    RemoteControl, RemoteError, RemoteEvent,
    http::{Frames, Repeat},
};

/// How often a message is sent whose stream is cut before its first frame.
const BEGINNINGS: u32 = 3;

/// A turn at such a server.
pub(super) struct Mirror {
    wire: Wire,
    task: Arc<OnceLock<String>>,
    frames: Option<Frames>,
    events: VecDeque<RemoteEvent>,
    /// The number of the last event.
    last: u64,
    losses: Losses,
    is_over: bool,
}

impl Mirror {
    /// Sends the message that begins a turn, and reads the first frame, which has the task's id. It
    /// is sent again if the stream is cut before that: a server of ours begins one task for it.
    pub(super) async fn begin(wire: Wire, message: Message) -> Result<Self, RemoteError> {
        let mut mirror = Self::new(wire);
        for _ in 0..BEGINNINGS {
            sleep(mirror.losses.pause()).await;
            let streamed = mirror.wire.stream(message.clone(), Repeat::Safe).await?;
            mirror.read(streamed)?;
            if mirror.frames.is_some() {
                mirror.step().await?;
            }
            if mirror.task.get().is_some() {
                return Ok(mirror);
            }
            if mirror.frames.is_some() {
                return Err(mirror.wire.connection().invalid("the stream does not begin with a task"));
            }
        }
        Err(RemoteError::Ended)
    }

    /// Reads the task of a message that may have been sent before: then it begins no other task.
    pub(super) async fn again(wire: Wire, message: Message) -> Result<Self, RemoteError> {
        let begun = Self::begin(wire, message).await?;
        Ok(Self::of(begun.wire, begun.task.get().map_or("", String::as_str)))
    }

    /// Reads a task from its first event on.
    pub(super) fn of(wire: Wire, task: &str) -> Self {
        let mirror = Self::new(wire);
        let _ = mirror.task.set(task.to_owned());
        mirror
    }

    fn new(wire: Wire) -> Self {
        let (task, events) = Default::default();
        Self { wire, task, frames: None, events, last: 0, losses: Losses::new(), is_over: false }
    }

    /// Returns what steers the task.
    pub(super) fn control(&self) -> MirrorControl {
        MirrorControl { wire: self.wire.clone(), task: self.task.clone() }
    }

    /// Returns the next event; `None` after the last one.
    pub(super) async fn next(&mut self) -> Option<Result<RemoteEvent, RemoteError>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(Ok(event));
            }
            if self.is_over {
                return None;
            }
            if let Err(error) = self.step().await {
                self.is_over = true;
                return Some(Err(error));
            }
        }
    }

    async fn step(&mut self) -> Result<(), RemoteError> {
        let Some(frames) = &mut self.frames else { return self.subscribe().await };
        match frames.next().await {
            Some(Ok(frame)) => {
                let update = self.wire.frame(&frame)?;
                self.take(update)
            }
            Some(Err(error)) => {
                let error = self.wire.connection().unreachable(&error);
                self.lose(error)
            }
            None => self.lose(RemoteError::Ended),
        }
    }

    fn lose(&mut self, error: RemoteError) -> Result<(), RemoteError> {
        self.frames = None;
        if self.losses.add() { Ok(()) } else { Err(error) }
    }

    /// Reads on behind the last event.
    async fn subscribe(&mut self) -> Result<(), RemoteError> {
        sleep(self.losses.pause()).await;
        let task = self.task.get().map(String::as_str).unwrap_or_default();
        let streamed = self.wire.subscribe_after(task, self.last).await?;
        self.read(streamed)
    }

    fn read(&mut self, streamed: Streamed) -> Result<(), RemoteError> {
        self.losses.begin();
        match streamed {
            Streamed::Frames(frames) => self.frames = Some(frames),
            // What follows is requested after a pause.
            Streamed::Whole(update) => {
                self.take(*update)?;
                self.lose(RemoteError::Ended)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, update: StreamResponse) -> Result<(), RemoteError> {
        self.wire.check_task(&update, self.task.get().map(String::as_str))?;
        let metadata = match update {
            StreamResponse::Task(task) => {
                let _ = self.task.set(task.id);
                None
            }
            StreamResponse::Message(_) => None,
            StreamResponse::StatusUpdate(update) => update.metadata,
            StreamResponse::ArtifactUpdate(update) => update.metadata,
        };
        match metadata {
            Some(metadata) => self.event(metadata),
            None => Ok(()),
        }
    }

    fn event(&mut self, mut metadata: Metadata) -> Result<(), RemoteError> {
        let Some(event) = metadata.remove(URI) else { return Ok(()) };
        let event: AgentEvent = serde_json::from_value(event)
            .map_err(|error| self.wire.connection().invalid(&format!("not an event: {error}")))?;
        if event.seq <= self.last {
            return Ok(());
        }
        self.losses.forget();
        (self.last, self.is_over) = (event.seq, event.is_run_end() || event.is_queued_run_cancel());
        let id = RemoteId { task: self.task.get().map_or("", String::as_str), event: Some(event.seq) };
        let (kind, source) = (event.kind.clone(), event.origin.source.clone());
        self.events.push_back(RemoteEvent::new(kind).with_source(source).with_id(id.to_string()));
        Ok(())
    }
}

/// Steers a task of such a server.
pub(super) struct MirrorControl {
    wire: Wire,
    task: Arc<OnceLock<String>>,
}

impl MirrorControl {
    /// Sends an answer; the server refuses a second one to the same request.
    async fn answer(&self, part: Part) -> Result<(), RemoteError> {
        let message = Message { task_id: self.task.get().cloned(), ..Message::new(Role::User, vec![part]) };
        self.wire.send(message, Repeat::Safe).await.map(drop)
    }
}

#[async_trait]
impl RemoteControl for MirrorControl {
    async fn cancel(&self, _: &CancelReason) -> Result<(), RemoteError> {
        self.wire.cancel(self.task.get().map(String::as_str).unwrap_or_default()).await.map(drop)
    }

    async fn confirm(&self, id: &ConfirmId, decision: Decision) -> Result<(), RemoteError> {
        self.answer(ask::approval(id, &decision)).await
    }

    async fn submit(&self, call: &ToolCallId, output: ToolOutput) -> Result<(), RemoteError> {
        let (text, is_error) = ask::text_of(output);
        self.answer(ask::ran(call, &text, is_error)).await
    }
}
