//! From settings to what agents can touch.

use std::path::PathBuf;

#[cfg(not(unix))]
use anyhow::bail;
use anyhow::{Context, anyhow};
use mainstem::{BuildError, HarnessBuilder};

use crate::config::{Setting, Settings};

/// What agents can touch.
pub(crate) fn furnish(harness: HarnessBuilder, settings: &Settings) -> anyhow::Result<HarnessBuilder> {
    let harness = match &settings.files {
        Some(said) => harness.file_tools(said.value),
        None => harness,
    };
    let harness = settings
        .mcp
        .iter()
        .fold(harness, |harness, (name, said)| harness.mcp_server(name, said.value.clone()))
        .agent_servers(settings.agent_servers.as_ref().is_some_and(|said| said.value));
    let harness = harness.agent_generate(settings.agent_generate.as_ref().is_some_and(|said| said.value));
    match &settings.shell {
        Some(said) if said.value => with_shell(harness).context(said.origin.clone()),
        _ => Ok(harness),
    }
}

#[cfg(unix)]
fn with_shell(harness: HarnessBuilder) -> anyhow::Result<HarnessBuilder> {
    Ok(harness.with_shell())
}

#[cfg(not(unix))]
fn with_shell(_: HarnessBuilder) -> anyhow::Result<HarnessBuilder> {
    bail!("there is no shell on this system")
}

/// Where agents work, and who says so.
pub(crate) fn workspace(settings: &Settings) -> Setting<PathBuf> {
    settings.workspace.clone().unwrap_or_else(|| Setting::new(".".into(), "the current directory"))
}

/// Why a harness can't be built, and who said what is wrong.
pub(crate) fn in_words(error: BuildError, workspace: &Setting<PathBuf>) -> anyhow::Error {
    match error {
        BuildError::Workspace { .. } | BuildError::Open(_) => anyhow!("{}: {error}", workspace.origin),
        BuildError::Mcp(_) => anyhow!("[mcp] in the configuration: {error}"),
        other => other.into(),
    }
}
