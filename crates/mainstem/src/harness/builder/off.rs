//! The tools that a harness gives only if it is told to.

use std::collections::BTreeMap;

/// Returns how to turn each of them on, by name.
pub(super) fn by_setters() -> BTreeMap<String, String> {
    let mut tools = vec![("agent_generate", "with_agent_generate")];
    #[cfg(feature = "files")]
    tools.extend(mainstem_workspace::FILE_TOOLS.map(|tool| (tool, "with_file_tools")));
    #[cfg(all(feature = "files", unix))]
    tools.push(("shell", "with_shell"));
    let remedy = |setter| format!("HarnessBuilder::{setter} turns it on");
    tools.into_iter().map(|(tool, setter)| (tool.to_owned(), remedy(setter))).collect()
}
