//! Sends messages to a child, between its turns or into the present one, and stops it.

use std::{sync::Arc, time::Duration};

use mainstem_event::{CancelReason, EventKind, SendMode, SessionLog, fold::ROOT};
use mainstem_message::{AgentKey, Message};
use mainstem_react::RunContext;
use tokio::time::timeout;

use crate::{
    error::SpawnError,
    fleet::Fleet,
    member::Member,
    spawn::{
        report::{Handover, Report},
        roster::Carried,
    },
};

/// How long `agent_close` waits for a child to end.
const CLOSING: Duration = Duration::from_secs(30);

impl Member {
    /// Sends a child a message. One that enters a running turn is only handed over: the call that
    /// began the turn gets its reply. Otherwise waits for the reply.
    pub(crate) async fn tell(
        &self,
        cx: &RunContext,
        key: &AgentKey,
        message: String,
        mode: SendMode,
        asked: Option<u64>,
    ) -> Result<Report, SpawnError> {
        if mode != SendMode::Queue && self.fleet.roster.is_running(key) {
            self.fleet.roster.check_reads_messages(key)?;
            self.fleet.steer(cx, key, &message, mode);
            return Ok(Report::sent(key, mode));
        }
        self.send(cx, key, message, asked).await
    }

    /// Starts a turn with a message as a background task, once the child is idle.
    async fn relaunch_in_background(
        &self,
        cx: &RunContext,
        key: &AgentKey,
        message: String,
    ) -> Result<(), SpawnError> {
        loop {
            self.fleet.roster.idle(key).await;
            match self.relaunch(cx, key, message.clone(), None) {
                // Another message was first.
                Err(SpawnError::Busy { .. }) => {}
                child => return self.hand_over(cx, child?, Handover::Accepted).await.map(drop),
            }
        }
    }
}

impl Fleet {
    /// Sends a child a message in the name of the root, whose context this is. Returns at once: a
    /// turn that the message begins is a background task of the root's.
    ///
    /// # Errors
    /// The child does not exist, or was closed; the context has no fleet.
    pub fn tell(
        self: &Arc<Self>,
        cx: RunContext,
        key: &AgentKey,
        message: String,
        mode: SendMode,
    ) -> Result<(), SpawnError> {
        let key = self.roster.find(Some(key.as_str()), None, None)?;
        if mode != SendMode::Queue && self.roster.is_running(&key) {
            self.roster.check_reads_messages(&key)?;
            self.steer(&cx, &key, &message, mode);
            return Ok(());
        }
        self.roster.check_open(&key)?;
        let root = Member::of(&cx)?.clone();
        self.tasks.drive(async move {
            if let Err(error) = root.relaunch_in_background(&cx, &key, message).await {
                tracing::error!(agent = %key, %error, "a message was not sent");
            }
        });
        Ok(())
    }

    /// Sends a message into the root's running turn, which reads it before its next model call, or
    /// at once with [`SendMode::Interrupt`]. If the turn ends before that, the turn that resumes it
    /// reads it, or the next one, before its own input.
    pub fn tell_root(&self, log: &SessionLog, message: String, mode: SendMode) {
        let message = Arc::new(Message::user(message));
        log.emit(EventKind::message_sent(AgentKey::from_lossy(ROOT), message.clone(), mode));
        self.roster.inbox(None).put(message, mode == SendMode::Interrupt);
    }

    /// Notes that the root's turn has ended.
    pub fn end_root_turn(&self) {
        self.roster.inbox(None).end_turn();
    }

    /// Takes the messages that earlier turns of the root have not read.
    pub fn take_unread(&self) -> Vec<Arc<Message>> {
        self.roster.inbox(None).take_unread()
    }

    /// Returns what the run that spawned a child gave it; `None` if the child does not exist.
    pub fn carried(&self, key: &AgentKey) -> Option<Carried> {
        self.roster.carried(key)
    }

    /// Sends a message into a child's present turn.
    fn steer(&self, cx: &RunContext, key: &AgentKey, message: &str, mode: SendMode) {
        let message = Arc::new(Message::user(message));
        cx.sink().log().emit(EventKind::message_sent(key.clone(), message.clone(), mode));
        self.roster.inbox(Some(key)).put(message, mode == SendMode::Interrupt);
    }

    /// Stops a child and everything below it in the name of `by`, and closes it. Returns when it
    /// has ended.
    pub(crate) async fn close(
        &self,
        cx: &RunContext,
        key: &AgentKey,
        by: &Arc<str>,
    ) -> Result<(), SpawnError> {
        self.cancel(key, by);
        if timeout(CLOSING, self.roster.idle(key)).await.is_err() {
            return Err(SpawnError::StillEnding { key: key.to_string() });
        }
        if self.roster.close(key) {
            cx.sink().log().emit(EventKind::AgentClosed { agent_key: key.clone() });
        }
        Ok(())
    }

    /// Cancels a child and everything below it, including its background tasks, in the name of `by`
    /// (words that follow "cancelled by"). Returns at once; `false` if neither the child nor a
    /// descendant is running.
    pub fn cancel(&self, key: &AgentKey, by: &Arc<str>) -> bool {
        let agent = self.roster.name(key);
        let below = self.roster.cancellations_below(key);
        let reason = |agent| CancelReason::Subtree { agent, by: by.clone() };
        below.iter().for_each(|one| one.cancel(reason(agent.clone())));
        !below.is_empty()
    }
}
