//! Catalog errors as findings about an agent's file, each with its place.

use mainstem_model::ResolveError;
use mainstem_spec::{SpecError, SpecSet, closest, locate};

use crate::{catalog::error::CatalogError, error::SpawnError};

impl CatalogError {
    /// Returns the error as a finding about the agent's file, with the place and a suggestion.
    ///
    /// Reads the file again; blocks on the file system.
    #[must_use]
    pub fn finding(&self, specs: &SpecSet) -> SpecError {
        let finding = match self.is_warning() {
            true => SpecError::warning(self.to_string()),
            false => SpecError::error(self.to_string()),
        };
        let (key, name) = self.about();
        let finding = finding.about(key).with_suggestion(self.suggestion().as_deref());
        match specs.get(self.agent_id()) {
            Some(spec) => locate(finding, spec, name),
            None => finding,
        }
    }

    /// Returns the key that it is about, and the name at that key.
    fn about(&self) -> (&str, Option<&str>) {
        match self {
            Self::Model { source, .. } => ("model", Some(name(source))),
            Self::Permissions { source, .. } => ("permissions", Some(&source.pattern)),
            Self::Tools { .. } | Self::OnlySpawns { .. } => ("tools", None),
            Self::UnknownTool { key, tool, .. } | Self::ToolOff { key, tool, .. } => (key, Some(tool)),
            Self::UnknownArgument { pattern, .. } => ("permissions", Some(pattern)),
            Self::UnknownSkill { skill, .. } => ("skills", Some(skill)),
            Self::UnknownServer { server, .. } => ("mcp_servers", Some(server)),
            Self::NoWorkspace { .. } => ("workspace.path", None),
            Self::NoRemotes { .. } | Self::Remote { .. } | Self::RunsElsewhere { .. } => ("url", None),
            Self::AgentTool { .. } => ("agent_id", None),
            Self::Output { .. } => ("output_schema", None),
        }
    }

    /// Returns the known name that is nearest to the wrong one.
    fn suggestion(&self) -> Option<String> {
        let (wrong, known) = match self {
            Self::Model { source, .. } => return closest_model(source),
            Self::UnknownTool { tool: name, known, .. }
            | Self::UnknownSkill { skill: name, known, .. }
            | Self::UnknownArgument { argument: name, known, .. }
            | Self::UnknownServer { server: name, known, .. } => (name, known),
            Self::AgentTool { source, .. } => match &**source {
                SpawnError::UnknownAgent { id, known } => (id, known),
                _ => return None,
            },
            _ => return None,
        };
        closest(wrong, known.iter().map(String::as_str)).map(str::to_owned)
    }
}

fn name(error: &ResolveError) -> &str {
    match error {
        ResolveError::Unknown { name, .. } | ResolveError::Provider { name, .. } => name,
        _ => "",
    }
}

/// Returns the name of a model that an unknown one was probably meant to be: a registered name, or
/// the same model of the provider or family with the nearest name.
#[must_use]
pub fn closest_model(error: &ResolveError) -> Option<String> {
    let ResolveError::Unknown { name, known, families } = error else { return None };
    let names = known.iter().filter(|known| !known.ends_with(":…")).map(String::as_str);
    let of_provider = || {
        let (provider, model) = name.split_once(':')?;
        let provider = closest(provider, known.iter().filter_map(|known| known.strip_suffix(":…")))?;
        Some(format!("{provider}:{model}"))
    };
    let of_family = || {
        let (family, model) = name.split_once('-')?;
        let family = closest(family, families.iter().filter_map(|family| family.strip_suffix('-')))?;
        Some(format!("{family}-{model}"))
    };
    closest(name, names).map(str::to_owned).or_else(of_provider).or_else(of_family)
}
