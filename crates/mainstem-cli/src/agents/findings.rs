//! What a run would find wrong with the agents' files.

use std::path::Path;

use mainstem::{
    Harness, HarnessBuilder,
    declarations::{Code, Diagnostic},
    prelude::ScriptedModel,
    spec::{AgentSpec, Origin},
};

use crate::{
    config::{Config, var},
    harness::add_tools,
    model,
};

/// Returns the harness that `mainstem run` would build, with a model that is never called.
///
/// # Errors
/// A setting of the configuration is invalid.
pub(crate) fn harness(config: &Config, workspace: &Path, foreign: bool) -> anyhow::Result<HarnessBuilder> {
    let harness = Harness::builder("main", ScriptedModel::new())
        .with_registry(model::registry(&config.settings, 0.0, var)?)
        .with_permissions(config.settings.permissions.own())
        .with_workspace_permissions(config.settings.permissions.project())
        .with_workspace(workspace);
    add_tools(if foreign { harness.with_foreign_agents(true) } else { harness }, config)
}

/// Returns everything that is wrong, as `mainstem agents validate` prints it.
///
/// # Errors
/// A setting of the configuration is invalid.
pub(crate) fn findings(config: &Config, workspace: &Path, foreign: bool) -> anyhow::Result<Vec<Diagnostic>> {
    Ok(harness(config, workspace, foreign)?.check()?)
}

/// Returns `true` if the agent can be read and is left out of runs all the same.
pub(crate) fn is_left_out(spec: &AgentSpec, found: &[Diagnostic]) -> bool {
    let leaves_out = |found: &&Diagnostic| {
        found.is_error() && matches!(found.code(), Code::UnknownModel | Code::Unbuildable)
    };
    found.iter().filter(leaves_out).any(|found| found.is_about(&spec.origin))
}

/// Returns why the agent of this id is left out, with the place; `None` if no error is about its
/// file.
pub(crate) fn why_left_out(id: &str, found: &[Diagnostic]) -> Option<String> {
    let found = found.iter().find(|found| found.is_error() && has_file(found, id))?;
    Some(left_out(id, found))
}

/// Returns why the file of this agent can't be used; `None` if it was read, whatever else prevents
/// that the agent is built.
pub(crate) fn why_unread(id: &str, found: &[Diagnostic]) -> Option<String> {
    let is_unread = |found: &&Diagnostic| {
        found.is_error() && matches!(found.code(), Code::Unreadable | Code::Invalid | Code::UnknownKey)
    };
    let found = found.iter().filter(is_unread).find(|found| has_file(found, id))?;
    Some(left_out(id, found))
}

fn left_out(id: &str, found: &Diagnostic) -> String {
    let mut place = found.file().map(|path| path.display().to_string()).unwrap_or_default();
    for number in [found.line(), found.column()].into_iter().flatten() {
        place.push_str(&format!(":{number}"));
    }
    format!("agent {id:?} is left out: {place}: {}", found.message())
}

/// Returns `true` if the finding is about the file of an agent with this id.
pub(crate) fn has_file(found: &Diagnostic, id: &str) -> bool {
    let name = found.file().and_then(Path::file_stem).map(|name| name.to_string_lossy());
    name.is_some_and(|name| name.trim_end_matches(".agent") == id)
}

/// Returns the path of an agent's file.
pub(crate) fn path(spec: &AgentSpec) -> Option<&Path> {
    match &spec.origin {
        Origin::File(path) => Some(path),
        _ => None,
    }
}
