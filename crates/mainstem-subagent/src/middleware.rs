//! What makes an agent one that spawns.

use std::sync::Arc;

use mainstem_react::Middleware;
use mainstem_tool::{RunContext, Tool};

use crate::{Fleet, prompt::fleet_section, tools};

/// Gives an agent tools for its children (`agent_spawn`, `agent_fanout`, `agent_send`, `agent_list`), and tells it whom it can spawn.
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

impl Middleware for Subagents {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        tools::all().into_iter().filter(|tool| self.gives(&tool.spec().name)).collect()
    }

    fn system_prompt(&self, cx: &RunContext) -> Option<String> {
        let spawns = self.gives("agent_spawn") || self.gives("agent_fanout");
        spawns.then(|| cx.get::<Fleet>()).flatten().map(|fleet| fleet_section(fleet.catalog()))
    }
}
