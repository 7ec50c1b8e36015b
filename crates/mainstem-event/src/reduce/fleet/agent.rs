//! One agent of a fleet.

use std::sync::Arc;

use mainstem_message::{AgentKey, Failure, ReplyId, TaskId, ToolCallId, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AgentEvent, ChildStatus, ChildSummary, EventKind, EventSource, Outcome, Timestamp};

/// How many characters of an agent's text are retained: enough for one line of a live view.
const LAST_LINE: usize = 240;

/// What one agent is doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentState {
    /// Who it is; absent for the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<EventSource>,
    /// Its name.
    pub name: String,
    /// Its present or last invocation.
    pub reply_id: ReplyId,
    /// What it is at.
    pub phase: Phase,
    /// How its last invocation ended; absent while it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// Running tools, in the order of their start.
    pub tools: Vec<ToolActivity>,
    /// The number of its requests for approval that are open.
    #[serde(default, skip_serializing_if = "is_none_open")]
    pub questions: u32,
    /// The end of what it said last.
    pub last_line: String,
    /// Tokens of its own model calls.
    pub usage: Usage,
    /// The model of its present or last call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// How full its model's context window is; absent while that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextFill>,
    /// Model calls so far.
    pub iterations: u32,
    /// When its first invocation started.
    pub started_at: Timestamp,
    /// When its last invocation ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

/// How full the context window of an agent's model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ContextFill {
    /// The tokens of its latest prompt and answer; 0 before the first.
    pub used: u64,
    /// The longest prompt, in tokens.
    pub window: u64,
}

impl ContextFill {
    /// Returns how full it is, in percent; more than 100 if the answer is beyond the window.
    pub fn percent(self) -> u64 {
        self.used.saturating_mul(100) / self.window.max(1)
    }
}

fn is_none_open(questions: &u32) -> bool {
    *questions == 0
}

/// What an agent is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// It has just started.
    Starting,
    /// Its model summarizes a conversation that becomes too long.
    Compacting,
    /// Its model call waits for a limit on the rate of calls.
    RateLimited,
    /// Waits for its model's first word.
    Waiting,
    /// The model thinks.
    Thinking,
    /// The model speaks.
    Speaking,
    /// Tools work.
    Acting,
    /// A person is asked.
    Asking,
    /// It has ended.
    Ended,
}

/// A running tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolActivity {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub input: serde_json::Value,
    /// Since when.
    pub started_at: Timestamp,
}

impl AgentState {
    pub(super) fn new(
        name: String,
        source: Option<EventSource>,
        reply_id: ReplyId,
        started_at: Timestamp,
    ) -> Self {
        Self {
            name,
            source,
            reply_id,
            phase: Phase::Starting,
            outcome: None,
            error: None,
            tools: Vec::new(),
            questions: 0,
            last_line: String::new(),
            usage: Usage::default(),
            model: None,
            context: None,
            iterations: 0,
            started_at,
            ended_at: None,
        }
    }

    /// Returns the instance; `None` for the root.
    pub fn key(&self) -> Option<&AgentKey> {
        self.source.as_ref().map(|source| &source.agent_key)
    }

    /// Returns the depth; 0 for the root.
    pub fn depth(&self) -> u16 {
        self.source.as_ref().map_or(0, |source| source.depth)
    }

    /// Returns the background task that it works on.
    pub fn task(&self) -> Option<&TaskId> {
        self.source.as_ref()?.task_id.as_ref()
    }

    #[expect(
        clippy::too_many_lines,
        reason = "each kind has its place, so that a new one does not compile without"
    )]
    pub(super) fn apply(&mut self, event: &AgentEvent) {
        use EventKind::*;
        if let (Some(was), Some(is)) = (&mut self.source, event.source())
            && was.task_id != is.task_id
        {
            was.task_id.clone_from(&is.task_id);
        }
        match &event.kind {
            TextBlockDelta { delta, .. } => self.say(Phase::Speaking, delta),
            ThinkingBlockDelta { delta, .. } => self.say(Phase::Thinking, delta),
            AgentStart { name, .. } => self.restart(event, name),
            ModelCallStart { purpose: Some(_), model_name, .. } => {
                self.phase = Phase::Compacting;
                self.model = Some(model_name.clone());
            }
            ModelCallStart { context_window, model_name, .. } => {
                self.model = Some(model_name.clone());
                self.iterations += 1;
                self.phase = Phase::Waiting;
                let used = self.context.map_or(0, |context| context.used);
                self.context = context_window.map(|window| ContextFill { used, window });
            }
            ModelCallEnd { usage, .. } => self.use_up(usage.unwrap_or_default()),
            TextBlockStart { .. } | ThinkingBlockStart { .. } => self.last_line.clear(),
            ToolResultStart { tool_call_id, tool_call_name, input } => {
                let (tool_call_id, name) = (tool_call_id.clone(), tool_call_name.to_string());
                self.tools.push(ToolActivity {
                    tool_call_id,
                    name,
                    input: input.clone(),
                    started_at: event.at,
                });
                self.act();
            }
            ToolResultEnd { tool_call_id, .. } => {
                self.tools.retain(|tool| tool.tool_call_id != *tool_call_id);
            }
            RateLimitWait { .. } | RateLimitPassed { .. } | ModelRetry { .. } | ModelFallback { .. }
                if self.phase == Phase::Compacting => {}
            RateLimitWait { .. } => self.phase = Phase::RateLimited,
            RateLimitPassed { .. } => self.phase = Phase::Waiting,
            ModelRetry { .. } | ModelFallback { .. } => {
                if let ModelFallback { to, .. } = &event.kind {
                    self.model = Some(to.clone());
                }
                self.phase = Phase::Waiting;
                self.last_line.clear();
            }
            RequireUserConfirm { .. } => {
                self.questions += 1;
                self.phase = Phase::Asking;
            }
            UserConfirmResult { .. } => {
                self.questions = self.questions.saturating_sub(1);
                self.act();
            }
            RequireExternalExecution { .. } => self.phase = Phase::Asking,
            ExternalExecutionResult { .. } => self.act(),
            AgentEnd { outcome, error, .. } => {
                (self.outcome, self.error, self.ended_at) = (Some(*outcome), error.clone(), Some(event.at));
                self.phase = Phase::Ended;
                self.tools.clear();
                self.questions = 0;
            }
            AgentResult { .. }
            | TextBlockEnd { .. }
            | ThinkingBlockEnd { .. }
            | DataBlockStart { .. }
            | DataBlockDelta { .. }
            | DataBlockEnd { .. }
            | ToolCallStart { .. }
            | ToolCallDelta { .. }
            | ToolCallEnd { .. }
            | ToolResultTextDelta { .. }
            | ToolResultDataDelta { .. }
            | AllToolsDenied { .. }
            | HintBlock { .. }
            | ExceedMaxIters { .. }
            | StreamFallback { .. } => {}
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

    /// Returns the agent as a child of its session; `None` for the root. A record lacks closed idle
    /// children.
    pub fn summary(&self) -> Option<ChildSummary> {
        let source = self.source.as_ref()?;
        let status = match (self.outcome, &source.task_id) {
            (Some(_), _) => ChildStatus::Idle,
            (None, Some(_)) => ChildStatus::Background,
            (None, None) => ChildStatus::Running,
        };
        Some(ChildSummary {
            agent_key: source.agent_key.clone(),
            agent_id: source.agent_id.clone(),
            label: source.label.as_deref().map(str::to_owned),
            title: source.title.clone(),
            depth: source.depth,
            status,
            task_id: source.task_id.clone(),
            turns: source.turn,
            last_activity: self.ended_at.unwrap_or(self.started_at),
        })
    }

    /// Begins a further turn of the same instance.
    fn restart(&mut self, event: &AgentEvent, name: &str) {
        name.clone_into(&mut self.name);
        self.source = event.source().cloned();
        if let Some(reply_id) = event.reply_id() {
            self.reply_id = reply_id.clone();
        }
        (self.phase, self.outcome, self.error, self.ended_at) = (Phase::Starting, None, None, None);
        self.tools.clear();
        self.questions = 0;
        self.last_line.clear();
    }

    /// Its tools work, unless one of them waits for a person.
    fn act(&mut self) {
        self.phase = if self.questions > 0 { Phase::Asking } else { Phase::Acting };
    }

    fn use_up(&mut self, usage: Usage) {
        self.usage += usage;
        if let Some(context) = self.context.as_mut().filter(|_| self.phase != Phase::Compacting)
            && usage != Usage::default()
        {
            context.used = usage.total_tokens();
        }
    }

    fn say(&mut self, phase: Phase, delta: &str) {
        self.phase = phase;
        self.last_line.push_str(delta);
        // A character has at most four bytes, so enough characters stay, and cuts are rare.
        if self.last_line.len() > 4 * LAST_LINE
            && let Some((start, _)) = self.last_line.char_indices().nth_back(LAST_LINE - 1)
        {
            self.last_line.drain(..start);
        }
    }
}
