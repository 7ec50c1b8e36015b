//! The contract of remote agents, kept by each protocol.

use mainstem::{prelude::*, spec::Protocol};
use mainstem_testing::remote::{Abilities, Act, FAR, FarSide, check};

use crate::{
    agentscope,
    anywhere::{serve, serve_with},
    broken,
    chain::remote,
    fallback,
};

/// Mainstem's own protocol.
struct Mainstem;

#[async_trait]
impl FarSide for Mainstem {
    async fn serve(&self, act: Act) -> String {
        serve(act.harness().build().unwrap()).await.0
    }

    fn declare(&self, builder: HarnessBuilder, url: &str) -> HarnessBuilder {
        builder.with_subagent(remote(FAR, url))
    }

    async fn broken(&self) -> Vec<String> {
        broken::servers().await
    }
}

/// AgentScope's, at our server of it.
struct AgentScope;

#[async_trait]
impl FarSide for AgentScope {
    async fn serve(&self, act: Act) -> String {
        agentscope::serve(act.harness().build().unwrap()).await.0
    }

    fn declare(&self, builder: HarnessBuilder, url: &str) -> HarnessBuilder {
        builder.with_subagent(remote(FAR, url).with_protocol(Protocol::AgentScope))
    }

    async fn broken(&self) -> Vec<String> {
        // Those of AgentScope's own server break the same agent.
        Vec::new()
    }
}

/// Agent2Agent, at our server of it, which has our extension.
struct A2a;

#[async_trait]
impl FarSide for A2a {
    async fn serve(&self, act: Act) -> String {
        serve_with(act.harness().build().unwrap(), Some(mainstem_server::Protocol::A2a)).await.0
    }

    fn declare(&self, builder: HarnessBuilder, url: &str) -> HarnessBuilder {
        builder.with_subagent(broken::a2a::declared(url))
    }

    async fn broken(&self) -> Vec<String> {
        broken::a2a::servers().await
    }

    fn abilities(&self) -> Abilities {
        // Its card.
        Abilities { largest: 2_000, ..Abilities::default() }
    }
}

/// Agent2Agent without our extension: a task is artifacts and states.
struct PlainA2a {
    has_streams: bool,
}

#[async_trait]
impl FarSide for PlainA2a {
    async fn serve(&self, act: Act) -> String {
        fallback::a2a::serve(act.harness().build().unwrap(), self.has_streams).await.0
    }

    fn declare(&self, builder: HarnessBuilder, url: &str) -> HarnessBuilder {
        builder.with_subagent(broken::a2a::declared(url))
    }

    async fn broken(&self) -> Vec<String> {
        // Those with our extension and those without are one list.
        Vec::new()
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            thinking: false,
            tools: false,
            results: false,
            nested: false,
            live: self.has_streams,
            largest: 2_000,
            ..Abilities::default()
        }
    }
}

/// LangGraph's, at our server of it.
struct LangGraph;

#[async_trait]
impl FarSide for LangGraph {
    async fn serve(&self, act: Act) -> String {
        serve_with(act.harness().build().unwrap(), Some(mainstem_server::Protocol::LangGraph)).await.0
    }

    fn declare(&self, builder: HarnessBuilder, url: &str) -> HarnessBuilder {
        // A server of ours has the API below a path.
        let url =
            if url.contains("/assistants/") { url.to_owned() } else { format!("{url}/lg/assistants/{FAR}") };
        builder.with_subagent(broken::langgraph::declared(&url))
    }

    async fn broken(&self) -> Vec<String> {
        broken::langgraph::servers().await
    }

    fn abilities(&self) -> Abilities {
        // A message of a tool has a status: success or error. The largest is a thread's state.
        Abilities { denials: false, largest: 8_000, ..Abilities::default() }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_protocol_of_mainstem_keeps_the_contract() {
    check(&Mainstem).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_protocol_of_agentscope_keeps_the_contract() {
    check(&AgentScope).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent2agent_keeps_the_contract() {
    check(&A2a).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent2agent_without_our_extension_keeps_the_contract() {
    check(&PlainA2a { has_streams: true }).await;
    check(&PlainA2a { has_streams: false }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_protocol_of_langgraph_keeps_the_contract() {
    check(&LangGraph).await;
}
