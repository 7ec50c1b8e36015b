//! The tools that an agent which may spawn has; one file each.

mod agent_close;
mod agent_fanout;
mod agent_list;
mod agent_send;
mod agent_spawn;
mod task_cancel;
mod task_list;
mod task_output;
mod task_wait;

use std::sync::Arc;

use mainstem_tool::Tool;

/// All of them.
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
