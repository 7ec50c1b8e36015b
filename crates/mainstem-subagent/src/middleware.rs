//! What makes an agent one that spawns.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use mainstem_model::ModelRequest;
use mainstem_react::{AgentError, Answer, Middleware, NextModel};
use mainstem_tool::{RunContext, Tool};

use crate::{Background, Fleet, SpawnOptions, prompt::fleet_section, tools};

/// Gives an agent tools for its children and their background tasks, tells it whom it can spawn, and before each of its model calls which
/// of its tasks have ended.
///
/// The tools need a [`Fleet`] among the extensions of the run's context; without one they answer with an error.
#[derive(Clone, Debug, Default)]
pub struct Subagents {
    /// All of them if absent.
    only: Option<Vec<String>>,
}

impl Subagents {
    /// All tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only the tools of these names.
    pub fn only(names: impl IntoIterator<Item = String>) -> Self {
        Self { only: Some(names.into_iter().collect()) }
    }

    fn gives(&self, tool: &str) -> bool {
        self.only.as_ref().is_none_or(|names| names.iter().any(|name| name == tool))
    }
}

#[async_trait]
impl Middleware for Subagents {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        tools::all().into_iter().filter(|tool| self.gives(&tool.spec().name)).collect()
    }

    fn system_prompt(&self, cx: &RunContext) -> Option<String> {
        let spawns = self.gives("agent_spawn") || self.gives("agent_fanout");
        spawns.then(|| cx.get::<Fleet>()).flatten().map(|fleet| fleet_section(fleet.catalog()))
    }

    async fn on_model_call(
        &self,
        cx: &RunContext,
        mut request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<Answer, AgentError> {
        let Some(fleet) = cx.get::<Fleet>() else { return next.run(cx, request).await };
        loop {
            let told = match fleet.deliver(cx, &mut request).await {
                Ok(told) => told,
                Err(error) => {
                    tracing::error!(%error, "can't see which tasks have ended");
                    Vec::new()
                }
            };
            let answer = next.run(cx, request.clone()).await?;
            fleet.mark_delivered(&told).await;
            if answer.message.tool_calls().next().is_some() || !fleet.waits_for_more(cx).await {
                return Ok(answer);
            }
            request.messages.push(answer.message);
        }
    }
}

impl Fleet {
    /// What the caller wants done about background tasks when the root has its answer. Whether there is news that it should answer to.
    async fn waits_for_more(&self, cx: &RunContext) -> bool {
        if cx.depth() > 0 || cx.is_cancelled() {
            return false;
        }
        let root = cx.session_id();
        match SpawnOptions::of(cx).background {
            Background::Detach => false,
            Background::Cancel => {
                self.tasks.cancel_below(root);
                self.over(cx, self.tasks.live_below(root)).await;
                false
            }
            Background::Wait => {
                self.over(cx, self.tasks.live_of(root)).await;
                let news = self.tasks.undelivered(root).await.is_ok_and(|ended| !ended.is_empty());
                if !news {
                    self.over(cx, self.tasks.live_below(root)).await;
                }
                news && !cx.is_cancelled()
            }
        }
    }

    /// Waits for the ends of tasks, or until somebody stops the run.
    async fn over(&self, cx: &RunContext, tasks: Vec<mainstem_message::TaskId>) {
        tokio::select! {
            biased;
            () = cx.cancelled() => {}
            _ = self.tasks.wait(&tasks, Duration::MAX) => {}
        }
    }
}
