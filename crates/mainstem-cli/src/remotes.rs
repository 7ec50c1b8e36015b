//! Agents of other servers: which are in effect, and what their servers say of them.

use std::sync::Arc;

use mainstem::{
    Harness,
    prelude::ScriptedModel,
    remote::{RemoteDescription, RemoteError, Remotes},
    spec::AgentSpec,
};

use crate::{
    config::{Config, var},
    harness::{add_tools, workspace},
    model, sanitize,
};

/// Returns the declarations with a `url` that are in effect, as a run has them.
///
/// # Errors
/// A setting is invalid.
pub(crate) fn in_effect(config: &Config) -> anyhow::Result<Vec<Arc<AgentSpec>>> {
    let harness = Harness::builder("main", ScriptedModel::new())
        .with_registry(model::registry(&config.settings, 0.0, var)?)
        .with_workspace(&workspace(&config.settings).value);
    let harness = add_tools(harness, config)?.build()?;
    let agents = harness.agents();
    let specs = agents.catalog().iter().map(|entry| entry.spec.clone());
    Ok(specs.filter(|spec| spec.url.is_some()).collect())
}

/// Asks the server of an agent.
///
/// # Errors
/// The server can't be reached, refuses, or speaks no known protocol.
pub(crate) async fn ask(config: &Config, spec: &AgentSpec) -> Result<RemoteDescription, RemoteError> {
    let hosts = config.settings.remote_hosts.iter().cloned();
    hosts.fold(Remotes::new(), Remotes::with_host).describe(spec).await
}

/// Returns a description on one line.
pub(crate) fn line(description: &RemoteDescription) -> String {
    let about = sanitize::clean(&description.about).split_whitespace().collect::<Vec<_>>().join(" ");
    format!("speaks {}: {about}", description.protocol)
}
