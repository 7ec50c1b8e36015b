//! Finds the names in a spec that mean nothing.

use mainstem_policy::Pattern;
use mainstem_spec::{AgentSpec, closest};

use crate::{
    catalog::{
        error::CatalogError,
        factory::{AgentFactory, allowed::is_meant},
        generate::GENERATE,
    },
    tools,
};

impl AgentFactory {
    /// Returns the tools that a spec lists or disallows and that do not exist, or are off.
    pub(super) fn unknown_tools(&self, spec: &AgentSpec) -> Vec<CatalogError> {
        let known: Vec<_> = self.tools.names().chain(self.fleet_tools()).collect();
        let has = self.tools_of(spec, |_| true);
        let may_come =
            |tool: &str| has.may_have(tool) || tool.contains('*') && has.sources().next().is_some();
        let is_known = |listed: &str| known.iter().any(|tool| is_meant(listed, tool)) || may_come(listed);
        let unknown = |key, tool: &String| {
            let (id, tool, known) = (spec.id.clone(), tool.clone(), known.clone());
            match self.tools_off.get(&tool).cloned() {
                Some(remedy) => CatalogError::ToolOff { id, key, tool, remedy },
                None => CatalogError::UnknownTool { id, key, tool, known },
            }
        };
        let listed = spec.tools.iter().flatten();
        let listed = listed.filter(|tool| !is_known(tool) && *tool != tools::LOAD_SKILL);
        let denied = spec.disallowed_tools.iter().filter(|tool| !is_known(tool) && !can_be_denied(tool));
        let listed = listed.map(|tool| unknown("tools", tool));
        let ruled = spec.permissions.iter().filter_map(|(pattern, _)| self.misspelt(&pattern.parse().ok()?));
        let ruled = ruled.map(|(tool, _)| unknown("permissions", &tool));
        listed.chain(denied.map(|tool| unknown("disallowed_tools", tool))).chain(ruled).collect()
    }

    /// Returns the tool that a rule names and that does not exist, and the one that was probably
    /// meant: such a rule protects nothing. A tool that resembles none may be a server's.
    pub fn misspelt(&self, pattern: &Pattern) -> Option<(String, String)> {
        let own = own_tools().map(str::to_owned);
        let known: Vec<_> = self.tools.names().chain(self.fleet_tools()).chain(own).collect();
        if known.iter().any(|tool| pattern.is_about_tool(tool)) {
            return None;
        }
        let near = closest(pattern.tool(), known.iter().map(String::as_str))?;
        Some((pattern.tool().to_owned(), near.to_owned()))
    }

    /// Returns the servers that a spec names and that are not configured.
    pub(super) fn unknown_servers(&self, spec: &AgentSpec) -> impl Iterator<Item = CatalogError> {
        let has = |name: &str| self.servers_of(spec).any(|source| source.name() == name);
        let listed = spec
            .mcp_servers
            .iter()
            .flatten()
            .filter(move |server| server.declaration.is_none() && !has(&server.name));
        let shared = self.servers.iter().filter(|grant| !grant.is_own());
        let known: Vec<_> = shared.map(|grant| grant.source.name().to_owned()).collect();
        listed.map(move |server| CatalogError::UnknownServer {
            id: spec.id.clone(),
            server: server.name.clone(),
            known: known.clone(),
        })
    }

    /// Returns the skills that a spec lists and that do not exist.
    pub(super) fn unknown_skills(&self, spec: &AgentSpec) -> impl Iterator<Item = CatalogError> {
        let unknown = spec.skills.iter().flatten().filter(|skill| !self.skills.contains(skill));
        unknown.map(|skill| CatalogError::UnknownSkill {
            id: spec.id.clone(),
            skill: skill.clone(),
            known: self.skills.clone(),
        })
    }
}

/// Returns `true` if a spec may disallow a tool that this harness lacks: one that comes with this
/// version, or with a server.
fn can_be_denied(tool: &str) -> bool {
    tool.starts_with("mcp__") || own_tools().any(|own| is_meant(tool, own))
}

/// Returns the tools that come with this version, which a harness may lack.
fn own_tools() -> impl Iterator<Item = &'static str> {
    tools::OF_WORKSPACE.into_iter().chain(tools::PLAN).chain([tools::LOAD_SKILL, GENERATE])
}
