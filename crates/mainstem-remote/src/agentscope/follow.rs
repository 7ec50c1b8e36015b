//! Waits for a task: its stream of events, the stream again after it was lost, and its status.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use mainstem_encode::agent_protocol::{Snapshot, Status, TaskEvent};
use mainstem_sse::{SseError, SseEvent};
use tokio::time::{sleep, timeout};

use super::{fold::TaskFold, task::Task};
use crate::{RemoteError, RemoteEvent, http::Frames};

/// How often a stream is opened again, or a status asked for again, without an event between.
const ATTEMPTS: u32 = 8;

/// The pause before the second attempt, and the longest one before a later one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// After how long without an event the status is requested: AgentScope's server opens a stream of a
/// task that has ended, and sends nothing in it. A new stream is asked about sooner.
const FIRST_QUIET: Duration = Duration::from_millis(500);
const QUIET: Duration = Duration::from_secs(5);

/// How long the last events may take once the status says that the task has ended. A machine that
/// is busy has been seen to take longer than two seconds.
const LAST_EVENTS: Duration = Duration::from_secs(5);

/// How long the server waits in one request, where it can't stream.
const WAIT: Duration = Duration::from_secs(20);

/// How often the status of a task that waits for an approval is requested.
const APPROVAL_PAUSE: Duration = Duration::from_millis(750);

/// A task that is followed to its end.
pub(super) struct Follow {
    task: Arc<Task>,
    fold: TaskFold,
    link: Link,
    /// The attempts since the last event.
    attempts: u32,
    /// How long the stream may be silent before the status is requested.
    quiet: Duration,
    /// The status of a task that has ended, while its last events may be on their way.
    ended: Option<Snapshot>,
    events: VecDeque<RemoteEvent>,
}

enum Link {
    Closed,
    Open(Box<Frames>),
    /// The server does not stream.
    Polled,
    /// The task has ended.
    Over(Box<Snapshot>),
}

impl Follow {
    pub(super) fn new(task: Arc<Task>, fold: TaskFold) -> Self {
        let (attempts, ended, events) = Default::default();
        Self { task, fold, link: Link::Closed, attempts, quiet: FIRST_QUIET, ended, events }
    }

    /// Sets the state from which the task is followed. One that has ended has no further events.
    #[must_use]
    pub(super) fn with_state(mut self, now: Snapshot) -> Self {
        if is_ended(&now) {
            self.link = Link::Over(Box::new(now));
        }
        self
    }

    /// Returns the events of the task, to its end. Dropping the stream closes the connection.
    pub(super) fn into_events(self) -> BoxStream<'static, Result<RemoteEvent, RemoteError>> {
        let next = |mut follow: Self| async move { Ok(follow.next().await?.map(|event| (event, follow))) };
        stream::try_unfold(self, next).boxed()
    }

    async fn next(&mut self) -> Result<Option<RemoteEvent>, RemoteError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            if self.fold.is_over() {
                return Ok(None);
            }
            match &mut self.link {
                Link::Closed => self.open().await?,
                Link::Open(_) => self.read().await?,
                Link::Polled => self.poll().await?,
                Link::Over(now) => {
                    let now = std::mem::take(&mut **now);
                    self.end(now).await?;
                }
            }
            self.events.extend(self.fold.take());
        }
    }

    /// Opens the stream behind the last event. After a lost one, the status is requested first: a
    /// task that has ended may have further events, or none ever again.
    async fn open(&mut self) -> Result<(), RemoteError> {
        if self.attempts > 0 && self.ended.is_none() {
            let Some(snapshot) = self.status().await? else { return Ok(()) };
            self.ended = Some(snapshot).filter(is_ended);
        }
        if self.attempts > 0 {
            pause(self.attempts).await;
        }
        match (self.task.events(self.fold.last()).await, self.ended.take()) {
            (Ok(frames), ended) => {
                self.link = Link::Open(Box::new(frames));
                (self.ended, self.quiet) = (ended, FIRST_QUIET);
            }
            (Err(_), Some(snapshot)) => self.end_early(snapshot).await?,
            (Err(RemoteError::Refused { message, .. }), None) => {
                self.link = Link::Polled;
                self.fold.fall_back(message);
            }
            (Err(error), None) => return Err(error),
        }
        Ok(())
    }

    async fn read(&mut self) -> Result<(), RemoteError> {
        let Link::Open(frames) = &mut self.link else { return Ok(()) };
        let patience = if self.ended.is_some() { LAST_EVENTS } else { self.quiet };
        match timeout(patience, frames.next()).await {
            Ok(Some(Ok(frame))) => self.take(&frame).await,
            Ok(Some(Err(SseError::TooLarge(error)))) => Err(self.task.invalid(&error.to_string())),
            Ok(Some(Err(error))) => self.lose(&error.to_string()).await,
            Ok(None) => self.lose("the stream ended before the task did").await,
            Err(_) => self.look().await,
        }
    }

    async fn take(&mut self, frame: &SseEvent) -> Result<(), RemoteError> {
        let mut event: TaskEvent = serde_json::from_str(&frame.data)
            .map_err(|error| self.task.invalid(&format!("an event is not one of a task: {error}")))?;
        if event.seq == 0 {
            event.seq = frame.id.as_deref().and_then(|id| id.trim().parse().ok()).unwrap_or_default();
        }
        let last = self.fold.last();
        let ended = self.fold.read(&event);
        if self.fold.last() > last {
            (self.attempts, self.quiet) = (0, QUIET);
            self.events.extend(self.fold.take());
            // What an event becomes is recorded as a whole if its last part is.
            if let Some(latest) = self.events.back_mut() {
                latest.id = Some(event.seq.to_string());
            }
        }
        match ended {
            Some(snapshot) => self.end(snapshot).await,
            None => Ok(()),
        }
    }

    /// The stream was lost.
    async fn lose(&mut self, cause: &str) -> Result<(), RemoteError> {
        self.link = Link::Closed;
        match self.ended.take_if(|_| self.attempts > 0) {
            // Nothing came of the last attempt.
            Some(snapshot) => self.end_early(snapshot).await,
            None => self.count(cause),
        }
    }

    /// The stream is silent: looks whether the task has ended.
    async fn look(&mut self) -> Result<(), RemoteError> {
        if let Some(snapshot) = self.ended.take() {
            return self.end_early(snapshot).await;
        }
        self.quiet = (self.quiet * 2).min(QUIET);
        self.ended = self.status().await?.filter(is_ended);
        Ok(())
    }

    /// Follows a task of a server that does not stream.
    async fn poll(&mut self) -> Result<(), RemoteError> {
        let Some(snapshot) = self.status().await? else { return Ok(()) };
        if is_ended(&snapshot) {
            return self.end(snapshot).await;
        }
        self.events.extend(self.fold.take());
        if snapshot.status == Some(Status::AwaitingConfirm) {
            sleep(APPROVAL_PAUSE).await;
        } else if self.task.wait(WAIT).await.is_err() {
            // A server without `/wait`.
            sleep(LONGEST_PAUSE).await;
        } else {
            self.attempts = 0;
            // However soon the server answers.
            sleep(FIRST_PAUSE).await;
        }
        Ok(())
    }

    /// Asks for the status; `None` if there is none this time, after a pause.
    async fn status(&mut self) -> Result<Option<Snapshot>, RemoteError> {
        match self.task.status().await {
            Ok(snapshot) => {
                self.fold.status(&snapshot);
                Ok(Some(snapshot))
            }
            Err(RemoteError::Unreachable { .. } | RemoteError::Refused { .. })
                if self.attempts < ATTEMPTS =>
            {
                self.attempts += 1;
                pause(self.attempts).await;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Ends the task. The stream tells its end, and the status its result.
    async fn end(&mut self, mut snapshot: Snapshot) -> Result<(), RemoteError> {
        let is_told = snapshot.result.is_some() || !self.fold.lacks_answer();
        if snapshot.status == Some(Status::Success) && !is_told {
            snapshot.result = self.task.status().await?.result;
        }
        self.link = Link::Closed;
        self.fold.end(snapshot);
        Ok(())
    }

    /// Ends a task whose stream did not tell its end. A cancel ends it without an event.
    async fn end_early(&mut self, snapshot: Snapshot) -> Result<(), RemoteError> {
        if snapshot.status == Some(Status::Success) {
            let last = self.fold.last();
            self.fold.fall_back(format!("the stream of events was lost behind event {last}"));
        }
        self.end(snapshot).await
    }

    fn count(&mut self, cause: &str) -> Result<(), RemoteError> {
        self.attempts += 1;
        if self.attempts <= ATTEMPTS { Ok(()) } else { Err(self.task.lost(cause)) }
    }
}

fn is_ended(snapshot: &Snapshot) -> bool {
    snapshot.status.is_some_and(Status::is_over)
}

/// Pauses before another attempt; the first one after an event is made at once.
async fn pause(attempts: u32) {
    if let Some(doublings) = attempts.checked_sub(2) {
        sleep((FIRST_PAUSE * 2_u32.pow(doublings)).min(LONGEST_PAUSE)).await;
    }
}
