//! Telling a child something: between its turns, or in the midst of one; and stopping it.

use std::{sync::Arc, time::Duration};

use mainstem_event::{CancelReason, EventKind, SendMode};
use mainstem_message::{AgentKey, Message};
use mainstem_react::RunContext;
use tokio::time::timeout;

use crate::{
    error::SpawnError,
    fleet::Fleet,
    spawn::{
        report::{Handover, Report},
        roster::Carried,
    },
};

/// How long a child that is closed has to end.
const ENDED: Duration = Duration::from_secs(30);

impl Fleet {
    /// Tells a child something and attends to what it says to that. What is sent into a turn is
    /// only handed over: whoever began that turn gets its reply.
    pub(crate) async fn tell(
        self: &Arc<Self>,
        cx: &RunContext,
        key: &AgentKey,
        message: String,
        mode: SendMode,
        asked: Option<u64>,
    ) -> Result<Report, SpawnError> {
        if mode != SendMode::Queue && self.roster.is_at_work(key) {
            self.steer(cx, key, &message, mode);
            return Ok(Report::sent(key, mode));
        }
        self.send(cx, key, message, asked).await
    }

    /// The same for code, in the name of the root in whose context this is. Returns at once: a turn
    /// that the message begins is a background task of the root's.
    ///
    /// # Errors
    /// There is no such child, or it was closed.
    pub fn tell_unasked(
        self: &Arc<Self>,
        cx: RunContext,
        key: &AgentKey,
        message: String,
        mode: SendMode,
    ) -> Result<(), SpawnError> {
        let key = self.roster.find(Some(key.as_str()), None, None)?;
        if mode != SendMode::Queue && self.roster.is_at_work(&key) {
            self.steer(&cx, &key, &message, mode);
            return Ok(());
        }
        self.roster.is_open(&key)?;
        let fleet = self.clone();
        self.tasks.drive(async move {
            if let Err(error) = fleet.relaunch_unasked(&cx, &key, message).await {
                tracing::error!(agent = %key, %error, "a message was not sent");
            }
        });
        Ok(())
    }

    async fn relaunch_unasked(
        self: &Arc<Self>,
        cx: &RunContext,
        key: &AgentKey,
        message: String,
    ) -> Result<(), SpawnError> {
        loop {
            self.roster.idle(key).await;
            match self.relaunch(cx, key, message.clone(), None) {
                // Somebody else's message was faster.
                Err(SpawnError::Busy { .. }) => {}
                child => return self.hand_over(cx, child?, Handover::Accepted).await.map(drop),
            }
        }
    }

    /// What a child was given by the run that spawned it; `None` if there is no such child.
    pub fn carried(&self, key: &AgentKey) -> Option<Carried> {
        self.roster.carried(key)
    }

    /// Sends a message into a child's present turn.
    fn steer(&self, cx: &RunContext, key: &AgentKey, message: &str, mode: SendMode) {
        let message = Arc::new(Message::user(message));
        cx.sink().log().emit(EventKind::MessageSent {
            agent_key: key.clone(),
            message: message.clone(),
            mode,
        });
        self.roster.inbox(Some(key)).put(message, mode == SendMode::Interrupt);
    }

    /// Stops a child and everything below it in the name of `by`, and forgets it. Returns when it
    /// has ended.
    pub(crate) async fn close(
        &self,
        cx: &RunContext,
        key: &AgentKey,
        by: &Arc<str>,
    ) -> Result<(), SpawnError> {
        self.cancel(key, by);
        if timeout(ENDED, self.roster.idle(key)).await.is_err() {
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
