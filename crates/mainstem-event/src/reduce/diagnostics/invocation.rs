//! The diagnostics of one invocation.

use std::sync::Arc;

use mainstem_message::{AgentKey, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Delivery;
use crate::{AgentEvent, EventKind, Outcome, Timestamp};

/// What one invocation produced, and what became of it. Times are milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InvocationDiagnostics {
    /// The instance; absent for the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_key: Option<AgentKey>,
    /// The agent's id. The key, if nothing but lost events are known of it.
    pub agent_id: Arc<str>,
    /// 0 for the root.
    pub depth: u16,
    /// Which invocation of the instance, from 1; 0 if nothing but lost events are known of it.
    pub turn: u32,
    /// The background task that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Events that it has produced, as they stand in the log.
    pub received: u64,
    /// Those that the reader was handed.
    pub forwarded: u64,
    /// Those that the reader can no longer get. A gap names instances, so that these count for the
    /// latest invocation of one.
    pub lost: u64,
    /// Those that were not read.
    pub unread: u64,
    /// In how many gaps some of its events are.
    pub gaps: u64,
    /// From its start to the first text or thinking; absent if there was none, or it is among what
    /// was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
    /// The same for each of its model calls, from when the model was asked; null where it only
    /// called tools.
    pub call_first_token_ms: Vec<Option<u64>>,
    /// From its start to its end, or to its latest event; absent if the start is lost and it goes
    /// on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_ms: Option<u64>,
    /// How it ended; absent while it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Why it did not stream; absent if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    #[serde(skip)]
    clock: Clock,
}

/// The times that durations are counted from. They are lost when the value is written as JSON.
#[derive(Clone, Debug, Default)]
struct Clock {
    started: Option<Timestamp>,
    asked: Option<Timestamp>,
}

impl PartialEq for Clock {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl InvocationDiagnostics {
    pub(super) fn new(agent_key: Option<AgentKey>) -> Self {
        Self {
            agent_id: agent_key.as_ref().map_or("main", AgentKey::as_str).into(),
            agent_key,
            depth: 0,
            turn: 0,
            task_id: None,
            received: 0,
            forwarded: 0,
            lost: 0,
            unread: 0,
            gaps: 0,
            first_token_ms: None,
            call_first_token_ms: Vec::new(),
            work_ms: None,
            outcome: None,
            fallback: None,
            clock: Clock::default(),
        }
    }

    pub(super) fn lose(&mut self, events: u64) {
        self.gaps += 1;
        self.count(Delivery::Lost, events);
    }

    pub(super) fn count(&mut self, fate: Delivery, events: u64) {
        self.received += events;
        match fate {
            Delivery::Forwarded => self.forwarded += events,
            Delivery::Lost => self.lost += events,
            Delivery::Unread => self.unread += events,
        }
    }

    /// Times the first token of a call; later deltas are not its first.
    fn time_first_token(&mut self, at: Timestamp) {
        let Some(asked) = self.clock.asked.take() else { return };
        let Some(call) = self.call_first_token_ms.last_mut() else { return };
        *call = Some(at.millis_since(asked));
        // The lost events may include the first token.
        if self.lost == 0 && self.first_token_ms.is_none() {
            self.first_token_ms = self.clock.started.map(|started| at.millis_since(started));
        }
    }

    pub(super) fn apply(&mut self, event: &AgentEvent) {
        use EventKind::*;
        self.identify(event);
        self.work_ms = self.clock.started.map(|started| event.at.millis_since(started));
        match &event.kind {
            AgentStart { .. } => (self.clock.started, self.work_ms) = (Some(event.at), Some(0)),
            ModelCallStart { .. } => {
                self.clock.asked = Some(event.at);
                self.call_first_token_ms.push(None);
            }
            TextBlockDelta { .. } | ThinkingBlockDelta { .. } => {
                self.time_first_token(event.at);
            }
            ModelCallEnd { .. } => self.clock.asked = None,
            StreamFallback { reason } => self.fallback = Some(reason.clone()),
            AgentEnd { outcome, duration_ms, .. } => {
                (self.outcome, self.work_ms) = (Some(*outcome), Some(*duration_ms));
            }
            AgentResult { .. }
            | RateLimitWait { .. }
            | RateLimitPassed { .. }
            | ModelRetry { .. }
            | ModelFallback { .. }
            | TextBlockStart { .. }
            | TextBlockEnd { .. }
            | ThinkingBlockStart { .. }
            | ThinkingBlockEnd { .. }
            | DataBlockStart { .. }
            | DataBlockDelta { .. }
            | DataBlockEnd { .. }
            | ToolCallStart { .. }
            | ToolCallDelta { .. }
            | ToolCallEnd { .. }
            | ToolResultStart { .. }
            | ToolResultTextDelta { .. }
            | ToolResultDataDelta { .. }
            | ToolResultEnd { .. }
            | RequireUserConfirm { .. }
            | UserConfirmResult { .. }
            | RequireExternalExecution { .. }
            | ExternalExecutionResult { .. }
            | AllToolsDenied { .. }
            | HintBlock { .. }
            | ExceedMaxIters { .. } => {}
            TaskUpdated { .. }
            | MessageSent { .. }
            | AgentClosed { .. }
            | PlanModeChanged { .. }
            | StateCheckpoint { .. }
            | RunCancelled { .. }
            | Gap { .. }
            | Custom { .. }
            | Unknown { .. } => {}
        }
    }

    /// Applies the identity of the producer; it may become a background task while it runs.
    fn identify(&mut self, event: &AgentEvent) {
        let Some(source) = event.source() else {
            (self.agent_id, self.turn) = (event.agent_id().into(), 1);
            return;
        };
        if self.turn == 0 {
            (self.agent_id, self.depth, self.turn) = (source.agent_id.clone(), source.depth, source.turn);
        }
        if self.task_id != source.task_id {
            self.task_id.clone_from(&source.task_id);
        }
    }
}
