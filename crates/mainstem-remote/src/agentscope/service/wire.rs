//! What the service sends: events, messages and records, as far as they are read.
//!
//! The names are those of `agentscope.event`, `agentscope.message` and `agentscope.app` of the
//! package [agentscope](https://pypi.org/project/agentscope) 2.0.

use serde::Deserialize;
use serde_json::Value;

/// An event of a session. Which fields it has depends on its type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) id: String,
    /// The reply that it is of; an event of an application has none.
    pub(super) reply_id: Option<String>,
    pub(super) block_id: Option<String>,
    pub(super) tool_call_id: Option<String>,
    pub(super) tool_call_name: Option<String>,
    pub(super) model_name: Option<String>,
    pub(super) delta: Option<String>,
    pub(super) media_type: Option<String>,
    /// Data as base64, or the address where it is.
    pub(super) data: Option<String>,
    pub(super) url: Option<String>,
    pub(super) hint: Value,
    pub(super) source: Option<String>,
    pub(super) state: Option<String>,
    pub(super) tool_calls: Vec<Value>,
    pub(super) confirm_results: Vec<Value>,
    pub(super) execution_results: Vec<Block>,
    pub(super) name: Option<String>,
    pub(super) value: Value,
    pub(super) finished_reason: Option<String>,
    pub(super) error: Option<Failed>,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) cache_input_tokens: u64,
    pub(super) cache_creation_input_tokens: u64,
}

/// Why a reply failed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Failed {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) message: String,
}

/// A message of a session. A reply is stored when its run ends or waits for a person.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) role: String,
    pub(super) content: Vec<Block>,
    pub(super) usage: Option<Tokens>,
    /// Set once a reply has ended.
    pub(super) finished_reason: Option<String>,
    pub(super) error: Option<Failed>,
}

/// What the calls of a model have used.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) cache_input_tokens: u64,
    pub(super) cache_creation_input_tokens: u64,
}

/// A block of a message: text, thinking, data, a hint, a call, or the result of one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Block {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) id: String,
    pub(super) text: String,
    pub(super) thinking: String,
    pub(super) hint: Value,
    pub(super) source: Value,
    pub(super) name: Option<String>,
    pub(super) input: Value,
    pub(super) output: Value,
    pub(super) state: Option<String>,
}

/// The latest messages of a session.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Messages {
    pub(super) messages: Vec<Message>,
    /// The latest event that they include.
    pub(super) event_cursor: Option<String>,
}

/// What a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Running,
    Idle,
    AwaitingPermission,
    AwaitingExternalResult,
}

#[derive(Debug, Deserialize)]
pub(super) struct StatusOf {
    pub(super) status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Agents {
    pub(super) agents: Vec<Agent>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Agent {
    pub(super) id: String,
    pub(super) data: Named,
}

#[derive(Debug, Deserialize)]
pub(super) struct Named {
    pub(super) name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Sessions {
    pub(super) sessions: Vec<SessionView>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct SessionView {
    pub(super) session: SessionRecord,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct SessionRecord {
    pub(super) id: String,
    pub(super) config: SessionConfig,
    #[serde(default)]
    pub(super) state: SessionState,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SessionConfig {
    pub(super) name: String,
    pub(super) chat_model_config: Value,
    pub(super) fallback_chat_model_config: Value,
    pub(super) knowledge_config: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SessionState {
    pub(super) permission_context: Permissions,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Permissions {
    pub(super) mode: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Created {
    pub(super) session_id: String,
}
