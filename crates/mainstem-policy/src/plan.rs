//! Plan mode: which tools run while nothing may change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tools that run in plan mode although they change something: they end it, or start and steer
/// agents that are in it, too.
pub const PLAN_TOOLS: &[&str] = &[
    "plan_exit",
    "agent_spawn",
    "agent_fanout",
    "agent_send",
    "agent_list",
    "agent_close",
    "task_output",
    "task_wait",
    "task_list",
    "task_cancel",
];

/// Whether an agent plans: it may read and change nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "an agent plans or it doesn't")]
pub enum PlanMode {
    /// All tools run that the rules allow.
    #[default]
    Off,
    /// Only read-only tools run, and [`PLAN_TOOLS`].
    On,
}

/// A tool that is refused in plan mode; the text is for models.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("plan mode: {tool} changes things; finish the plan and call plan_exit")]
#[non_exhaustive]
pub struct PlanRefusal {
    /// The tool.
    pub tool: String,
}

impl PlanMode {
    /// Checks whether a tool may run. `is_read_only` is the tool's own claim.
    ///
    /// # Errors
    /// If it may not run, with what to do instead.
    pub fn check(self, tool: &str, is_read_only: bool) -> Result<(), PlanRefusal> {
        if self == Self::Off || !may_change(tool, is_read_only) {
            return Ok(());
        }
        Err(PlanRefusal { tool: tool.to_owned() })
    }
}

/// Returns `true` if a tool may change something itself, rather than through agents that it starts
/// or steers.
pub(crate) fn may_change(tool: &str, is_read_only: bool) -> bool {
    !is_read_only && !PLAN_TOOLS.contains(&tool)
}

#[cfg(test)]
mod tests;
