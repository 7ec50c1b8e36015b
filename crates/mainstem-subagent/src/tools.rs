//! The tools that an agent which may spawn has; one file each.

mod agent_fanout;
mod agent_list;
mod agent_send;
mod agent_spawn;

use std::sync::Arc;

use mainstem_tool::Tool;

/// All of them.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![agent_spawn::tool(), agent_fanout::tool(), agent_send::tool(), agent_list::tool()]
}
