//! What makes an agent one that spawns.

use std::sync::Arc;

use mainstem_react::Middleware;
use mainstem_tool::{RunContext, Tool};

use crate::{Fleet, prompt::fleet_section, tools};

/// Gives an agent the tools `agent_spawn`, `agent_fanout`, `agent_send` and `agent_list`, and tells it whom it can spawn.
///
/// The tools need a [`Fleet`] among the extensions of the run's context; without one they answer with an error.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Subagents;

impl Subagents {
    /// The middleware; it has no settings.
    pub fn new() -> Self {
        Self
    }
}

impl Middleware for Subagents {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        tools::all()
    }

    fn system_prompt(&self, cx: &RunContext) -> Option<String> {
        Some(fleet_section(cx.get::<Fleet>()?.catalog()))
    }
}
