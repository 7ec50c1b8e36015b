//! The kinds of events: one table from which the enum, its JSON and its schema come.

mod examples;
mod parts;
mod settings;
#[macro_use]
mod table;

pub use self::{
    parts::{ConfirmResult, Outcome, Rollup, SendMode, TaskStatus},
    settings::{Background, RunBudget, RunSettings},
};

use std::{collections::BTreeMap, sync::Arc};

use mainstem_message::{
    AgentKey, BlockId, ConfirmId, ContentBlock, Failure, Message, Opaque, Role, StopReason, TaskId, ToolCall,
    ToolCallId, ToolResult, ToolState, Usage,
};
use schemars::Schema;
use serde_json::Value;

kinds! {
    /// An invocation begins: always its first event.
    AgentStart = "AGENT_START" {
        /// The agent's name.
        name: Arc<str> = "name",
        /// What its messages are spoken as.
        role: Role = "role",
        /// What it was asked; the history before is in earlier invocations.
        input: Vec<Arc<Message>> = "input",
        /// The parent's call that caused it.
        parent_tool_call_id: Option<ToolCallId> = "parentToolCallId" optional,
        /// What the caller has set for the run; only at its root, and only if there is something.
        settings: Option<Arc<RunSettings>> = "settings" optional,
        /// Which version of its declaration the agent was spawned as; only in the first invocation
        /// of a child.
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
    /// An invocation ended: always its last event, and exactly one, however it ended.
    AgentEnd = "AGENT_END" durable {
        /// How it ended.
        outcome: Outcome = "outcome",
        /// What went wrong.
        error: Option<Failure> = "error" optional,
        /// What it cost, alone and with its children.
        usage: Rollup = "usage",
        /// Milliseconds since its start.
        duration_ms: u64 = "durationMs",
    }
    /// A model is asked.
    ModelCallStart = "MODEL_CALL_START" {
        /// The model's name.
        model_name: Arc<str> = "modelName",
        /// Which call of this invocation, from 1.
        iteration: u32 = "iteration",
    }
    /// A model's answer is complete, or was cut.
    ModelCallEnd = "MODEL_CALL_END" {
        /// What the service counted, if it did.
        usage: Option<Usage> = "usage" optional,
        /// Why it stopped.
        stop_reason: StopReason = "stopReason",
        /// Milliseconds since it was asked.
        duration_ms: u64 = "durationMs",
    }
    /// A model call failed before its first delta and is tried again.
    ModelRetry = "MODEL_RETRY" {
        /// The attempt that failed, from 1.
        attempt: u32 = "attempt",
        /// Milliseconds until the next one.
        wait_ms: u64 = "waitMs",
        /// What happened.
        error: Failure = "error",
    }
    /// A model call failed before its first delta and another model is asked.
    ModelFallback = "MODEL_FALLBACK" {
        /// The model that failed.
        from: Arc<str> = "from",
        /// The model asked now.
        to: Arc<str> = "to",
        /// What happened.
        reason: Failure = "reason",
    }
    /// Prose begins.
    TextBlockStart = "TEXT_BLOCK_START" {
        /// The block.
        block_id: BlockId = "blockId",
    }
    /// Prose goes on.
    TextBlockDelta = "TEXT_BLOCK_DELTA" {
        /// The block.
        block_id: BlockId = "blockId",
        /// What is added.
        delta: String = "delta",
    }
    /// Prose ends.
    TextBlockEnd = "TEXT_BLOCK_END" {
        /// The block.
        block_id: BlockId = "blockId",
        /// What the vendor wants back with it.
        opaque: Opaque = "opaque" optional,
    }
    /// Reasoning begins.
    ThinkingBlockStart = "THINKING_BLOCK_START" {
        /// The block.
        block_id: BlockId = "blockId",
    }
    /// Reasoning goes on.
    ThinkingBlockDelta = "THINKING_BLOCK_DELTA" {
        /// The block.
        block_id: BlockId = "blockId",
        /// What is added.
        delta: String = "delta",
    }
    /// Reasoning ends.
    ThinkingBlockEnd = "THINKING_BLOCK_END" {
        /// The block.
        block_id: BlockId = "blockId",
        /// Signatures and encrypted forms that the vendor wants back.
        opaque: Opaque = "opaque" optional,
    }
    /// An image, sound or file begins.
    DataBlockStart = "DATA_BLOCK_START" {
        /// The block.
        block_id: BlockId = "blockId",
        /// Its media type.
        media_type: String = "mediaType",
    }
    /// More of its bytes.
    DataBlockDelta = "DATA_BLOCK_DELTA" {
        /// The block.
        block_id: BlockId = "blockId",
        /// Base64; the fragments joined are one base64 text.
        delta: String = "delta",
    }
    /// It ends.
    DataBlockEnd = "DATA_BLOCK_END" {
        /// The block.
        block_id: BlockId = "blockId",
        /// What the vendor wants back with it.
        opaque: Opaque = "opaque" optional,
    }
    /// The model begins a tool call.
    ToolCallStart = "TOOL_CALL_START" {
        /// The call.
        tool_call_id: ToolCallId = "toolCallId",
        /// The tool.
        tool_call_name: Arc<str> = "toolCallName",
    }
    /// The arguments go on.
    ToolCallDelta = "TOOL_CALL_DELTA" {
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
        /// What the vendor wants back with it.
        opaque: Opaque = "opaque" optional,
    }
    /// A tool begins to work.
    ToolResultStart = "TOOL_RESULT_START" {
        /// The call.
        tool_call_id: ToolCallId = "toolCallId",
        /// The tool.
        tool_call_name: Arc<str> = "toolCallName",
        /// The arguments really executed; null if they were not JSON.
        input: Value = "input",
    }
    /// Text of the result, as it comes.
    ToolResultTextDelta = "TOOL_RESULT_TEXT_DELTA" {
        /// The call.
        tool_call_id: ToolCallId = "toolCallId",
        /// What is added.
        delta: String = "delta",
    }
    /// Another part of the result.
    ToolResultDataDelta = "TOOL_RESULT_DATA_DELTA" {
        /// The call.
        tool_call_id: ToolCallId = "toolCallId",
        /// The part.
        data: ContentBlock = "data",
    }
    /// The result is complete: each as it finishes, never held for its batch.
    ToolResultEnd = "TOOL_RESULT_END" {
        /// The call.
        tool_call_id: ToolCallId = "toolCallId",
        /// The tool.
        tool_call_name: Arc<str> = "toolCallName",
        /// How it went.
        state: ToolState = "state",
        /// Milliseconds since its start.
        duration_ms: u64 = "durationMs",
    }
    /// A person must allow tool calls; only these wait.
    RequireUserConfirm = "REQUIRE_USER_CONFIRM" durable {
        /// What to answer with.
        confirm_id: ConfirmId = "confirmId",
        /// The calls.
        tool_calls: Vec<ToolCall> = "toolCalls",
    }
    /// A person answered.
    UserConfirmResult = "USER_CONFIRM_RESULT" durable {
        /// The question.
        confirm_id: ConfirmId = "confirmId",
        /// The answers.
        confirm_results: Vec<ConfirmResult> = "confirmResults",
    }
    /// The caller must run tools itself; only these wait.
    RequireExternalExecution = "REQUIRE_EXTERNAL_EXECUTION" durable {
        /// The calls.
        tool_calls: Vec<ToolCall> = "toolCalls",
    }
    /// The caller ran them.
    ExternalExecutionResult = "EXTERNAL_EXECUTION_RESULT" durable {
        /// Their results.
        tool_results: Vec<ToolResult> = "toolResults",
    }
    /// Rules or people refused every call of a turn; comes once, after the last of its results.
    AllToolsDenied = "ALL_TOOLS_DENIED" {
        /// The calls.
        denied_tool_calls: Vec<ToolCall> = "deniedToolCalls",
    }
    /// A queued run was cancelled before it began. The run has no other event.
    RunCancelled = "RUN_CANCELLED" durable {
        /// The reason.
        error: Failure = "error",
    }
    /// The harness puts something into the conversation.
    HintBlock = "HINT_BLOCK" {
        /// The block.
        block_id: BlockId = "blockId",
        /// What put it there.
        hint_source: String = "hintSource",
        /// The text, as the model reads it in a user message.
        hint: String = "hint",
    }
    /// The limit of iterations is reached; one last call without tools follows.
    ExceedMaxIters = "EXCEED_MAX_ITERS" {
        /// The limit.
        max_iters: u32 = "maxIters",
        /// How many there were.
        current_iter: u32 = "currentIter",
    }
    /// A model or child cannot stream: what follows comes in one piece.
    StreamFallback = "STREAM_FALLBACK" {
        /// Why.
        reason: String = "reason",
    }
    /// A background task changed.
    TaskUpdated = "TASK_UPDATED" durable {
        /// The task.
        task_id: TaskId = "taskId",
        /// What it was.
        from: TaskStatus = "from",
        /// What it is.
        to: TaskStatus = "to",
        /// What went wrong.
        error: Option<Failure> = "error" optional,
    }
    /// A message was sent to an agent.
    MessageSent = "MESSAGE_SENT" {
        /// To whom.
        agent_key: AgentKey = "agentKey",
        /// What.
        message: Arc<Message> = "message",
        /// When it is read.
        mode: SendMode = "mode",
    }
    /// A child was closed: it accepts no further messages.
    AgentClosed = "AGENT_CLOSED" {
        /// The child.
        agent_key: AgentKey = "agentKey",
    }
    /// The session begins or ends planning: while it plans, only tools that change nothing run.
    PlanModeChanged = "PLAN_MODE_CHANGED" durable {
        /// Whether it plans from now on.
        active: bool = "active",
    }
    /// An agent's conversation was replaced, by compaction.
    StateCheckpoint = "STATE_CHECKPOINT" {
        /// The agent; `root` for the root.
        agent_key: AgentKey = "agentKey",
        /// The whole conversation from now on, also in place of earlier turns.
        messages: Vec<Arc<Message>> = "messages",
    }
    /// What this reader missed. Made for one reader, never stored; its `seq` is the last one
    /// missed.
    Gap = "GAP" {
        /// The first missed.
        from_seq: u64 = "fromSeq",
        /// The last missed.
        to_seq: u64 = "toSeq",
        /// How many.
        missed: u64 = "missed",
        /// How many of each agent, by `agent_key`; the root is `root`. Empty where it is not known.
        per_agent: BTreeMap<String, u64> = "perAgent",
        /// Why they can't be read, if they are recorded and damaged.
        reason: Option<String> = "reason" optional,
    }
    /// Whatever a tool or an application wants to say.
    Custom = "CUSTOM" {
        /// What it is.
        name: String = "name",
        /// Anything.
        value: Value = "value",
    }
}

impl EventKind {
    /// Returns `true` for beginnings, ends, calls and requests; `false` for content that is
    /// streamed in pieces.
    pub fn is_lifecycle(&self) -> bool {
        let name = self.name();
        !name.contains("_BLOCK_") && !name.ends_with("_DELTA")
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
