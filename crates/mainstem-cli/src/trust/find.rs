//! The parts of agents' files that need trust.

use std::path::Path;

use mainstem::{
    spec::{AgentSpec, Origin, Sources},
    subagent::trust::parts,
};

use super::Reads;
use crate::{
    config::Settings,
    harness::workspace,
    trusted::{FolderPart, canonical},
};

/// Returns the parts of agents' files that apply to a run with these settings.
pub(super) fn of_agents(settings: &Settings, reads: Reads) -> Vec<FolderPart> {
    if reads == Reads::NoAgents {
        return Vec::new();
    }
    let mut parts = in_agents_of(&workspace(settings).value, reads == Reads::Foreign);
    // A declared server is an error of its agent unless `agent_servers` allows it.
    let may_declare = settings.agent_servers.is_on();
    parts.retain(|found| may_declare || !found.part.key().starts_with("mcp_servers."));
    parts
}

/// Returns the parts of agents' files in a workspace.
pub(super) fn in_agents_of(workspace: &Path, foreign: bool) -> Vec<FolderPart> {
    let ours = Sources::of_workspace(workspace);
    let sources = if foreign { ours.clone().with_other_products_of(workspace) } else { ours.clone() };
    let (specs, _) = sources.load();
    let folder = canonical(workspace);
    let of_spec = |spec: &AgentSpec| {
        let is_ours = |path: &Path| ours.dirs().iter().any(|dir| path.starts_with(dir));
        let is_foreign = matches!(&spec.origin, Origin::File(path) if !is_ours(path));
        let folder = folder.clone();
        parts(spec, workspace).into_iter().map(move |part| FolderPart {
            folder: folder.clone(),
            part,
            is_foreign,
        })
    };
    specs.iter().flat_map(of_spec).collect()
}
