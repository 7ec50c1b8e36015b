//! From settings to a harness: which agent, with which model, and what agents can touch.

use std::path::PathBuf;

#[cfg(not(unix))]
use anyhow::bail;
use anyhow::{Context, anyhow};
use mainstem::{BuildError, Harness, HarnessBuilder, journal::SqliteJournal};

use crate::{
    config::{Setting, Settings, var},
    demo,
    exit::{Exit, Fault, OrExit},
    model, store,
};

/// What a command says about the harness that it wants.
pub(crate) struct Wanted<'a> {
    pub(crate) agent: Option<&'a str>,
    pub(crate) plan: bool,
    pub(crate) foreign: bool,
    pub(crate) demo_pace: f64,
    /// Where sessions are kept.
    pub(crate) journal: Option<SqliteJournal>,
}

impl Wanted<'_> {
    /// Builds it.
    ///
    /// # Errors
    /// What can't be used, and who said it.
    pub(crate) fn build(self, settings: &Settings, model: &Setting<String>) -> Result<Harness, Fault> {
        let workspace = workspace(settings);
        let harness = self.builder(settings, model, &workspace).or_exit(Exit::Config)?;
        match harness.build() {
            Err(BuildError::Leader(error)) => Err(error).context("--agent").or_exit(Exit::Usage),
            built => built.map_err(|error| in_words(error, &workspace)).or_exit(Exit::Config),
        }
    }

    fn builder(
        self,
        settings: &Settings,
        model: &Setting<String>,
        workspace: &Setting<PathBuf>,
    ) -> anyhow::Result<HarnessBuilder> {
        let registry = model::registry(settings, self.demo_pace, var)?;
        let resolved = registry.resolve(&model.value).with_context(|| model.origin.clone())?;
        let harness = match self.agent {
            // The flag wins over the model of the agent's file.
            Some(id) if model.origin != "--model" => Harness::builder("main", resolved).with_agent(id),
            agent => Harness::builder(agent.unwrap_or("main"), resolved),
        };
        let mut harness = harness
            .with_registry(registry)
            .with_plan_tools(self.plan)
            .with_permissions(settings.permissions.clone())
            .with_workspace_permissions(settings.project_permissions.clone());
        harness = match &*model.value {
            demo::NAME => demo::furnish(harness, self.demo_pace),
            _ => {
                let harness = harness.with_workspace(&workspace.value);
                furnish(if self.foreign { harness.with_foreign_agents(true) } else { harness }, settings)?
            }
        };
        if let Some(prices) = &settings.prices {
            harness = harness.with_prices(prices.clone());
        }
        if let Some(journal) = self.journal {
            harness = store::files(journal.path())
                .fold(harness, HarnessBuilder::with_protected)
                .with_journal(journal);
        }
        if let Some(most) = settings.max_turns {
            harness = harness.with_max_iterations(most.get());
        }
        Ok(settings.fleet.on(harness))
    }
}

/// What a person should know of these settings before something runs.
pub(crate) fn notes(settings: &Settings, is_demo: bool) -> Vec<String> {
    if is_demo { unused(settings).collect() } else { Vec::new() }
}

/// What the demo has no use for.
fn unused(settings: &Settings) -> impl Iterator<Item = String> {
    let workspace = settings.workspace.as_ref().map(|said| ("agents", &said.origin));
    let shell = settings.shell.as_ref().filter(|said| said.value).map(|said| ("tools", &said.origin));
    let servers = settings.mcp.values().next().map(|said| ("tools", &said.origin));
    let unused = workspace.into_iter().chain(shell).chain(servers);
    unused.map(|(what, origin)| format!("warning: the demo brings its own {what}; {origin} is not used"))
}

/// What is wrong with the agents of a harness, a line each.
pub(crate) fn found(harness: &Harness) -> impl Iterator<Item = String> {
    harness.diagnostics().into_iter().map(|found| found.to_string())
}

/// Whether the agent exists and may run as the root.
pub(crate) fn check_agent(harness: &Harness, id: &str) -> anyhow::Result<()> {
    harness.check_leader(id).context("--agent")
}

/// What agents can touch.
pub(crate) fn furnish(harness: HarnessBuilder, settings: &Settings) -> anyhow::Result<HarnessBuilder> {
    let harness = harness.with_file_tools(settings.files.as_ref().is_none_or(|said| said.value));
    let harness = settings
        .mcp
        .iter()
        .fold(harness, |harness, (name, said)| harness.with_mcp_server(name, said.value.clone()))
        .with_agent_servers(settings.agent_servers.as_ref().is_some_and(|said| said.value));
    let harness = settings.protected.iter().fold(harness, HarnessBuilder::with_protected);
    let trust = settings.trust.clone();
    let harness = harness.with_trust(move |folder, part| trust.has(folder, part));
    let harness =
        harness.with_agent_generate(settings.agent_generate.as_ref().is_some_and(|said| said.value));
    match &settings.shell {
        Some(said) if said.value => with_shell(harness, settings).context(said.origin.clone()),
        _ => Ok(harness),
    }
}

#[cfg(unix)]
fn with_shell(harness: HarnessBuilder, settings: &Settings) -> anyhow::Result<HarnessBuilder> {
    Ok(harness.with_shell(shell_options(settings)))
}

/// How commands are held.
#[cfg(unix)]
pub(crate) fn shell_options(settings: &Settings) -> mainstem::workspace::ShellOptions {
    let network = settings.shell_network.as_ref().map(|said| said.value).unwrap_or_default();
    let limits = settings.shell_limits.limits();
    mainstem::workspace::ShellOptions::default().with_network(network).with_limits(limits)
}

#[cfg(not(unix))]
fn with_shell(_: HarnessBuilder, _: &Settings) -> anyhow::Result<HarnessBuilder> {
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
