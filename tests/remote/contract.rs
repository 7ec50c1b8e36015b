//! The contract of remote agents, kept by each protocol.

use mainstem::{prelude::*, spec::Protocol};
use mainstem_testing::remote::{Act, FAR, FarSide, check};

use crate::{agentscope, anywhere::serve, chain::remote};

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
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_protocol_of_mainstem_keeps_the_contract() {
    check(&Mainstem).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_protocol_of_agentscope_keeps_the_contract() {
    check(&AgentScope).await;
}
