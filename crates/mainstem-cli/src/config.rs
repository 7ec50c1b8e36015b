//! What is configured: flag before environment, before `./mainstem.toml`, before the user's `mainstem/config.toml`.

mod file;

use std::{
    collections::BTreeMap,
    io::ErrorKind,
    num::NonZeroU32,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use etcetera::BaseStrategy;
use mainstem::{
    mcp::Server,
    policy::{Cost, Limits, Prices, Rules},
    vendor::VENDORS,
};

use crate::args::{self, FleetLimits};

/// The file of the directory where the command runs, which somebody else may have written.
pub(crate) const PROJECT: &str = "./mainstem.toml";

/// A value and where it was said, for messages about it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) origin: String,
}

/// What the flags, the environment or a file say; or all of them together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    pub(crate) model: Option<Setting<String>>,
    pub(crate) workspace: Option<Setting<PathBuf>>,
    pub(crate) max_turns: Option<NonZeroU32>,
    /// How far agents may go.
    pub(crate) fleet: FleetLimits,
    /// Those of all files hold: none can allow what another refuses.
    pub(crate) permissions: Rules,
    /// Whether agents get tools for files.
    pub(crate) files: Option<Setting<bool>>,
    /// Whether they get a shell.
    pub(crate) shell: Option<Setting<bool>>,
    /// Whether the agent that runs can write new ones.
    pub(crate) agent_generate: Option<Setting<bool>>,
    /// What the run may spend.
    pub(crate) budget: Limits,
    /// What models cost, besides what is known.
    pub(crate) prices: Option<Prices>,
    /// MCP servers, by name.
    pub(crate) mcp: BTreeMap<String, Setting<Server>>,
    /// Whether agents' files may declare some, too.
    pub(crate) agent_servers: Option<Setting<bool>>,
    /// By vendor.
    pub(crate) providers: BTreeMap<&'static str, Access>,
}

/// How a vendor, or a server that speaks its language, is reached.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Access {
    pub(crate) base_url: Option<Setting<String>>,
    /// The name of the variable that holds the key.
    pub(crate) api_key_env: Option<Setting<String>>,
    /// Values may hold `${VARIABLE}`.
    pub(crate) headers: BTreeMap<String, Setting<String>>,
}

/// An environment variable, if it holds anything.
pub(crate) fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

impl Settings {
    /// Everything that is said, in its order.
    ///
    /// # Errors
    /// A file that can't be read or understood, with the place in it.
    pub(crate) fn load(
        run: &args::Run,
        config: Option<&Path>,
        var: impl Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        Self::from_flags(run).and_beyond(config, var)
    }

    /// These, and for all else what the environment and the files say.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub(crate) fn and_beyond(
        self,
        config: Option<&Path>,
        var: impl Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let mut all = self.or(Self::from_env(var));
        match config {
            Some(path) => {
                let Some(said) = read(path)? else { bail!("{}: there is no such file", path.display()) };
                all = all.or(said);
            }
            None => {
                for path in default_files() {
                    all = all.or(read(&path)?.unwrap_or_default());
                }
            }
        }
        Ok(all)
    }

    fn from_flags(run: &args::Run) -> Self {
        Self {
            model: run.model.clone().map(|name| Setting::new(name, "--model")),
            workspace: run.workspace.clone().map(|path| Setting::new(path, "--workspace")),
            max_turns: run.max_turns,
            fleet: run.fleet,
            permissions: Rules::new(),
            files: run.no_files.then(|| Setting::new(false, "--no-files")),
            shell: run.shell.then(|| Setting::new(true, "--shell")),
            agent_generate: None,
            budget: budget(run.budget_tokens, run.budget_cost),
            prices: None,
            mcp: BTreeMap::new(),
            agent_servers: None,
            providers: BTreeMap::new(),
        }
    }

    fn from_env(var: impl Fn(&str) -> Option<String>) -> Self {
        let said = |name: &str| var(name).map(|value| Setting::new(value, name));
        Self {
            model: said("MAINSTEM_MODEL"),
            workspace: said("MAINSTEM_WORKSPACE").map(|said| Setting::new(said.value.into(), said.origin)),
            providers: VENDORS
                .iter()
                .map(|vendor| (vendor.name, Access { base_url: said(vendor.base_url), ..Access::default() }))
                .collect(),
            ..Self::default()
        }
    }

    /// These; and where they say nothing, the others.
    fn or(self, others: Self) -> Self {
        let mut providers = others.providers;
        for (vendor, access) in self.providers {
            let other = providers.remove(vendor).unwrap_or_default();
            providers.insert(vendor, access.or(other));
        }
        let mut mcp = others.mcp;
        mcp.extend(self.mcp);
        Self {
            model: self.model.or(others.model),
            workspace: self.workspace.or(others.workspace),
            max_turns: self.max_turns.or(others.max_turns),
            fleet: self.fleet.or(others.fleet),
            permissions: others.permissions.narrowed_by(&self.permissions),
            files: self.files.or(others.files),
            shell: self.shell.or(others.shell),
            agent_generate: self.agent_generate.or(others.agent_generate),
            budget: first(self.budget, others.budget),
            prices: self.prices.or(others.prices),
            mcp,
            agent_servers: self.agent_servers.or(others.agent_servers),
            providers,
        }
    }

    /// How a vendor is reached.
    pub(crate) fn access(&self, vendor: &str) -> Access {
        self.providers.get(vendor).cloned().unwrap_or_default()
    }
}

impl Access {
    /// This; and where it says nothing, the other.
    fn or(self, other: Self) -> Self {
        let mut headers = other.headers;
        headers.extend(self.headers);
        Self {
            base_url: self.base_url.or(other.base_url),
            api_key_env: self.api_key_env.or(other.api_key_env),
            headers,
        }
    }
}

impl<T> Setting<T> {
    pub(crate) fn new(value: T, origin: impl Into<String>) -> Self {
        Self { value, origin: origin.into() }
    }
}

fn budget(tokens: Option<u64>, cost: Option<Cost>) -> Limits {
    let mut limits = Limits::default();
    (limits.tokens, limits.cost) = (tokens, cost);
    limits
}

/// Each limit of the one, or else of the other.
fn first(one: Limits, other: Limits) -> Limits {
    let mut limits = budget(one.tokens.or(other.tokens), one.cost.or(other.cost));
    (limits.spawns, limits.time_seconds) =
        (one.spawns.or(other.spawns), one.time_seconds.or(other.time_seconds));
    limits
}

fn read(path: &Path) -> anyhow::Result<Option<Settings>> {
    match std::fs::read_to_string(path) {
        Ok(text) => file::parse(&text, path).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

/// The project's file and the user's, which need not exist.
fn default_files() -> impl Iterator<Item = PathBuf> {
    let user = etcetera::choose_base_strategy().ok();
    let user = user.map(|dirs| dirs.config_dir().join("mainstem").join("config.toml"));
    [PathBuf::from(PROJECT)].into_iter().chain(user)
}

#[cfg(test)]
mod tests;
