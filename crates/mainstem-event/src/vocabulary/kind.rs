//! The kinds of events: one table from which the enum, its JSON and its schema come.

mod build;
mod examples;
#[macro_use]
mod macros;
mod parts;
mod settings;

pub use self::{
    parts::{CallPurpose, ConfirmResult, Discarded, Outcome, Rollup, SendMode, TaskStatus},
    settings::{Background, OnLost, RunBudget, RunSettings},
};

use std::{collections::BTreeMap, sync::Arc};

use mainstem_message::{
    AgentKey, BlockId, ConfirmId, ContentBlock, Failure, Message, Opaque, RateLimit, RateLimits, Role,
    StopReason, TaskId, ToolCall, ToolCallId, ToolResult, ToolState, Usage,
};
use schemars::Schema;
use serde_json::Value;

kinds! {
    /// An invocation begins: always its first event.
    AgentStart = "AGENT_START" #[non_exhaustive] {
        /// The agent's name.
        name: Arc<str> = "name",
        /// The role of its messages.
        role: Role = "role",
        /// The input; earlier invocations have the history before.
        input: Vec<Arc<Message>> = "input",
        /// The parent's call that caused it.
        parent_tool_call_id: Option<ToolCallId> = "parentToolCallId" optional,
        /// The caller's settings of the run; only in the first event of its root, if there are any.
        settings: Option<Arc<RunSettings>> = "settings" optional,
        /// The version of the declaration that the agent was spawned with; only in the first
        /// invocation of a child.
        spec_version: Option<Arc<str>> = "specVersion" optional,
        /// That declaration, in the first event that names the version; a server leaves it out for
        /// its readers.
        spec: Option<Arc<Value>> = "spec" optional,
    }
    /// The invocation's answer.
    AgentResult = "AGENT_RESULT" {
        /// Its last assistant message.
        result: Arc<Message> = "result",
    }
    /// An invocation ended: always its last event, once, whatever the outcome.
    AgentEnd = "AGENT_END" #[non_exhaustive] durable {
        /// The outcome.
        outcome: Outcome = "outcome",
        /// The error.
        error: Option<Failure> = "error" optional,
        /// Its usage and cost, alone and with its children.
        usage: Box<Rollup> = "usage",
        /// Milliseconds since its start.
        duration_ms: u64 = "durationMs",
    }
    /// A model call begins.
    ModelCallStart = "MODEL_CALL_START" #[non_exhaustive] {
        /// The model's name.
        model_name: Arc<str> = "modelName",
        /// The number of the call in this invocation, from 1.
        iteration: u32 = "iteration",
        /// The purpose of a call that is not for the agent's answer. Such a call has no blocks; its
        /// usage and cost count.
        purpose: Option<CallPurpose> = "purpose" optional,
        /// The longest prompt of the model in tokens, if it is known.
        context_window: Option<u64> = "contextWindow" optional,
    }
    /// A model's answer is complete, or was cut.
    ModelCallEnd = "MODEL_CALL_END" #[non_exhaustive] {
        /// The usage that the service reported.
        usage: Option<Usage> = "usage" optional,
        /// Why the model stopped.
        stop_reason: StopReason = "stopReason",
        /// Milliseconds since the call began.
        duration_ms: u64 = "durationMs",
        /// What the service still allows, as it reported when the answer began.
        rate_limits: Option<Box<RateLimits>> = "rateLimits" optional,
    }
    /// A model call waits for a limit on the rate of calls before it is sent. All agents with the
    /// same model and key share the limit.
    RateLimitWait = "RATE_LIMIT_WAIT" #[non_exhaustive] {
        /// The limit that holds back the first of the waiting calls.
        limit: RateLimit = "limit",
        /// How many calls wait before this one.
        ahead: u32 = "ahead",
        /// Milliseconds until the first of them is sent, if they are known.
        wait_ms: Option<u64> = "waitMs" optional,
        /// Why the service refused the call, if it was sent before.
        refusal: Option<Failure> = "refusal" optional,
    }
    /// A model call is sent, after it has waited for a limit on the rate of calls.
    RateLimitPassed = "RATE_LIMIT_PASSED" #[non_exhaustive] {
        /// Milliseconds that it has waited.
        waited_ms: u64 = "waitedMs",
    }
    /// A model call failed and is tried again.
    ModelRetry = "MODEL_RETRY" #[non_exhaustive] {
        /// The attempt that failed, from 1.
        attempt: u32 = "attempt",
        /// Milliseconds until the next one.
        wait_ms: u64 = "waitMs",
        /// The error.
        error: Failure = "error",
        /// What the failed attempt has said, which is taken back.
        discarded: Discarded = "discarded" optional,
    }
    /// A model call failed, and another model is called.
    ModelFallback = "MODEL_FALLBACK" #[non_exhaustive] {
        /// The model that failed.
        from: Arc<str> = "from",
        /// The model called now.
        to: Arc<str> = "to",
        /// The error.
        reason: Failure = "reason",
        /// What the failed attempt has said, which is taken back.
        discarded: Discarded = "discarded" optional,
    }
    /// A text block begins.
    TextBlockStart = "TEXT_BLOCK_START" content {
        /// The block.
        block_id: BlockId = "blockId",
    }
    /// A text block continues.
    TextBlockDelta = "TEXT_BLOCK_DELTA" content {
        /// The block.
        block_id: BlockId = "blockId",
        /// The added text.
        delta: String = "delta",
    }
    /// A text block ends.
    TextBlockEnd = "TEXT_BLOCK_END" content {
        /// The block.
        block_id: BlockId = "blockId",
        /// What the vendor requires back with it.
        opaque: Opaque = "opaque" optional,
        /// Whether it is taken back: the call failed within it, and is repeated.
        discarded: bool = "discarded" optional,
    }
    /// A thinking block begins.
    ThinkingBlockStart = "THINKING_BLOCK_START" content {
        /// The block.
        block_id: BlockId = "blockId",
    }
    /// A thinking block continues.
    ThinkingBlockDelta = "THINKING_BLOCK_DELTA" content {
        /// The block.
        block_id: BlockId = "blockId",
        /// The added text.
        delta: String = "delta",
    }
    /// A thinking block ends.
    ThinkingBlockEnd = "THINKING_BLOCK_END" content {
        /// The block.
        block_id: BlockId = "blockId",
        /// Signatures and encrypted forms that the vendor requires back.
        opaque: Opaque = "opaque" optional,
        /// Whether it is taken back: the call failed within it, and is repeated.
        discarded: bool = "discarded" optional,
    }
    /// An image, sound or file begins.
    DataBlockStart = "DATA_BLOCK_START" content {
        /// The block.
        block_id: BlockId = "blockId",
        /// Its media type.
        media_type: String = "mediaType",
    }
    /// More bytes of an image, sound or file.
    DataBlockDelta = "DATA_BLOCK_DELTA" content {
        /// The block.
        block_id: BlockId = "blockId",
        /// Base64; the fragments joined are one base64 text.
        delta: String = "delta",
    }
    /// An image, sound or file ends.
    DataBlockEnd = "DATA_BLOCK_END" content {
        /// The block.
        block_id: BlockId = "blockId",
        /// What the vendor requires back with it.
        opaque: Opaque = "opaque" optional,
        /// Whether it is taken back: the call failed within it, and is repeated.
        discarded: bool = "discarded" optional,
    }
    /// The model begins a tool call.
    ToolCallStart = "TOOL_CALL_START" {
        /// The call.
        tool_call_id: ToolCallId = "toolCallId",
        /// The tool.
        tool_call_name: Arc<str> = "toolCallName",
    }
    /// The arguments continue.
    ToolCallDelta = "TOOL_CALL_DELTA" content {
        /// The call.
        tool_call_id: ToolCallId = "toolCallId",
        /// A fragment of JSON.
        delta: String = "delta",
    }
    /// The call is complete, or was cut.
    ToolCallEnd = "TOOL_CALL_END" {
        /// The call.
        tool_call_id: ToolCallId = "toolCallId",
        /// The tool.
        tool_call_name: Arc<str> = "toolCallName",
        /// What the vendor requires back with it.
        opaque: Opaque = "opaque" optional,
        /// Whether it is taken back: the call failed within it, and is repeated.
        discarded: bool = "discarded" optional,
    }
    /// A tool starts.
    ToolResultStart = "TOOL_RESULT_START" #[non_exhaustive] {
        /// The call.
        tool_call_id: ToolCallId = "toolCallId",
        /// The tool.
        tool_call_name: Arc<str> = "toolCallName",
        /// The executed arguments; null if they were not JSON.
        input: Value = "input",
    }
    /// A part of the result's text.
    ToolResultTextDelta = "TOOL_RESULT_TEXT_DELTA" content {
        /// The call.
        tool_call_id: ToolCallId = "toolCallId",
        /// The added text.
        delta: String = "delta",
    }
    /// Another part of the result.
    ToolResultDataDelta = "TOOL_RESULT_DATA_DELTA" content {
        /// The call.
        tool_call_id: ToolCallId = "toolCallId",
        /// The part.
        data: Box<ContentBlock> = "data",
    }
    /// The result is complete. It is emitted when its tool ends, before the rest of its batch.
    ToolResultEnd = "TOOL_RESULT_END" #[non_exhaustive] {
        /// The call.
        tool_call_id: ToolCallId = "toolCallId",
        /// The tool.
        tool_call_name: Arc<str> = "toolCallName",
        /// The state of the result.
        state: ToolState = "state",
        /// Milliseconds since its start.
        duration_ms: u64 = "durationMs",
    }
    /// Tool calls require a person's approval; only these wait.
    RequireUserConfirm = "REQUIRE_USER_CONFIRM" #[non_exhaustive] durable {
        /// The id for the answer.
        confirm_id: ConfirmId = "confirmId",
        /// The calls.
        tool_calls: Vec<ToolCall> = "toolCalls",
        /// The rule that asks; absent if the tool may change something and no rule is about the
        /// call, or if the agent has a question of its own.
        rule: Option<Arc<str>> = "rule" optional,
    }
    /// A person answered a request for approval, or it was withdrawn: its agent was stopped, or its
    /// process ended. Each request has one before its agent ends.
    UserConfirmResult = "USER_CONFIRM_RESULT" durable {
        /// The request.
        confirm_id: ConfirmId = "confirmId",
        /// The decisions.
        confirm_results: Vec<ConfirmResult> = "confirmResults",
    }
    /// The caller has to run these tool calls; only these wait.
    RequireExternalExecution = "REQUIRE_EXTERNAL_EXECUTION" #[non_exhaustive] durable {
        /// The calls.
        tool_calls: Vec<ToolCall> = "toolCalls",
    }
    /// The caller returned the results of such calls.
    ExternalExecutionResult = "EXTERNAL_EXECUTION_RESULT" durable {
        /// Their results.
        tool_results: Vec<ToolResult> = "toolResults",
    }
    /// Rules or a person refused every call of a turn. Emitted once, after the last result.
    AllToolsDenied = "ALL_TOOLS_DENIED" {
        /// The calls.
        denied_tool_calls: Vec<ToolCall> = "deniedToolCalls",
    }
    /// A queued run was cancelled before it began. The run has no other event.
    RunCancelled = "RUN_CANCELLED" #[non_exhaustive] durable {
        /// The reason.
        error: Failure = "error",
    }
    /// The harness adds a text to the conversation.
    HintBlock = "HINT_BLOCK" {
        /// The block.
        block_id: BlockId = "blockId",
        /// The part of the harness that adds it.
        hint_source: String = "hintSource",
        /// The text, as the model reads it in a user message.
        hint: String = "hint",
    }
    /// The limit of iterations is reached; one last call without tools follows.
    ExceedMaxIters = "EXCEED_MAX_ITERS" {
        /// The limit.
        max_iters: u32 = "maxIters",
        /// The number of iterations.
        current_iter: u32 = "currentIter",
    }
    /// A model or child can't stream: its output comes in one piece.
    StreamFallback = "STREAM_FALLBACK" {
        /// The reason.
        reason: String = "reason",
    }
    /// A background task changed.
    TaskUpdated = "TASK_UPDATED" #[non_exhaustive] durable {
        /// The task.
        task_id: TaskId = "taskId",
        /// The status before.
        from: TaskStatus = "from",
        /// The status now.
        to: TaskStatus = "to",
        /// The error.
        error: Option<Failure> = "error" optional,
    }
    /// A message was sent to an agent.
    MessageSent = "MESSAGE_SENT" #[non_exhaustive] {
        /// The receiver.
        agent_key: AgentKey = "agentKey",
        /// The message.
        message: Arc<Message> = "message",
        /// When the receiver reads it.
        mode: SendMode = "mode",
    }
    /// A child was closed: it accepts no further messages.
    AgentClosed = "AGENT_CLOSED" {
        /// The child.
        agent_key: AgentKey = "agentKey",
    }
    /// Plan mode begins or ends: in plan mode only tools that change nothing run.
    PlanModeChanged = "PLAN_MODE_CHANGED" durable {
        /// Whether plan mode is on.
        active: bool = "active",
    }
    /// Compaction replaced an agent's conversation, or data that a service did not accept left it.
    StateCheckpoint = "STATE_CHECKPOINT" #[non_exhaustive] {
        /// The agent; `root` for the root.
        agent_key: AgentKey = "agentKey",
        /// The whole conversation from now on, also in place of earlier turns.
        messages: Vec<Arc<Message>> = "messages",
    }
    /// The events that a reader missed. Made for that reader and not stored; its `seq` is that of
    /// the last missed event.
    Gap = "GAP" #[non_exhaustive] {
        /// The first missed event.
        from_seq: u64 = "fromSeq",
        /// The last missed event.
        to_seq: u64 = "toSeq",
        /// The number of missed events.
        missed: u64 = "missed",
        /// The number for each agent, by `agent_key`; the root is `root`. Empty if it is unknown.
        per_agent: BTreeMap<AgentKey, u64> = "perAgent",
        /// Why recorded events can't be read, if they are damaged.
        reason: Option<String> = "reason" optional,
    }
    /// An event of a tool or of the application; `server_tool` is a call of a tool of the model's
    /// vendor, with its `tool` and `input`.
    Custom = "CUSTOM" {
        /// The name.
        name: String = "name",
        /// The value.
        value: Value = "value",
    }
}

/// One line of the table of kinds.
pub(crate) struct Row {
    pub(crate) tag: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) fields: Vec<Field>,
}

/// One field of a kind.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) required: bool,
    pub(crate) schema: Schema,
}

#[cfg(test)]
mod tests;
