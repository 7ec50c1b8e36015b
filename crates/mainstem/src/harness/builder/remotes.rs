//! Agents on other machines.

use mainstem_remote::{Host, RemoteAgent, TraceContext};
use mainstem_spec::AgentSpec;

use super::HarnessBuilder;

impl HarnessBuilder {
    /// Allows remote agents, and MCP servers that agents declare, at a host, or in a network, whose
    /// address is not public. By default a `url` that leads to this machine or to a private network
    /// is refused.
    ///
    /// ```
    /// # use mainstem::prelude::*;
    /// # fn f(builder: HarnessBuilder) -> Result<HarnessBuilder, mainstem::remote::HostError> {
    /// Ok(builder
    ///     .with_remote_host("10.0.0.0/8".parse()?)
    ///     .with_subagent(AgentSpec::new("tester", "Runs tests").with_url("http://10.0.0.7:7878")))
    /// # }
    /// ```
    pub fn with_remote_host(mut self, host: Host) -> Self {
        self.remotes = self.remotes.with_host(host);
        self
    }

    /// Sets a variable that the headers of remote agents may name as `${NAME}`, such as a token
    /// that the program has read from a vault. It counts before one of the environment with its
    /// name. It is a secret: no event, record or message has its value.
    ///
    /// ```
    /// # use mainstem::prelude::*;
    /// # fn f(builder: HarnessBuilder, token: String) -> HarnessBuilder {
    /// let tester = AgentSpec::new("tester", "Runs tests").with_url("https://tests.example");
    /// builder
    ///     .with_remote_variable("TESTER_TOKEN", token)
    ///     .with_subagent(tester.with_header("Authorization", "Bearer ${TESTER_TOKEN}"))
    /// # }
    /// ```
    pub fn with_remote_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.remotes = self.remotes.with_variable(name, value);
        self
    }

    /// Sets where the trace of a remote agent's turn is known: the remote gets the `traceparent` of
    /// the span here, so that its own spans are below it.
    pub fn with_trace_context(mut self, trace: TraceContext) -> Self {
        self.remotes = self.remotes.with_trace_context(trace);
        self
    }

    /// Declares an agent that runs elsewhere, in a protocol of the program. Prompt, model and tools
    /// are the remote's. The spec's `permissions` apply to the calls that the remote asks about,
    /// and its `tools` names the calls that the caller of the run executes for it.
    pub fn with_remote_agent(mut self, spec: AgentSpec, agent: impl RemoteAgent) -> Self {
        self.remotes = self.remotes.with_agent(&spec.id, agent);
        self.with_subagent(spec)
    }
}
