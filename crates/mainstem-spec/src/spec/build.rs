//! Building a spec in code, one value at a time.

use std::{path::PathBuf, time::Duration};

use serde_json::Value;

use super::{AgentSpec, Header, McpServer, Mode, OnLost, Origin, Permission, Protocol, WorkspaceMode};
use crate::{Effort, ServerTool};

impl AgentSpec {
    /// Sets the system prompt.
    #[must_use]
    pub fn with_prompt(self, prompt: impl Into<String>) -> Self {
        Self { prompt: prompt.into(), ..self }
    }

    /// Sets the model: `provider:model`, or a name registered with the harness.
    #[must_use]
    pub fn with_model(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// Sets how many iterations one spawn may take, at least 1.
    #[must_use]
    pub fn with_steps(self, steps: u32) -> Self {
        Self { steps, ..self }
    }

    /// Sets the sampling temperature, in 0 to 2.
    #[must_use]
    pub fn with_temperature(self, temperature: f64) -> Self {
        Self { temperature: Some(temperature), ..self }
    }

    /// Sets the nucleus sampling threshold, in 0 to 1.
    #[must_use]
    pub fn with_top_p(self, top_p: f64) -> Self {
        Self { top_p: Some(top_p), ..self }
    }

    /// Sets the percentage of the model's context window above which the conversation is compacted,
    /// from 10 to 100; 0 turns that off.
    #[must_use]
    pub fn with_compact_at(self, percent: u8) -> Self {
        Self { compact_at: Some(percent), ..self }
    }

    /// Sets how hard the model thinks.
    #[must_use]
    pub fn with_effort(self, effort: Effort) -> Self {
        Self { effort: Some(effort), ..self }
    }

    /// Sets the most tokens that the model thinks with in one answer, less than
    /// `max_output_tokens`; 0 for none.
    #[must_use]
    pub fn with_thinking_budget(self, tokens: u32) -> Self {
        Self { thinking_budget: Some(tokens), ..self }
    }

    /// Sets the most tokens of one answer, with the model's thinking; at least 1.
    #[must_use]
    pub fn with_max_output_tokens(self, tokens: u32) -> Self {
        Self { max_output_tokens: Some(tokens), ..self }
    }

    /// Sets the tools of its vendor that the model has, replacing an earlier list.
    #[must_use]
    pub fn with_server_tools(self, tools: impl IntoIterator<Item = ServerTool>) -> Self {
        Self { server_tools: Some(tools.into_iter().collect()), ..self }
    }

    /// Restricts the agent to these tools, replacing an earlier list.
    #[must_use]
    pub fn with_tools(self, tools: impl IntoIterator<Item: Into<String>>) -> Self {
        Self { tools: Some(texts(tools)), ..self }
    }

    /// Removes these tools from the agent's, replacing an earlier list.
    #[must_use]
    pub fn with_disallowed_tools(self, tools: impl IntoIterator<Item: Into<String>>) -> Self {
        Self { disallowed_tools: texts(tools), ..self }
    }

    /// Restricts the agent to these skills, replacing an earlier list.
    #[must_use]
    pub fn with_skills(self, skills: impl IntoIterator<Item: Into<String>>) -> Self {
        Self { skills: Some(texts(skills)), ..self }
    }

    /// Restricts the agent to the tools of these MCP servers, which the program knows; replaces an
    /// earlier list.
    #[must_use]
    pub fn with_mcp_servers(self, names: impl IntoIterator<Item: Into<String>>) -> Self {
        Self { mcp_servers: Some(names.into_iter().map(McpServer::named).collect()), ..self }
    }

    /// Sets whether models can't spawn the agent, and lists leave it out.
    #[must_use]
    pub fn with_hidden(self, hidden: bool) -> Self {
        Self { hidden, ..self }
    }

    /// Sets in which role the agent may run.
    #[must_use]
    pub fn with_mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// Sets whether the agent shares its parent's directory.
    #[must_use]
    pub fn with_workspace_mode(mut self, mode: WorkspaceMode) -> Self {
        self.workspace.mode = mode;
        self
    }

    /// Sets the directory that brings prompt and files. Excludes a prompt and a url.
    #[must_use]
    pub fn with_workspace_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.workspace.path = Some(path.into());
        self
    }

    /// Sets the address of a remote agent. Excludes a prompt and a workspace path.
    #[must_use]
    pub fn with_url(self, url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..self }
    }

    /// Sets the protocol of the url; by default the server is asked which it has.
    #[must_use]
    pub fn with_protocol(self, protocol: Protocol) -> Self {
        Self { protocol: Some(protocol), ..self }
    }

    /// Adds a header for requests to the url; the value may hold `${ENV_VAR}`.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push(Header::new(name, value));
        self
    }

    /// Adds a rule for the tool calls that match `pattern`.
    #[must_use]
    pub fn with_permission(mut self, pattern: impl Into<String>, permission: Permission) -> Self {
        self.permissions.push((pattern.into(), permission));
        self
    }

    /// Sets whether the same session, agent, label and user find the same child again.
    #[must_use]
    pub fn with_persist_session(self, persist_session: bool) -> Self {
        Self { persist_session, ..self }
    }

    /// Sets what happens to its turn if the process that runs it is killed.
    #[must_use]
    pub fn with_on_lost(self, on_lost: OnLost) -> Self {
        Self { on_lost, ..self }
    }

    /// Sets how long a parent waits for a spawn; zero starts it in the background.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Sets how many tokens one spawn may use, at least 1.
    #[must_use]
    pub fn with_max_tokens_total(self, tokens: u64) -> Self {
        Self { max_tokens_total: Some(tokens), ..self }
    }

    /// Sets the JSON schema of the answer.
    #[must_use]
    pub fn with_output_schema(self, schema: Value) -> Self {
        Self { output_schema: Some(schema), ..self }
    }

    /// Sets where it was declared, which decides which declaration wins in a
    /// [`SpecSet`](crate::SpecSet).
    #[must_use]
    pub fn with_origin(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }
}

fn texts(items: impl IntoIterator<Item: Into<String>>) -> Vec<String> {
    items.into_iter().map(Into::into).collect()
}
