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

/// What a rule names and what does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misspelt {
    /// A tool.
    Tool {
        /// The name in the rule.
        tool: String,
        /// The tool that is probably meant.
        near: String,
    },
    /// An argument of a tool.
    Argument {
        /// The tool.
        tool: String,
        /// The name in the rule.
        argument: String,
        /// The arguments that the tool has.
        known: Vec<String>,
    },
}

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
        let ruled = spec.permissions.iter().filter_map(|(pattern, _)| {
            Some(match self.misspelt(&pattern.parse().ok()?)? {
                Misspelt::Tool { tool, .. } => unknown("permissions", &tool),
                Misspelt::Argument { argument, known, .. } => {
                    let (id, pattern) = (spec.id.clone(), pattern.clone());
                    CatalogError::UnknownArgument { id, pattern, argument, known }
                }
            })
        });
        listed.chain(denied.map(|tool| unknown("disallowed_tools", tool))).chain(ruled).collect()
    }

    /// Returns what a rule names and what does not exist: such a rule protects nothing. A tool that
    /// resembles none may be a server's.
    pub fn misspelt(&self, pattern: &Pattern) -> Option<Misspelt> {
        let own = own_tools().map(str::to_owned);
        let known: Vec<_> = self.tools.names().chain(self.fleet_tools()).chain(own).collect();
        if known.iter().any(|tool| pattern.is_about_tool(tool)) {
            return self.misspelt_argument(pattern);
        }
        let near = closest(pattern.tool(), known.iter().map(String::as_str))?;
        Some(Misspelt::Tool { tool: pattern.tool().to_owned(), near: near.to_owned() })
    }

    /// Returns the argument of a tool that a rule names and that the tool does not have.
    fn misspelt_argument(&self, pattern: &Pattern) -> Option<Misspelt> {
        let (argument, tool) = (pattern.argument()?, self.tools.get(pattern.tool())?);
        // It opens a path to the commands of a tool that has no such argument.
        if pattern.named_path(pattern.tool()).is_some() {
            return None;
        }
        let parameters = tool.spec().parameters;
        let known: Vec<_> = parameters.get("properties")?.as_object()?.keys().cloned().collect();
        // Another schema may take arguments that it does not list.
        let is_closed = parameters.get("additionalProperties").is_some_and(|more| more == false);
        let is_near = || closest(argument, known.iter().map(String::as_str)).is_some();
        let is_misspelt = !known.iter().any(|name| name == argument) && (is_closed || is_near());
        is_misspelt.then(|| Misspelt::Argument {
            tool: pattern.tool().into(),
            argument: argument.into(),
            known,
        })
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
