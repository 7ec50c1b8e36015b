//! The tools that a harness gives only if it is told to.

use std::collections::BTreeMap;

/// Returns how to turn each of them on, by name.
pub(super) fn by_setters() -> BTreeMap<String, String> {
    let made = [("agent_generate", "with_agent_generate")].into_iter();
    #[cfg(feature = "files")]
    let made = made.chain(mainstem_workspace::FILE_TOOLS.map(|tool| (tool, "with_file_tools")));
    #[cfg(all(feature = "files", unix))]
    let made = made.chain([("shell", "with_shell")]);
    let remedy = |setter| format!("HarnessBuilder::{setter} turns it on");
    made.map(|(tool, setter)| (tool.to_owned(), remedy(setter))).collect()
}
