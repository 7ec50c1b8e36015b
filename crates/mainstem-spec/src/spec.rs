//! The declaration of one agent.

use std::{fmt, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Effort, ServerTool};

mod build;
mod json;
mod validate;

/// The default [`steps`](AgentSpec::steps).
pub const DEFAULT_STEPS: u32 = 10;

/// What an agent is: read from a file by [`parse`](crate::parse), or built in code.
///
/// A value that is `None` is inherited from the agent's parent.
///
/// ```
/// use mainstem_spec::AgentSpec;
///
/// let spec = AgentSpec::new("researcher", "Looks things up")
///     .with_model("openai:gpt-4o")
///     .with_tools(["search"])
///     .with_steps(5)
///     .with_prompt("You look things up and cite your sources.");
/// assert!(spec.validate().is_ok());
/// ```
///
/// As JSON it is what a session records of a child: all values except the declarations of MCP
/// servers, which may have secrets, and except the `origin`. Headers are recorded as written, with
/// the names of variables and without their values; a url has neither password nor query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentSpec {
    /// The id: `[a-z0-9][a-z0-9_-]*`.
    pub id: String,
    /// By which a model decides whether to use the agent.
    pub description: String,
    /// The system prompt; empty for a remote agent. [`load_prompts`](crate::load_prompts) adds that
    /// of the agent's own directory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prompt: String,
    /// `provider:model`, or a name registered with the harness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How many iterations one spawn may take.
    pub steps: u32,
    /// The sampling temperature, in 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The nucleus sampling threshold, in 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The percentage of its model's context window above which its conversation is compacted, from
    /// 10 to 100; 0 turns that off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact_at: Option<u8>,
    /// How hard the model thinks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The most tokens that the model thinks with in one answer; 0 for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_budget: Option<u32>,
    /// The most tokens of one answer, with the model's thinking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// The tools of its vendor that the model has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_tools: Option<Vec<ServerTool>>,
    /// The only tools the agent has, of all that are registered; an empty list means none. `*`
    /// stands for every tool that is inherited, so `["*", "agent_spawn"]` is all of them and
    /// spawning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Tools that the agent does not have, whatever `tools` has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disallowed_tools: Vec<String>,
    /// The only skills that the agent can load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
    /// The only MCP servers whose tools the agent has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<Vec<McpServer>>,
    /// Whether models can't spawn the agent, so that only code calls it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// In which role the agent may run.
    #[serde(default)]
    pub mode: Mode,
    /// Where it works.
    #[serde(default)]
    pub workspace: Workspace,
    /// The address of a remote agent.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "json::address::serialize")]
    pub url: Option<String>,
    /// The protocol of `url`; by default the server is asked which it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// Headers for every request to `url`.
    #[serde(default, skip_serializing_if = "Vec::is_empty", serialize_with = "json::headers::serialize")]
    pub headers: Vec<Header>,
    /// Tool patterns and what is allowed, in the order given. They narrow the parent's rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<(String, Permission)>,
    /// Whether the same session, agent, label and user find the same child again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub persist_session: bool,
    /// What happens to its turn if the process that runs it is killed.
    #[serde(default, skip_serializing_if = "OnLost::is_default")]
    pub on_lost: OnLost,
    /// How long a parent waits for a spawn; zero starts it in the background.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "timeout_seconds",
        with = "json::seconds"
    )]
    pub timeout: Option<Duration>,
    /// How many tokens one spawn may use, in and out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens_total: Option<u64>,
    /// The JSON schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Where it was declared, which decides which declaration wins.
    #[serde(skip, default = "json::program")]
    pub origin: Origin,
}

/// In which role an agent may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// Only as the root; it can't be spawned.
    Primary,
    /// Only as a child.
    Subagent,
    /// As either.
    #[default]
    All,
}

/// Where an agent works.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Workspace {
    /// Whether it has a directory of its own.
    pub mode: WorkspaceMode,
    /// A directory that brings the agent's prompt and files, relative to the main workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}

/// Whether an agent shares its parent's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WorkspaceMode {
    /// One directory per instance, never shared between users or conversations.
    #[default]
    Isolated,
    /// The parent's directory.
    Shared,
}

/// What happens to a subagent's turn if the process that runs it is killed. A process that is told
/// to stop cancels the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "a turn is closed or resumed")]
pub enum OnLost {
    /// It ends with an error, and the parent's model decides whether it goes on.
    #[default]
    Close,
    /// It continues as a background task when the parent's next turn begins.
    Resume,
}

/// A protocol in which an agent of another server is driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Protocol {
    /// Mainstem's own HTTP API.
    Mainstem,
    /// The Agent Protocol of AgentScope (`/tasks`), or AgentScope's service in Python (`/chat`).
    AgentScope,
    /// The API of LangGraph servers: `/threads`.
    LangGraph,
    /// Agent2Agent 1.0: an agent card, and JSON-RPC.
    A2a,
}

/// The effect of a rule on the tool calls that its pattern matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "a decision must handle all three")]
pub enum Permission {
    /// The call runs.
    Allow,
    /// A person is asked first.
    Ask,
    /// The call is refused.
    Deny,
}

/// Where an agent was declared. The program wins over a file, a file over the built-in agents.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// It comes with the harness.
    BuiltIn,
    /// It was read from this file.
    File(PathBuf),
    /// It was built in code.
    Program,
}

/// An MCP server of an agent: one that the program knows by this name, or one that the spec itself
/// declares.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// How it is reached, as written; the program interprets it. `Debug` leaves it out, because it
    /// may have secrets.
    #[serde(skip)]
    pub declaration: Option<Value>,
}

/// A header for a remote agent. The value may have `${ENV_VAR}`, and `Debug` leaves it out.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Header {
    /// The name, as written.
    pub name: String,
    /// The value as written, with its variables not yet replaced.
    pub value: String,
}

impl AgentSpec {
    /// A spec built in code, with every default.
    #[must_use]
    pub fn new(id: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            description: description.into(),
            prompt: String::new(),
            model: None,
            steps: DEFAULT_STEPS,
            temperature: None,
            top_p: None,
            compact_at: None,
            effort: None,
            thinking_budget: None,
            max_output_tokens: None,
            server_tools: None,
            tools: None,
            disallowed_tools: Vec::new(),
            skills: None,
            mcp_servers: None,
            hidden: false,
            mode: Mode::default(),
            workspace: Workspace::default(),
            url: None,
            protocol: None,
            headers: Vec::new(),
            permissions: Vec::new(),
            persist_session: false,
            on_lost: OnLost::default(),
            timeout: None,
            max_tokens_total: None,
            output_schema: None,
            origin: Origin::Program,
        }
    }

    /// Returns `true` if models can spawn the agent: it is not hidden, and its mode is not
    /// `primary`.
    #[must_use]
    pub fn is_spawnable(&self) -> bool {
        !self.hidden && self.mode != Mode::Primary
    }

    /// Returns `true` if it can lead a run: its mode is not `subagent`.
    #[must_use]
    pub fn is_runnable(&self) -> bool {
        self.mode != Mode::Subagent
    }

    /// Returns `true` if lists of agents have it: it is not hidden.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        !self.hidden
    }
}

impl Mode {
    pub(crate) const NAMES: [(&str, Self); 3] =
        [("primary", Self::Primary), ("subagent", Self::Subagent), ("all", Self::All)];
}

impl OnLost {
    pub(crate) const NAMES: [(&str, Self); 2] = [("close", Self::Close), ("resume", Self::Resume)];

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Protocol {
    pub(crate) const NAMES: [(&str, Self); 4] = [
        ("mainstem", Self::Mainstem),
        ("agentscope", Self::AgentScope),
        ("langgraph", Self::LangGraph),
        ("a2a", Self::A2a),
    ];
}

impl WorkspaceMode {
    pub(crate) const NAMES: [(&str, Self); 2] = [("isolated", Self::Isolated), ("shared", Self::Shared)];
}

impl Permission {
    pub(crate) const NAMES: [(&str, Self); 3] =
        [("allow", Self::Allow), ("ask", Self::Ask), ("deny", Self::Deny)];
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, protocol)| protocol == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl Origin {
    pub(crate) fn precedence(&self) -> u8 {
        match self {
            Self::BuiltIn => 0,
            Self::File(_) => 1,
            Self::Program => 2,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("the built-in one"),
            Self::File(path) => write!(f, "the one in {}", path.display()),
            Self::Program => f.write_str("the one built in code"),
        }
    }
}

impl Header {
    /// Creates a header; `${ENV_VAR}` in the value is replaced later.
    #[must_use]
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

impl McpServer {
    /// A server that the program knows.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), declaration: None }
    }

    /// A server that the agent's spec declares.
    #[must_use]
    pub fn declared(name: impl Into<String>, declaration: Value) -> Self {
        Self { name: name.into(), declaration: Some(declaration) }
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer")
            .field("name", &self.name)
            .field("is_declared", &self.declaration.is_some())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
