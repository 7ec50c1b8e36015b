//! The tools that an agent which may spawn has; one file each.

mod agent_close;
mod agent_fanout;
mod agent_generate;
mod agent_list;
mod agent_send;
mod agent_spawn;
mod load_skill;
mod plan_enter;
mod plan_exit;
mod task_cancel;
mod task_list;
mod task_output;
mod task_wait;

use std::sync::Arc;

use mainstem_tool::Tool;

pub(crate) use self::agent_generate::{Drafts, GENERATE};

/// The names of the tools for planning, which are given only where they are wanted.
pub(crate) const PLAN: [&str; 2] = ["plan_enter", "plan_exit"];

/// The tools for planning.
pub(crate) fn plan() -> Vec<Arc<dyn Tool>> {
    vec![plan_enter::tool(), plan_exit::tool()]
}

/// The name of the tool for skills, which is given only where there are some.
pub(crate) const LOAD_SKILL: &str = "load_skill";

/// The tool for skills.
pub(crate) fn load_skill() -> Arc<dyn Tool> {
    load_skill::tool()
}

/// All others.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        agent_spawn::tool(),
        agent_fanout::tool(),
        agent_send::tool(),
        agent_list::tool(),
        agent_close::tool(),
        task_output::tool(),
        task_wait::tool(),
        task_cancel::tool(),
        task_list::tool(),
    ]
}
