//! The tools of an agent that may spawn, one file each.

mod agent_close;
mod agent_fanout;
mod agent_list;
mod agent_send;
mod agent_spawn;
pub(crate) mod agent_tool;
mod load_skill;
mod plan_enter;
mod plan_exit;
mod task_cancel;
pub(crate) mod task_list;
mod task_output;
mod task_wait;

use std::sync::{Arc, LazyLock};

use mainstem_tool::Tool;

/// The names of the tools for planning, which an agent has only on request.
pub(crate) const PLAN: [&str; 2] = ["plan_enter", "plan_exit"];

/// The name of the tool for skills, which an agent has only if there are skills.
pub(crate) const LOAD_SKILL: &str = "load_skill";

/// The names of the tools that a workspace adds. A spec can deny them in a harness without a
/// workspace, too.
pub(crate) const OF_WORKSPACE: [&str; 7] =
    ["read_file", "write_file", "edit_file", "list_files", "glob_files", "grep_files", "shell"];

/// A tool and its name.
pub(crate) type Named = (String, Arc<dyn Tool>);

// Shared by all agents: they have no state, and a schema takes a while to make.
static ALL: LazyLock<Vec<Named>> = LazyLock::new(|| {
    named([
        agent_spawn::tool(),
        agent_fanout::tool(),
        agent_send::tool(),
        agent_list::tool(),
        agent_close::tool(),
        task_output::tool(),
        task_wait::tool(),
        task_cancel::tool(),
        task_list::tool(),
    ])
});
static SPECIAL: LazyLock<Vec<Named>> =
    LazyLock::new(|| named([plan_enter::tool(), plan_exit::tool(), load_skill::tool()]));

fn named<const N: usize>(tools: [Arc<dyn Tool>; N]) -> Vec<Named> {
    tools.into_iter().map(|tool| (tool.spec().name, tool)).collect()
}

/// Returns all but the special ones.
pub(crate) fn all() -> impl Iterator<Item = &'static Named> {
    ALL.iter()
}

/// Returns those that an agent has only on request: for planning, and for skills.
pub(crate) fn special() -> impl Iterator<Item = &'static Named> {
    SPECIAL.iter()
}
