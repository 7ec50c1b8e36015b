//! Waits for a reply: the session's stream of events, the stream again after it was lost, and the
//! session's messages where the service no longer has the events.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use mainstem_sse::{SseError, SseEvent};
use tokio::time::{sleep, timeout};

use super::{
    control::Progress,
    questions::Questions,
    reply::Reply,
    server::Session,
    wire::{Block, Event, Message, Messages, Status},
};
use crate::{RemoteError, RemoteEvent, http::Frames};

/// How often a stream is opened again without an event between.
const ATTEMPTS: u32 = 8;

/// The pause before the third attempt, and the longest one before a later one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// After how long without an event the status is requested: a session that has been left by its run
/// has a stream that stays silent.
const FIRST_QUIET: Duration = Duration::from_millis(500);
const QUIET: Duration = Duration::from_secs(5);

/// How long the last events may take once the session is idle.
const LAST_EVENTS: Duration = Duration::from_millis(500);

/// How often an idle session is looked at before its reply is given up that has not begun.
const NOT_BEGUN: u32 = 6;

const MISSING: &str = "the service no longer has some events of the reply";

/// A reply that is followed to its end.
pub(super) struct Follow {
    session: Session,
    /// The message that it answers.
    message: String,
    reply: Reply,
    questions: Arc<Questions>,
    progress: Arc<Progress>,
    frames: Option<Box<Frames>>,
    /// The event behind which the reply begins.
    after: Option<String>,
    /// The events that were read.
    seen: HashSet<String>,
    /// Whether the next event is the first one of a stream that was opened again.
    is_again: bool,
    /// Whether the stream lacks events that are not stored yet, so that the rest comes from the
    /// message.
    is_blind: bool,
    /// The attempts since the last event.
    attempts: u32,
    /// How often the session was idle without the reply.
    missed: u32,
    quiet: Duration,
    /// Whether the session is idle, while its last events may be on their way.
    is_idle: bool,
    events: VecDeque<RemoteEvent>,
}

impl Follow {
    /// Follows the reply to a message of this id.
    pub(super) fn new(
        session: Session,
        message: &str,
        reply: Reply,
        questions: Arc<Questions>,
        progress: Arc<Progress>,
    ) -> Self {
        let (after, seen, is_again, is_blind) = Default::default();
        let (attempts, missed, is_idle, events) = Default::default();
        if reply.id().is_some() {
            progress.begin();
        }
        Self {
            session,
            message: message.to_owned(),
            reply,
            questions,
            progress,
            frames: None,
            after,
            seen,
            is_again,
            is_blind,
            attempts,
            missed,
            quiet: FIRST_QUIET,
            is_idle,
            events,
        }
    }

    /// Sets the event behind which the reply begins.
    pub(super) fn behind(self, after: Option<String>) -> Self {
        Self { after, ..self }
    }

    /// Returns the events of the reply, to its end. Dropping the stream closes the connection.
    pub(super) fn into_events(self) -> BoxStream<'static, Result<RemoteEvent, RemoteError>> {
        let next = |mut follow: Self| async move { Ok(follow.next().await?.map(|event| (event, follow))) };
        stream::try_unfold(self, next).boxed()
    }

    async fn next(&mut self) -> Result<Option<RemoteEvent>, RemoteError> {
        loop {
            self.events.extend(self.reply.take());
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            if self.reply.is_over() {
                self.progress.end();
                return Ok(None);
            }
            match &self.frames {
                _ if self.is_blind => self.poll().await?,
                None => self.open().await?,
                Some(_) => self.read().await?,
            }
        }
    }

    /// Opens the stream. After a lost one, the status is requested first: an idle session has a
    /// message with all of the reply.
    async fn open(&mut self) -> Result<(), RemoteError> {
        if self.attempts > 0 && self.session.status().await? == Status::Idle {
            return self.settle().await;
        }
        if let Some(doublings) = self.attempts.checked_sub(2) {
            sleep((FIRST_PAUSE * 2_u32.pow(doublings)).min(LONGEST_PAUSE)).await;
        }
        self.is_again = self.attempts > 0;
        self.quiet = FIRST_QUIET;
        self.frames = Some(Box::new(self.session.events(self.after.as_deref()).await?));
        Ok(())
    }

    async fn read(&mut self) -> Result<(), RemoteError> {
        let Some(frames) = &mut self.frames else { return Ok(()) };
        let patience = if self.is_idle { LAST_EVENTS } else { self.quiet };
        match timeout(patience, frames.next()).await {
            Ok(Some(Ok(frame))) => self.take(&frame).await,
            Ok(Some(Err(SseError::TooLarge(error)))) => {
                self.go_blind(&error.to_string());
                Ok(())
            }
            Ok(Some(Err(error))) => self.lose(&error.to_string()),
            Ok(None) => self.lose("the stream ended before the reply did"),
            Err(_) => self.look().await,
        }
    }

    async fn take(&mut self, frame: &SseEvent) -> Result<(), RemoteError> {
        let event: Event = serde_json::from_str(&frame.data)
            .map_err(|error| self.invalid(&format!("an event is not one of a session: {error}")))?;
        // A stream that is opened again repeats what the service still has.
        if !event.id.is_empty() && !self.seen.insert(event.id.clone()) {
            self.is_again = false;
            return Ok(());
        }
        if std::mem::take(&mut self.is_again) && self.reply.id().is_some() && !self.catch_up().await? {
            self.go_blind(MISSING);
            return Ok(());
        }
        self.reply.read(&event, &frame.data);
        if self.reply.id().is_some() {
            self.progress.begin();
        }
        (self.attempts, self.missed, self.quiet) = (0, 0, QUIET);
        Ok(())
    }

    /// Says what is stored, because the service no longer has the events; returns `false` if
    /// nothing is.
    async fn catch_up(&mut self) -> Result<bool, RemoteError> {
        let page = self.session.messages_of(&self.message).await?;
        let Some(message) = answer_to(&page, &self.message) else { return Ok(false) };
        self.reply.fall_back(MISSING);
        self.reply.catch_up(message);
        Ok(true)
    }

    /// Leaves the stream: what it lacks is in the message, once that is stored.
    fn go_blind(&mut self, why: &str) {
        (self.is_blind, self.frames, self.quiet) = (true, None, FIRST_QUIET);
        self.reply.fall_back(why);
    }

    /// Waits for the message.
    async fn poll(&mut self) -> Result<(), RemoteError> {
        sleep(if self.is_idle { LAST_EVENTS } else { self.quiet }).await;
        self.look().await
    }

    fn lose(&mut self, cause: &str) -> Result<(), RemoteError> {
        self.frames = None;
        self.attempts += 1;
        if self.attempts <= ATTEMPTS { Ok(()) } else { Err(self.lost(cause)) }
    }

    /// The stream is silent: looks what the session does.
    async fn look(&mut self) -> Result<(), RemoteError> {
        if self.is_idle {
            return self.settle().await;
        }
        self.quiet = (self.quiet * 2).min(QUIET);
        match self.session.status().await? {
            Status::Running => {}
            Status::Idle => self.is_idle = true,
            // The stream may not have told the question, if it was opened behind it.
            Status::AwaitingPermission | Status::AwaitingExternalResult => {
                let page = self.session.messages_of(&self.message).await?;
                if let Some(message) = answer_to(&page, &self.message) {
                    self.reply.catch_up(message);
                    self.progress.begin();
                    answer_again(&self.session, &self.questions, message).await;
                }
            }
        }
        Ok(())
    }

    /// Reads the message of a reply whose end the stream did not tell.
    async fn settle(&mut self) -> Result<(), RemoteError> {
        self.is_idle = false;
        let page = self.session.messages_of(&self.message).await?;
        match answer_to(&page, &self.message) {
            Some(message) if message.finished_reason.is_some() => {
                if !self.is_blind {
                    self.reply.fall_back(MISSING);
                }
                self.reply.catch_up(message);
                Ok(())
            }
            _ if self.missed < NOT_BEGUN => {
                self.missed += 1;
                sleep(FIRST_PAUSE).await;
                Ok(())
            }
            Some(_) => Err(self.lost("the session is idle, and the reply has not ended")),
            None => Err(self.lost("the session is idle, and the message has no reply")),
        }
    }

    fn lost(&self, cause: &str) -> RemoteError {
        RemoteError::unreachable(format!("{}: {cause}", self.session.server.connection.shown()))
    }

    fn invalid(&self, what: &str) -> RemoteError {
        self.session.server.connection.invalid(what)
    }
}

/// Sends the answers again that were lost on their way. What the service refuses was answered.
async fn answer_again(session: &Session, questions: &Questions, message: &Message) {
    let waits = |block: &&Block| matches!(block.state.as_deref(), Some("asking" | "submitted"));
    let waiting: Vec<_> = message.content.iter().filter(waits).map(|block| block.id.as_str()).collect();
    for event in questions.overdue(&waiting) {
        if let Err(RemoteError::Unreachable { .. }) = session.chat(&event).await {
            questions.lose(event);
        }
    }
}

/// Returns the reply to a message of this id.
pub(super) fn answer_to<'a>(page: &'a Messages, message: &str) -> Option<&'a Message> {
    let at = page.messages.iter().position(|one| one.id == message)?;
    page.messages[at + 1..].iter().find(|one| one.role == "assistant")
}
