//! Settings to a harness: its agent, its model, and what agents can access.

use std::{num::NonZeroUsize, path::PathBuf};

#[cfg(not(unix))]
use anyhow::bail;
use anyhow::{Context, anyhow, ensure};
use mainstem::{
    BuildError, Harness, HarnessBuilder,
    declarations::{Diagnostic, LeaderError},
    model::ModelRegistry,
    react::Compaction,
    remote::TraceContext,
    workspace::{FILE_TOOLS, SessionFiles},
};

use crate::{
    agents::{why_left_out, why_unread},
    config::{CompactAt, Config, FleetLimits, Setting, Settings, value, var},
    demo,
    exit::{Exit, Fault, OrExit},
    model,
    store::Store,
    telemetry,
};

/// What a command requires of its harness.
pub(crate) struct Requirements<'a> {
    pub(crate) agent: Option<&'a str>,
    pub(crate) plan: bool,
    pub(crate) foreign: bool,
    pub(crate) demo_pace: f64,
    /// The journal that records sessions, if they are recorded.
    pub(crate) journal: Option<Store>,
    /// The store of sessions' files, if there is one.
    pub(crate) files: Option<&'a str>,
}

impl Default for Requirements<'_> {
    fn default() -> Self {
        Self { agent: None, plan: false, foreign: false, demo_pace: 1.0, journal: None, files: None }
    }
}

impl Requirements<'_> {
    /// Builds the harness.
    ///
    /// # Errors
    /// A setting is invalid, or the agent can't lead a run; the error has its origin.
    pub(crate) fn build(self, config: &Config, model: &Setting<String>) -> Result<Harness, Fault> {
        let (workspace, agent) = (workspace(&config.settings), self.agent);
        let harness = self.builder(config, model, &workspace).or_exit(Exit::Config)?;
        // A builder that fails loses its findings.
        let found = match model.value == demo::NAME {
            true => Vec::new(),
            false => harness.check().unwrap_or_default(),
        };
        // Another agent than the one that is meant would lead, without its rules.
        if agent.is_none()
            && let Some(why) = why_unread("main", &found)
        {
            return Err(anyhow!(why)).or_exit(Exit::Config);
        }
        match harness.build() {
            Err(BuildError::Leader(error)) => Err(not_leading(error, &found)).or_exit(Exit::Usage),
            built => built.map_err(|error| in_words(error, &workspace)).or_exit(Exit::Config),
        }
    }

    fn builder(
        self,
        config: &Config,
        model: &Setting<String>,
        workspace: &Setting<PathBuf>,
    ) -> anyhow::Result<HarnessBuilder> {
        let settings = &config.settings;
        let registry = model::registry(settings, self.demo_pace, var)?;
        let resolved = model::resolve(&registry, &model.value).with_context(|| model.origin.clone())?;
        let harness = match self.agent {
            // The flag wins over the model of the agent's file.
            Some(id) if model.origin != "--model" => Harness::builder("main", resolved).with_agent(id),
            agent => Harness::builder(agent.unwrap_or("main"), resolved),
        };
        let compaction = compaction(settings, &registry)?;
        let mut harness = harness
            .with_compaction(compaction)
            .with_repetition_limits(settings.repetition.limits())
            .with_registry(registry)
            .with_model_options(settings.model_options()?)
            .with_plan_tools(self.plan)
            .with_trace_context(TraceContext::new(telemetry::trace_parent))
            .with_permissions(settings.permissions.own())
            .with_workspace_permissions(settings.permissions.project());
        harness = match &*model.value {
            demo::NAME => {
                check_directory(workspace)?;
                demo::configure(harness, self.demo_pace)
            }
            _ => {
                let harness = harness.with_workspace(&workspace.value);
                add_tools(if self.foreign { harness.with_foreign_agents(true) } else { harness }, config)?
            }
        };
        if let Some(prices) = &settings.prices {
            harness = harness.with_prices(prices.value.clone());
        }
        if let Some(Store { journal, tasks, files, .. }) = self.journal {
            harness = files.into_iter().fold(harness, HarnessBuilder::with_protected).with_journal(journal);
            if let Some(tasks) = tasks {
                harness = harness.with_task_store(tasks);
            }
        }
        if let Some(files) = self.files {
            let files = SessionFiles::open(files).map_err(|error| anyhow!("--session-files: {error}"))?;
            harness = harness.with_session_files(files);
        }
        if let Some(most) = value(&settings.max_turns) {
            harness = harness.with_max_iterations(most.get());
        }
        Ok(limited(harness, &settings.limits))
    }
}

/// Returns when and how conversations are compacted.
fn compaction(settings: &Settings, registry: &ModelRegistry) -> anyhow::Result<Compaction> {
    let mut compaction = Compaction::default();
    if let Some(CompactAt(percent)) = value(&settings.compact_at) {
        compaction = match percent {
            0 => compaction.with_enabled(false),
            percent => compaction.with_threshold(f64::from(percent) / 100.0),
        };
    }
    if let Some(Setting { value: name, origin }) = &settings.compaction_model {
        compaction = compaction.with_model(model::resolve(registry, name).with_context(|| origin.clone())?);
    }
    if let Some(windows) = value(&settings.context_windows) {
        compaction = compaction.with_windows(windows);
    }
    Ok(compaction)
}

/// Returns notes on the settings to show before a run.
pub(crate) fn notes(settings: &Settings, is_demo: bool) -> Vec<String> {
    if is_demo { unused(settings).collect() } else { Vec::new() }
}

/// Returns a warning for each setting that the demo ignores.
fn unused(settings: &Settings) -> impl Iterator<Item = String> {
    let workspace = settings.workspace.as_ref().map(|workspace| ("agents", &*workspace.origin));
    let shell = settings.shell.on().map(|origin| ("tools", origin));
    let servers = settings.mcp.values().next().map(|server| ("tools", &*server.origin));
    let effort = settings.effort.as_ref().map(|effort| ("models", &*effort.origin));
    let on_cut = settings.on_cut.as_ref().map(|way| ("models", &*way.origin));
    let cache = settings.prompt_cache.as_ref().map(|cache| ("models", &*cache.origin));
    let unused = workspace.into_iter().chain(shell).chain(servers).chain(effort).chain(on_cut).chain(cache);
    unused.map(|(what, origin)| format!("warning: the demo brings its own {what}; {origin} is not used"))
}

/// Returns the diagnostics of the agents' files, a line each.
pub(crate) fn found(harness: &Harness) -> impl Iterator<Item = String> {
    harness.diagnostics().into_iter().map(|found| found.to_string())
}

/// Checks that the agent exists and can run as the root.
pub(crate) fn check_agent(harness: &Harness, id: &str) -> anyhow::Result<()> {
    harness.check_leader(id).map_err(|error| not_leading(error, &harness.diagnostics()))
}

/// Returns why an agent can't lead a run: the error in its file, if there is one.
fn not_leading(error: LeaderError, found: &[Diagnostic]) -> anyhow::Error {
    let why = match &error {
        LeaderError::Unknown { id, .. } => why_left_out(id, found),
        _ => None,
    };
    why.map_or_else(|| error.into(), |why| anyhow!(why)).context("--agent")
}

/// Adds what agents can access: files, commands, MCP servers.
pub(crate) fn add_tools(harness: HarnessBuilder, config: &Config) -> anyhow::Result<HarnessBuilder> {
    let Config { settings, protected, trusted } = config;
    let harness = with_remedies(harness.with_file_tools(!settings.files.is_off()), settings);
    let harness = settings
        .mcp
        .iter()
        .fold(harness, |harness, (name, server)| harness.with_mcp_server(name, server.value.clone()))
        .with_agent_servers(settings.agent_servers.is_on());
    let harness = protected.iter().fold(harness, HarnessBuilder::with_protected);
    let trusted = trusted.clone();
    let harness = harness.with_trust(move |folder, part| trusted.has(folder, part));
    let harness = settings.remote_hosts.iter().cloned().fold(harness, HarnessBuilder::with_remote_host);
    let harness = harness.with_agent_generate(settings.agent_generate.is_on());
    match settings.shell.on() {
        Some(origin) => with_shell(harness, settings).context(origin.to_owned()),
        None => Ok(harness),
    }
}

/// Says how a user of the command turns on what is off.
fn with_remedies(harness: HarnessBuilder, settings: &Settings) -> HarnessBuilder {
    let on = |name: &str| {
        let flag = name.replace('_', "-");
        format!("turn it on with --{flag}, or with {name} = true in mainstem.toml")
    };
    let harness = harness.with_tool_off("agent_generate", on("agent_generate"));
    #[cfg(unix)]
    let harness = harness.with_tool_off("shell", on("shell"));
    let Some(origin) = settings.files.off() else { return harness };
    let remedy = format!("{origin} turns off the tools for files");
    FILE_TOOLS.into_iter().fold(harness, |harness, tool| harness.with_tool_off(tool, &*remedy))
}

/// Sets the limits of the fleet.
pub(crate) fn limited(mut harness: HarnessBuilder, limits: &FleetLimits) -> HarnessBuilder {
    let FleetLimits { max_depth, max_children, max_tasks, wait, idle } = limits;
    harness = value(max_depth).into_iter().fold(harness, HarnessBuilder::with_max_depth);
    let max_children = value(max_children).map(NonZeroUsize::get);
    harness = max_children.into_iter().fold(harness, HarnessBuilder::with_max_children);
    harness = value(max_tasks).into_iter().fold(harness, HarnessBuilder::with_max_tasks);
    harness = value(wait).into_iter().fold(harness, HarnessBuilder::with_wait);
    value(idle).into_iter().fold(harness, HarnessBuilder::with_idle_timeout)
}

#[cfg(unix)]
fn with_shell(harness: HarnessBuilder, settings: &Settings) -> anyhow::Result<HarnessBuilder> {
    Ok(harness.with_shell(shell_options(settings)))
}

/// Returns how commands are confined.
#[cfg(unix)]
pub(crate) fn shell_options(settings: &Settings) -> mainstem::workspace::ShellOptions {
    let network = value(&settings.shell_network).unwrap_or_default();
    let limits = settings.shell_limits.limits();
    mainstem::workspace::ShellOptions::default().with_network(network).with_limits(limits)
}

#[cfg(not(unix))]
fn with_shell(_: HarnessBuilder, _: &Settings) -> anyhow::Result<HarnessBuilder> {
    bail!("there is no shell on this system")
}

/// Returns the directory that agents work in, with its origin.
pub(crate) fn workspace(settings: &Settings) -> Setting<PathBuf> {
    settings.workspace.clone().unwrap_or_else(|| Setting::new(".".into(), "the current directory"))
}

/// Checks that the workspace is a directory.
pub(crate) fn check_directory(Setting { value, origin }: &Setting<PathBuf>) -> anyhow::Result<()> {
    ensure!(value.is_dir(), "{origin}: workspace {value:?} is not a directory");
    Ok(())
}

/// Returns the error of a harness that can't be built, with the setting that causes it.
pub(crate) fn in_words(error: BuildError, workspace: &Setting<PathBuf>) -> anyhow::Error {
    match error {
        BuildError::Workspace { .. } | BuildError::Open(_) => anyhow!("{}: {error}", workspace.origin),
        BuildError::Mcp(_) => anyhow!("[mcp] in the configuration: {error}"),
        other => other.into(),
    }
}
