//! Types of the fields of kinds.

use mainstem_message::{BlockId, ToolCall, ToolCallId, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an invocation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// With an answer.
    Success,
    /// With an error.
    Error,
    /// It was cancelled.
    Cancelled,
    /// It took too long.
    Timeout,
    /// It used up its iterations; there may be an answer.
    MaxIterations,
    /// It waits for its caller.
    Suspended,
}

impl Outcome {
    /// Returns the word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
            Self::MaxIterations => "max_iterations",
            Self::Suspended => "suspended",
        }
    }
}

/// What an invocation cost. Money is in millionths of a US dollar; where a price or a usage is
/// unknown, so is the sum, which is never the same as nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollup {
    /// Its own model calls.
    pub own: Usage,
    /// And those of every child that ended before it.
    pub inclusive: Usage,
    /// The money for its own model calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_cost: Option<u64>,
    /// And for those of every child that ended before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inclusive_cost: Option<u64>,
}

impl Rollup {
    /// Returns the rollup of an invocation that has used nothing, at a cost of 0. The default's
    /// cost is unknown.
    pub fn nothing() -> Self {
        Self { own_cost: Some(0), inclusive_cost: Some(0), ..Self::default() }
    }

    /// Adds a model call of the invocation itself.
    pub fn add_own(&mut self, usage: Usage, cost: Option<u64>) {
        self.own += usage;
        self.inclusive += usage;
        (self.own_cost, self.inclusive_cost) = (plus(self.own_cost, cost), plus(self.inclusive_cost, cost));
    }

    /// Adds a child that ended, with all agents below it.
    pub fn add_child(&mut self, child: &Self) {
        self.inclusive += child.inclusive;
        self.inclusive_cost = plus(self.inclusive_cost, child.inclusive_cost);
    }
}

fn plus(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.saturating_add(b?))
}

/// What a failed attempt of a model call has said and its repetition takes back: readers remove it,
/// and the conversation does not have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Discarded {
    /// Its text, thinking and data blocks, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockId>,
    /// Its tool calls, in order. None of them has begun.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCallId>,
}

impl Discarded {
    /// Creates it from blocks and tool calls.
    pub fn new(blocks: Vec<BlockId>, tool_calls: Vec<ToolCallId>) -> Self {
        Self { blocks, tool_calls }
    }

    /// Returns `true` if nothing is taken back.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.tool_calls.is_empty()
    }
}

/// The answer about one call, or that there will be none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ConfirmResult {
    /// Whether it may run.
    pub confirmed: bool,
    /// The call, with the arguments to run.
    pub tool_call: ToolCall,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the request was withdrawn before a person answered it: its agent was stopped, or its
    /// process ended. The call does not run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdrawn: bool,
}

impl ConfirmResult {
    /// Confirms the call as it is here: its arguments may have been edited.
    pub fn confirmed(tool_call: ToolCall) -> Self {
        Self { confirmed: true, tool_call, reason: None, withdrawn: false }
    }

    /// Denies the call, with the reason.
    pub fn denied(tool_call: ToolCall, reason: impl Into<String>) -> Self {
        Self { confirmed: false, tool_call, reason: Some(reason.into()), withdrawn: false }
    }

    /// Withdraws the request about the call, with the reason.
    pub fn withdrawn(tool_call: ToolCall, reason: impl Into<String>) -> Self {
        Self { withdrawn: true, ..Self::denied(tool_call, reason) }
    }
}

/// Where a background task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskStatus {
    /// Not yet begun.
    Pending,
    /// It is running.
    Running,
    /// A person is asked.
    WaitingConfirm,
    /// Done.
    Completed,
    /// Failed.
    Failed,
    /// Stopped.
    Cancelled,
}

impl TaskStatus {
    /// Returns `true` if the status is final.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// Returns the word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::WaitingConfirm => "waiting_confirm",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What a model call is for, other than the agent's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallPurpose {
    /// The summary of a conversation that becomes too long.
    Compaction,
}

impl CallPurpose {
    /// Returns the word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compaction => "compaction",
        }
    }
}

/// When a message to an agent is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SendMode {
    /// As a turn of its own, after the present one.
    #[default]
    Queue,
    /// Before the next model call of the present turn.
    Steer,
    /// At once; the present model call is dropped.
    Interrupt,
}

impl SendMode {
    /// Returns the word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Steer => "steer",
            Self::Interrupt => "interrupt",
        }
    }
}
