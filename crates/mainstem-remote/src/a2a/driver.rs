//! Drives a task at its server: the only place of this protocol that waits for it.

use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures_util::StreamExt;
use mainstem_a2a::sdk::{Message, SendMessageResponse, StreamResponse, Task, TaskState};
use mainstem_event::Decision;
use mainstem_message::{ConfirmId, ToolCallId};
use mainstem_sse::{SseError, SseEvent};
use tokio::{sync::mpsc, time::sleep};

use super::{
    losses::Losses,
    reading::{Reading, TooMany},
    wire::{Streamed, Wire},
};
use crate::{
    RemoteError, RemoteEvent,
    http::{Frames, Repeat},
};

/// How often the state of a task is requested that is not streamed: at first, and at last.
const FIRST_POLL: Duration = Duration::from_millis(250);
const LAST_POLL: Duration = Duration::from_secs(5);

/// What this side says.
#[derive(Debug)]
pub(super) enum Said {
    Decided(ConfirmId, Decision),
    Result {
        call: ToolCallId,
        text: String,
        is_error: bool,
    },
    /// The state of the task after a cancel.
    Task(Box<Task>),
}

/// A turn at a server.
pub(super) struct Driver {
    wire: Wire,
    reading: Reading,
    events: VecDeque<RemoteEvent>,
    source: Source,
    said: mpsc::Receiver<Said>,
    task: Arc<OnceLock<String>>,
    losses: Losses,
    has_failed: bool,
}

/// Where the next updates come from.
enum Source {
    Frames(Frames),
    /// The connection was lost.
    Lost,
    /// The state is requested after this time.
    Poll(Duration),
    /// The task waits for an answer.
    Answer,
}

impl Driver {
    /// Sends the message that begins a turn, and reads the first answer, which has the task's id.
    pub(super) async fn begin(
        wire: Wire,
        name: &str,
        message: Message,
        task: Arc<OnceLock<String>>,
        said: mpsc::Receiver<Said>,
    ) -> Result<Self, RemoteError> {
        let mut reading = Reading::new(name);
        if !wire.is_streaming() {
            reading.falls_back("the server does not stream; the task's state is requested again and again");
        }
        let (events, source) = (VecDeque::new(), Source::Answer);
        let (losses, has_failed) = (Losses::new(), false);
        let mut driver = Self { wire, reading, events, source, said, task, losses, has_failed };
        driver.send(message).await?;
        while driver.reading.task().is_none() && !driver.reading.is_over() {
            let Source::Frames(frames) = &mut driver.source else { break };
            match frames.next().await {
                Some(Ok(frame)) => driver.frame(&frame)?,
                Some(Err(error)) => return Err(driver.wire.connection().unreachable(&error)),
                None => return Err(RemoteError::Ended),
            }
        }
        if let Some(id) = driver.reading.task() {
            let _ = driver.task.set(id.to_owned());
        }
        Ok(driver)
    }

    /// Goes on with a task that another process has begun. Its state is read when the first event
    /// is requested.
    pub(super) fn found(
        wire: Wire,
        reading: Reading,
        task: Arc<OnceLock<String>>,
        said: mpsc::Receiver<Said>,
    ) -> Self {
        let source = if wire.is_streaming() { Source::Lost } else { Source::Poll(Duration::ZERO) };
        let (events, losses, has_failed) = (VecDeque::new(), Losses::new(), false);
        Self { wire, reading, events, source, said, task, losses, has_failed }
    }

    /// Returns the context that the server has named.
    pub(super) fn context(&self) -> &str {
        self.reading.context()
    }

    /// Returns the next event; `None` after the last one.
    pub(super) async fn next(&mut self) -> Option<Result<RemoteEvent, RemoteError>> {
        loop {
            self.events.extend(self.reading.take());
            if let Some(event) = self.events.pop_front() {
                return Some(Ok(event));
            }
            if self.reading.is_over() || self.has_failed {
                return None;
            }
            if let Err(error) = self.step().await {
                self.has_failed = true;
                return Some(Err(error));
            }
        }
    }

    /// Waits for what happens next, there or here.
    async fn step(&mut self) -> Result<(), RemoteError> {
        let pause = self.losses.pause();
        let next = async {
            match &mut self.source {
                Source::Frames(frames) => Next::Frame(frames.next().await),
                Source::Lost => {
                    sleep(pause).await;
                    Next::Again
                }
                Source::Poll(after) => {
                    sleep(*after).await;
                    Next::Poll
                }
                Source::Answer => {
                    sleep(LAST_POLL).await;
                    Next::Look
                }
            }
        };
        let next = tokio::select! {
            biased;
            said = self.said.recv() => Next::Said(said),
            next = next => next,
        };
        match next {
            Next::Said(Some(said)) => self.hear(said).await?,
            Next::Said(None) => return Err(RemoteError::Ended),
            Next::Frame(Some(Ok(frame))) => self.frame(&frame)?,
            Next::Frame(Some(Err(error))) => {
                let error = self.wire.connection().unreachable(&error);
                self.lose(error)?;
            }
            Next::Frame(None) => self.lose(RemoteError::Ended)?,
            Next::Again => self.subscribe().await?,
            Next::Poll => self.poll().await?,
            Next::Look => self.look().await?,
        }
        if self.reading.is_abandoned()
            && let Some(task) = self.reading.task()
        {
            // The turn is over here in any case.
            let _ = self.wire.cancel(task).await;
        }
        Ok(())
    }

    async fn hear(&mut self, said: Said) -> Result<(), RemoteError> {
        match said {
            Said::Decided(id, decision) => self.reading.decide(&id, &decision),
            Said::Result { call, text, is_error } => self.reading.ran(&call, &text, is_error),
            Said::Task(task) => self.take(StreamResponse::Task(*task))?,
        }
        match self.reading.reply() {
            Some(reply) => self.send(reply).await,
            None => Ok(()),
        }
    }

    /// Sends a message, whose answer is read from now on.
    async fn send(&mut self, message: Message) -> Result<(), RemoteError> {
        if self.wire.is_streaming() {
            let streamed = self.wire.stream(message, Repeat::Unsafe).await?;
            return self.read(streamed);
        }
        self.take(match self.wire.send(message, Repeat::Unsafe).await? {
            SendMessageResponse::Task(task) => StreamResponse::Task(task),
            SendMessageResponse::Message(message) => StreamResponse::Message(message),
        })?;
        self.source = if self.reading.is_waiting() { Source::Answer } else { Source::Poll(FIRST_POLL) };
        Ok(())
    }

    fn read(&mut self, streamed: Streamed) -> Result<(), RemoteError> {
        match streamed {
            Streamed::Frames(frames) => {
                self.losses.begin();
                self.source = Source::Frames(frames);
            }
            Streamed::Whole(update) => {
                self.take(*update)?;
                self.source =
                    if self.reading.is_waiting() { Source::Answer } else { Source::Poll(FIRST_POLL) };
            }
        }
        Ok(())
    }

    fn frame(&mut self, frame: &SseEvent) -> Result<(), RemoteError> {
        let update = self.wire.frame(frame)?;
        self.take(update)?;
        let new = self.reading.take();
        if !new.is_empty() {
            self.losses.forget();
        }
        self.events.extend(new);
        Ok(())
    }

    fn take(&mut self, update: StreamResponse) -> Result<(), RemoteError> {
        self.wire.check_task(&update, self.reading.task())?;
        let taken = self.reading.apply(update);
        self.checked(taken)
    }

    fn checked(&self, taken: Result<(), TooMany>) -> Result<(), RemoteError> {
        let too_many = "the task has more artifacts or messages than are followed";
        taken.map_err(|TooMany| self.wire.connection().invalid(too_many))
    }

    /// The stream has ended before the turn.
    fn lose(&mut self, error: RemoteError) -> Result<(), RemoteError> {
        if self.reading.is_waiting() {
            self.source = Source::Answer;
            return Ok(());
        }
        if !self.losses.add() || self.reading.task().is_none() {
            return Err(error);
        }
        self.source = Source::Lost;
        Ok(())
    }

    /// Reads the task's stream again. A server refuses that if the task is over, or if it can't.
    async fn subscribe(&mut self) -> Result<(), RemoteError> {
        let task = self.reading.task().unwrap_or_default().to_owned();
        self.losses.begin();
        match self.wire.subscribe(&task).await {
            Ok(Streamed::Frames(mut frames)) => {
                // The first frame has the state, and with it what was missed.
                match frames.next().await {
                    Some(Ok(frame)) => match self.wire.frame(&frame)? {
                        state @ StreamResponse::Task(_) => self.take(state)?,
                        // The state that is requested now has the update, and what was missed.
                        _ => self.poll().await?,
                    },
                    Some(Err(error)) => {
                        let error = self.wire.connection().unreachable(&error);
                        return self.lose(error);
                    }
                    None => return self.lose(RemoteError::Ended),
                }
                self.source = Source::Frames(frames);
                Ok(())
            }
            Ok(whole) => self.read(whole),
            Err(RemoteError::Refused { .. }) => self.poll().await,
            Err(error) => Err(error),
        }
    }

    /// Looks whether the task still waits for an answer: another client may have given it.
    async fn look(&mut self) -> Result<(), RemoteError> {
        let task = self.reading.task().unwrap_or_default().to_owned();
        match self.wire.get(&task).await {
            // A server may give its question another id each time.
            Ok(state) if state.status.state == TaskState::InputRequired => {}
            Ok(state) => self.take(StreamResponse::Task(state))?,
            // The answer may come when the server is back.
            Err(error) => tracing::debug!(%error, "can't read the state of a task that waits"),
        }
        if !self.reading.is_waiting() {
            self.losses.forget();
            self.source = if self.wire.is_streaming() { Source::Lost } else { Source::Poll(FIRST_POLL) };
        }
        Ok(())
    }

    /// Requests the task's state.
    async fn poll(&mut self) -> Result<(), RemoteError> {
        let task = self.reading.task().unwrap_or_default().to_owned();
        let state = self.wire.get(&task).await?;
        self.take(StreamResponse::Task(state))?;
        let after = match self.source {
            Source::Poll(after) => (after * 2).min(LAST_POLL),
            _ => FIRST_POLL,
        }
        .max(FIRST_POLL);
        self.source = if self.reading.is_waiting() { Source::Answer } else { Source::Poll(after) };
        Ok(())
    }
}

/// What happens next.
enum Next {
    Said(Option<Said>),
    Frame(Option<Result<SseEvent, SseError<reqwest::Error>>>),
    Again,
    Poll,
    Look,
}
