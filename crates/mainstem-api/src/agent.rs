//! Steering agents: messages, approvals, cancellation.

use mainstem_event::{Decision, SendMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message to a child, or into the running turn of the leading agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a request is built with a literal")]
pub struct NewMessage {
    /// The text.
    pub content: String,
    /// When the agent reads it.
    #[serde(default)]
    pub mode: SendMode,
}

/// The answer to a request for approval, as JSON: see [`Decision`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "lowercase", deny_unknown_fields)]
#[expect(clippy::exhaustive_enums, reason = "yes or no")]
pub enum Approval {
    /// The call may run.
    Allow {
        /// Replaces the model's arguments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
    },
    /// The call must not run.
    Deny {
        /// The agent reads it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl From<Approval> for Decision {
    fn from(approval: Approval) -> Self {
        match approval {
            Approval::Allow { arguments: None } => Self::Allow,
            Approval::Allow { arguments: Some(arguments) } => Self::AllowWith(arguments),
            Approval::Deny { reason } => Self::Deny(reason.unwrap_or_else(|| "a person said no".to_owned())),
        }
    }
}

impl From<Decision> for Approval {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Allow => Self::Allow { arguments: None },
            Decision::AllowWith(arguments) => Self::Allow { arguments: Some(arguments) },
            Decision::Deny(reason) => Self::Deny { reason: Some(reason) },
        }
    }
}

/// The request for approval that was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::exhaustive_structs, reason = "built by servers")]
pub struct Approved {
    /// Its id.
    pub confirm_id: String,
}

/// The result of an external tool's call (`REQUIRE_EXTERNAL_EXECUTION`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a request is built with a literal")]
pub struct NewToolResult {
    /// The text of the result.
    pub content: String,
    /// Whether the call has failed.
    #[serde(default)]
    pub is_error: bool,
}

/// Whether a cancel had an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::exhaustive_structs, reason = "built by servers")]
pub struct CancelledAgent {
    /// Whether the agent was running.
    pub was_running: bool,
}

/// An agent that is declared, and what it can be used for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::exhaustive_structs, reason = "built by servers")]
pub struct AgentView {
    /// Its id.
    pub id: String,
    /// What it is for.
    pub description: String,
    /// Its own model; the parent's without.
    pub model: Option<String>,
    /// Whether agents can spawn it.
    pub spawnable: bool,
    /// Whether a caller may choose it to lead a run.
    pub runnable: bool,
}

/// The agent that leads runs, and those that it can spawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::exhaustive_structs, reason = "built by servers")]
pub struct Agents {
    /// The id of the agent that leads runs.
    pub runs: String,
    /// The agents.
    pub items: Vec<AgentView>,
}

/// A model, and the agents that use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::exhaustive_structs, reason = "built by servers")]
pub struct ModelView {
    /// Its name.
    pub id: String,
    /// The ids of the agents.
    pub agents: Vec<String>,
    /// Whether a run can name it.
    #[serde(default)]
    pub selectable: bool,
}

/// A token to store in a cookie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a request is built with a literal")]
pub struct Login {
    /// The token.
    pub token: String,
}
