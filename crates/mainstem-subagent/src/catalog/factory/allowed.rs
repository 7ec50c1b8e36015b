//! The tools that a spec lets its agent have.

use mainstem_policy::Pattern;
use mainstem_spec::AgentSpec;

/// The tools that a spec lists and disallows.
pub(super) struct Allowed {
    only: Option<Vec<String>>,
    never: Vec<String>,
}

impl Allowed {
    pub(super) fn of(spec: &AgentSpec) -> Self {
        Self { only: spec.tools.clone(), never: spec.disallowed_tools.clone() }
    }

    /// Returns `true` if the agent may inherit the tool.
    pub(super) fn has(&self, tool: &str) -> bool {
        let is_in = |list: &[String]| list.iter().any(|listed| is_meant(listed, tool));
        self.only.as_deref().is_none_or(is_in) && !is_in(&self.never)
    }

    /// Returns `true` if it lists the tool by name; `*` stands for the inherited tools.
    pub(super) fn names(&self, tool: &str) -> bool {
        let mut listed = self.only.iter().flatten().filter(|listed| *listed != "*");
        listed.any(|listed| is_meant(listed, tool)) && self.has(tool)
    }
}

/// Returns `true` if a list's entry is this tool's name, or a glob for it.
pub(super) fn is_meant(listed: &str, tool: &str) -> bool {
    let by_glob = || listed.parse::<Pattern>().is_ok_and(|pattern| pattern.is_about_all_of(tool));
    listed == tool || listed.contains('*') && by_glob()
}
