//! Requests, responses and events, as AgentScope's Java classes write and read them.
//!
//! What is read is read leniently: an absent or `null` field is `None`, a word of a newer version
//! is `Unknown`, and names are accepted in both of the spellings that its own server accepts.
#![expect(clippy::exhaustive_structs, reason = "written and read as literals on both sides")]

use std::fmt;

use mainstem_event::Outcome;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value};

/// Declares an enum of words, of which newer versions may have more.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(clippy::exhaustive_enums, reason = "a new word is Unknown to older readers")]
        pub enum $name {
            $($(#[$word_doc])* $word,)*
            /// A word of another version.
            Unknown,
        }

        impl $name {
            /// Returns the word on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => $text,)*
                    Self::Unknown => "unknown",
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$word,)*
                    _ => Self::Unknown,
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Option::<String>::deserialize(deserializer)?;
                Ok(text.map_or(Self::Unknown, |text| Self::from(&*text)))
            }
        }
    };
}

words! {
    /// The kind of a [`TaskEvent`].
    EventType {
        /// The agent begins, or continues after an approval.
        RunStarted = "RUN_STARTED",
        /// The agent has ended, or pauses for an approval: a `STATUS` tells which.
        RunFinished = "RUN_FINISHED",
        /// The task failed; its last event.
        RunError = "RUN_ERROR",
        /// Text of the answer.
        TextDelta = "TEXT_DELTA",
        /// Thinking of the agent.
        ThinkingDelta = "THINKING_DELTA",
        /// A tool call begins.
        ToolCallStart = "TOOL_CALL_START",
        /// The arguments of a tool call are complete.
        ToolCallEnd = "TOOL_CALL_END",
        /// A tool has its result.
        ToolResult = "TOOL_RESULT",
        /// Tool calls wait for an approval.
        RequireConfirm = "REQUIRE_CONFIRM",
        /// The status of the task has changed.
        Status = "STATUS",
        /// Another event, which is in the payload.
        AgentEvent = "AGENT_EVENT",
    }
}

words! {
    /// The status of a task.
    Status {
        /// It has not begun.
        Pending = "pending",
        /// It is running.
        Running = "running",
        /// It has its result.
        Success = "success",
        /// It failed, or is not known.
        Error = "error",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// It waits for an approval.
        AwaitingConfirm = "awaiting_confirm",
    }
}

/// How much of a task is in its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "the protocol has three")]
pub enum Detail {
    /// Beginnings, ends, calls, results and approvals.
    #[default]
    Status,
    /// Also text and thinking.
    Full,
    /// Every event, and those of all agents below.
    Verbose,
}

impl Detail {
    /// Reads the word of a request; an absent, blank or unknown one is `status`.
    pub fn parse(word: Option<&str>) -> Self {
        match word.unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "full" => Self::Full,
            "verbose" => Self::Verbose,
            _ => Self::Status,
        }
    }

    /// Returns the word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Full => "full",
            Self::Verbose => "verbose",
        }
    }

    pub(super) fn includes(self, kind: EventType) -> bool {
        match kind {
            EventType::TextDelta | EventType::ThinkingDelta => self >= Self::Full,
            EventType::AgentEvent => self >= Self::Verbose,
            _ => true,
        }
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Status {
    /// Returns `true` if the task has ended.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Success | Self::Error | Self::Cancelled)
    }

    /// Returns the status of a task whose run has ended like this.
    pub fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Success | Outcome::MaxIterations => Self::Success,
            Outcome::Cancelled => Self::Cancelled,
            _ => Self::Error,
        }
    }

    /// Returns the error of a failed task that has none.
    pub fn default_error(self, outcome: Outcome) -> Option<String> {
        (self == Self::Error).then(|| format!("ended with {}", outcome.as_str()))
    }
}

/// The body of `POST /tasks`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Submit {
    /// The caller's id of the task. A request that is repeated with it begins one task.
    #[serde(deserialize_with = "text")]
    pub task_id: Option<String>,
    /// The agent.
    #[serde(deserialize_with = "text")]
    pub agent_id: Option<String>,
    /// What it is asked to do.
    #[serde(deserialize_with = "text")]
    pub input: Option<String>,
    /// How, and on whose behalf.
    pub context: Option<Context>,
}

/// `context` of [`Submit`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Context {
    /// The user on whose behalf the caller works.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// The session of the caller.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<String>,
    /// Mainstem's: the conversation that the task continues. Without it, and at servers that do not
    /// know it, each task is a conversation of its own.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Whether the caller is going to read the events.
    pub stream: Option<bool>,
    /// The [`Detail`] of the events.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What the agent must not do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny_rules: Vec<DenyRule>,
    /// Data of the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Map<String, Value>>,
}

/// A rule of the caller that denies calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DenyRule {
    /// The tool.
    #[serde(alias = "toolName")]
    pub tool_name: String,
    /// Which of its calls; absent for all.
    #[serde(alias = "ruleContent", skip_serializing_if = "Option::is_none")]
    pub rule_content: Option<String>,
    /// `DENY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behavior: Option<String>,
    /// Where it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl DenyRule {
    /// Returns a rule that denies the calls of a pattern such as `shell(git push*)`.
    pub fn of_pattern(pattern: &str) -> Self {
        let (tool, content) = match pattern.strip_suffix(')').and_then(|text| text.split_once('(')) {
            Some((tool, content)) => (tool, Some(content.to_owned())),
            None => (pattern, None),
        };
        let (tool_name, behavior) = (tool.to_owned(), Some("DENY".to_owned()));
        Self { tool_name, rule_content: content, behavior, source: None }
    }
}

/// The state of a task: the body of `GET /tasks/{id}` and of most responses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// The task; absent in a response of `/wait`.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Its status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Why it failed.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its result, once it has succeeded.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The calls that wait for an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_confirms: Option<Vec<PendingConfirm>>,
    /// Mainstem's: `true` if tasks can continue a conversation (see [`Context::session_id`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continues_sessions: Option<bool>,
}

/// A call that waits for an approval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PendingConfirm {
    /// The call.
    #[serde(alias = "tool_call_id")]
    pub tool_call_id: String,
    /// Its tool.
    #[serde(alias = "tool_name", deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Its arguments, as JSON.
    #[serde(alias = "tool_input_json", deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub tool_input_json: Option<String>,
}

/// The body of `POST /tasks/{id}/resume`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resume {
    /// A decision for each call.
    pub decisions: Vec<Verdict>,
}

/// A decision about one call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Verdict {
    /// The call.
    #[serde(alias = "tool_call_id", deserialize_with = "text")]
    pub tool_call_id: Option<String>,
    /// Whether it may run; a text other than `true` is `false`.
    #[serde(deserialize_with = "truth")]
    pub approved: bool,
    /// Why not.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The body of a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// What is wrong.
    pub error: String,
}

/// An event of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TaskEvent {
    /// Its number, which rises within the task.
    pub seq: u64,
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// The task.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The agent that works on the task.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// When it happened.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// A part of a text, of a delta.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The call that it is about.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Its tool.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Its arguments, as JSON.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub tool_input: Option<String>,
    /// The calls that wait for an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_confirms: Option<Vec<PendingConfirm>>,
    /// The status of the task, or the state of a result.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// What went wrong.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The kind of the event in the payload.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// The event in the form of AgentScope, as a text of JSON.
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
}

impl Default for TaskEvent {
    fn default() -> Self {
        Self::of(EventType::Unknown)
    }
}

impl TaskEvent {
    /// Creates an event of a kind without further fields.
    pub fn of(kind: EventType) -> Self {
        Self {
            seq: 0,
            kind,
            task_id: None,
            agent_id: None,
            timestamp: None,
            text: None,
            tool_call_id: None,
            tool_name: None,
            tool_input: None,
            pending_confirms: None,
            status: None,
            error: None,
            event_type: None,
            payload: None,
        }
    }
}

/// Reads a text, or another scalar as one, as the Java server does.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        other @ (Value::Bool(_) | Value::Number(_)) => Ok(Some(other.to_string())),
        _ => Err(D::Error::custom("expected a text")),
    }
}

fn truth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Bool(truth) => truth,
        Value::String(text) => text.eq_ignore_ascii_case("true"),
        _ => false,
    })
}
