//! Constructors of the kinds that get further fields in later versions: the required fields are
//! parameters, `with_x` sets an optional one.

use std::{collections::BTreeMap, sync::Arc};

use mainstem_message::{
    AgentKey, ConfirmId, Failure, Message, RateLimit, RateLimits, Role, StopReason, TaskId, ToolCall,
    ToolCallId, ToolState, Usage,
};
use serde_json::Value;

use super::{CallPurpose, Discarded, EventKind, Outcome, Rollup, RunSettings, SendMode, TaskStatus};

impl EventKind {
    /// An [`AgentStart`](Self::AgentStart) that has no parent, settings or spec.
    pub fn agent_start(name: impl Into<Arc<str>>, role: Role, input: Vec<Arc<Message>>) -> Self {
        Self::AgentStart {
            name: name.into(),
            role,
            input,
            parent_tool_call_id: None,
            settings: None,
            spec_version: None,
            spec: None,
        }
    }

    /// An [`AgentEnd`](Self::AgentEnd) without an error.
    pub fn agent_end(outcome: Outcome, usage: Rollup, duration_ms: u64) -> Self {
        Self::AgentEnd { outcome, error: None, usage: Box::new(usage), duration_ms }
    }

    /// A [`ModelCallStart`](Self::ModelCallStart).
    pub fn model_call_start(model_name: impl Into<Arc<str>>, iteration: u32) -> Self {
        let (purpose, context_window) = (None, None);
        Self::ModelCallStart { model_name: model_name.into(), iteration, purpose, context_window }
    }

    /// A [`ModelCallEnd`](Self::ModelCallEnd) of unknown usage.
    pub fn model_call_end(stop_reason: StopReason, duration_ms: u64) -> Self {
        Self::ModelCallEnd { usage: None, stop_reason, duration_ms, rate_limits: None }
    }

    /// A [`RateLimitWait`](Self::RateLimitWait) of unknown length.
    pub fn rate_limit_wait(limit: RateLimit, ahead: u32) -> Self {
        Self::RateLimitWait { limit, ahead, wait_ms: None, refusal: None }
    }

    /// A [`RateLimitPassed`](Self::RateLimitPassed).
    pub fn rate_limit_passed(waited_ms: u64) -> Self {
        Self::RateLimitPassed { waited_ms }
    }

    /// A [`ModelRetry`](Self::ModelRetry).
    pub fn model_retry(attempt: u32, wait_ms: u64, error: Failure) -> Self {
        Self::ModelRetry { attempt, wait_ms, error, discarded: Discarded::default() }
    }

    /// A [`ModelFallback`](Self::ModelFallback).
    pub fn model_fallback(from: impl Into<Arc<str>>, to: impl Into<Arc<str>>, reason: Failure) -> Self {
        Self::ModelFallback { from: from.into(), to: to.into(), reason, discarded: Discarded::default() }
    }

    /// A [`ToolResultStart`](Self::ToolResultStart).
    pub fn tool_result_start(
        tool_call_id: impl Into<ToolCallId>,
        tool_call_name: impl Into<Arc<str>>,
        input: Value,
    ) -> Self {
        let (tool_call_id, tool_call_name) = (tool_call_id.into(), tool_call_name.into());
        Self::ToolResultStart { tool_call_id, tool_call_name, input }
    }

    /// A [`ToolResultEnd`](Self::ToolResultEnd).
    pub fn tool_result_end(
        tool_call_id: impl Into<ToolCallId>,
        tool_call_name: impl Into<Arc<str>>,
        state: ToolState,
        duration_ms: u64,
    ) -> Self {
        let (tool_call_id, tool_call_name) = (tool_call_id.into(), tool_call_name.into());
        Self::ToolResultEnd { tool_call_id, tool_call_name, state, duration_ms }
    }

    /// A [`RequireUserConfirm`](Self::RequireUserConfirm).
    pub fn require_user_confirm(confirm_id: ConfirmId, tool_calls: Vec<ToolCall>) -> Self {
        Self::RequireUserConfirm { confirm_id, tool_calls, rule: None }
    }

    /// A [`RequireExternalExecution`](Self::RequireExternalExecution).
    pub fn require_external_execution(tool_calls: Vec<ToolCall>) -> Self {
        Self::RequireExternalExecution { tool_calls }
    }

    /// A [`RunCancelled`](Self::RunCancelled).
    pub fn run_cancelled(error: Failure) -> Self {
        Self::RunCancelled { error }
    }

    /// A [`TaskUpdated`](Self::TaskUpdated) without an error.
    pub fn task_updated(task_id: TaskId, from: TaskStatus, to: TaskStatus) -> Self {
        Self::TaskUpdated { task_id, from, to, error: None }
    }

    /// A [`MessageSent`](Self::MessageSent).
    pub fn message_sent(agent_key: AgentKey, message: Arc<Message>, mode: SendMode) -> Self {
        Self::MessageSent { agent_key, message, mode }
    }

    /// A [`StateCheckpoint`](Self::StateCheckpoint).
    pub fn state_checkpoint(agent_key: AgentKey, messages: Vec<Arc<Message>>) -> Self {
        Self::StateCheckpoint { agent_key, messages }
    }

    /// A [`Gap`](Self::Gap) whose events were dropped.
    pub fn gap(from_seq: u64, to_seq: u64, missed: u64, per_agent: BTreeMap<AgentKey, u64>) -> Self {
        Self::Gap { from_seq, to_seq, missed, per_agent, reason: None }
    }
}

impl EventKind {
    /// Marks the end of a block or call as taken back; another kind stays as it is.
    #[must_use]
    pub fn with_discarded(mut self, is_discarded: bool) -> Self {
        if let Self::TextBlockEnd { discarded, .. }
        | Self::ThinkingBlockEnd { discarded, .. }
        | Self::DataBlockEnd { discarded, .. }
        | Self::ToolCallEnd { discarded, .. } = &mut self
        {
            *discarded = is_discarded;
        }
        self
    }

    /// Returns `true` for the end of a block or of a call.
    pub fn ends_part(&self) -> bool {
        matches!(
            self,
            Self::TextBlockEnd { .. }
                | Self::ThinkingBlockEnd { .. }
                | Self::DataBlockEnd { .. }
                | Self::ToolCallEnd { .. }
        )
    }

    /// Returns `true` for the end of a block or of a call that was discarded.
    pub fn is_discarded(&self) -> bool {
        matches!(
            self,
            Self::TextBlockEnd { discarded: true, .. }
                | Self::ThinkingBlockEnd { discarded: true, .. }
                | Self::DataBlockEnd { discarded: true, .. }
                | Self::ToolCallEnd { discarded: true, .. }
        )
    }

    /// Sets what a `ModelRetry` or a `ModelFallback` takes back; another kind stays as it is.
    #[must_use]
    pub fn with_taken_back(mut self, taken_back: Discarded) -> Self {
        if let Self::ModelRetry { discarded, .. } | Self::ModelFallback { discarded, .. } = &mut self {
            *discarded = taken_back;
        }
        self
    }

    /// Returns what a service still allows, from a `ModelCallEnd` with its report.
    pub(crate) fn rate_limits(&self) -> Option<RateLimits> {
        match self {
            Self::ModelCallEnd { rate_limits, .. } => rate_limits.as_deref().copied(),
            _ => None,
        }
    }

    /// Returns what an event takes back: nothing, unless it is a `ModelRetry` or a `ModelFallback`.
    pub fn taken_back(&self) -> Option<&Discarded> {
        match self {
            Self::ModelRetry { discarded, .. } | Self::ModelFallback { discarded, .. } => {
                Some(discarded).filter(|discarded| !discarded.is_empty())
            }
            _ => None,
        }
    }
}

/// Sets an optional field, of the kinds that have it; another kind stays as it is.
macro_rules! optional {
    ($($(#[$doc:meta])* $setter:ident => $($kind:ident)|+ . $field:ident: $type:ty)*) => {
        impl EventKind {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $setter(mut self, value: impl Into<Option<$type>>) -> Self {
                    if let $(Self::$kind { $field, .. })|+ = &mut self {
                        *$field = value.into();
                    }
                    self
                }
            )*
        }
    };
}

optional! {
    /// Sets the parent's call of an `AgentStart`; another kind stays as it is.
    with_parent_tool_call_id => AgentStart.parent_tool_call_id: ToolCallId
    /// Sets the settings of an `AgentStart`; another kind stays as it is.
    with_settings => AgentStart.settings: Arc<RunSettings>
    /// Sets the version of the spec of an `AgentStart`; another kind stays as it is.
    with_spec_version => AgentStart.spec_version: Arc<str>
    /// Sets the spec of an `AgentStart`; another kind stays as it is.
    with_spec => AgentStart.spec: Arc<Value>
    /// Sets the error of an `AgentEnd` or a `TaskUpdated`; another kind stays as it is.
    with_error => AgentEnd | TaskUpdated.error: Failure
    /// Sets the purpose of a `ModelCallStart`; another kind stays as it is.
    with_purpose => ModelCallStart.purpose: CallPurpose
    /// Sets the context window of a `ModelCallStart`; another kind stays as it is.
    with_context_window => ModelCallStart.context_window: u64
    /// Sets the usage of a `ModelCallEnd`; another kind stays as it is.
    with_usage => ModelCallEnd.usage: Usage
    /// Sets what the service still allows, of a `ModelCallEnd`; another kind stays as it is.
    with_rate_limits => ModelCallEnd.rate_limits: Box<RateLimits>
    /// Sets the milliseconds of a `RateLimitWait`; another kind stays as it is.
    with_wait_ms => RateLimitWait.wait_ms: u64
    /// Sets the rule of a `RequireUserConfirm`; another kind stays as it is.
    with_rule => RequireUserConfirm.rule: Arc<str>
    /// Sets why the service refused the call of a `RateLimitWait`; another kind stays as it is.
    with_refusal => RateLimitWait.refusal: Failure
    /// Sets why the events of a `Gap` can't be read; another kind stays as it is.
    with_reason => Gap.reason: String
}
