//! What is configured: flag before environment, before `./mainstem.toml`, before the user's
//! `mainstem/config.toml`.

mod file;
mod parts;
pub(crate) mod read;
mod sandbox;

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    path::{Path, PathBuf},
};

use anyhow::bail;
use etcetera::BaseStrategy;
use mainstem::{
    guard::Network,
    mcp::Server,
    message::Role,
    policy::{Budget, Cost, Part, Prices, Rules},
    vendor::VENDORS,
};

pub(crate) use self::sandbox::ShellLimits;
use crate::{
    args::{self, FleetLimits},
    trust::Trust,
};

/// The name of a project's file.
pub(crate) const NAME: &str = "mainstem.toml";

/// The largest configuration file in bytes.
const MAX_BYTES: u64 = 1 << 20;

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
    /// The rules of all files apply: a file can't allow what another refuses.
    pub(crate) permissions: Rules,
    /// The rules of the project's file, which can't lift a protection.
    pub(crate) project_permissions: Rules,
    /// Whether agents get tools for files.
    pub(crate) files: Option<Setting<bool>>,
    /// Whether they get a shell.
    pub(crate) shell: Option<Setting<bool>>,
    /// Whether commands have a network.
    pub(crate) shell_network: Option<Setting<Network>>,
    /// What each command may use up.
    pub(crate) shell_limits: ShellLimits,
    /// Whether the agent that runs can write new ones.
    pub(crate) agent_generate: Option<Setting<bool>>,
    /// What the run may spend.
    pub(crate) budget: Budget,
    /// What models cost, besides what is known.
    pub(crate) prices: Option<Prices>,
    /// MCP servers, by name.
    pub(crate) mcp: BTreeMap<String, Setting<Server>>,
    /// Whether agents' files may declare some, too.
    pub(crate) agent_servers: Option<Setting<bool>>,
    /// By vendor.
    pub(crate) providers: BTreeMap<&'static str, Access>,
    /// The roles that inputs over HTTP may have, besides that of a user.
    pub(crate) input_roles: Vec<Role>,
    /// Files of the user that agents don't write, wherever they are.
    pub(crate) protected: Vec<PathBuf>,
    /// The trusted parts of agents' files.
    pub(crate) trust: Trust,
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

/// The parsed files of a configuration, before any of their settings is in effect.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// That of the folder where the command runs.
    project: Declared,
    /// The user's, or the one that was named: all of it is trusted.
    own: Settings,
}

/// A parsed file: settings that apply at once, and parts that need trust, each with its settings.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    plain: Settings,
    parts: Vec<(Part, Settings)>,
}

impl Files {
    /// Reads the named file; or the project's and the user's, which need not exist.
    ///
    /// # Errors
    /// A file that can't be read or understood, with the place in it.
    pub(crate) fn read(named: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(path) = named {
            let Some(said) = declared(path)? else { bail!("{}: there is no such file", path.display()) };
            let mut own = said.all();
            own.protected.push(path.to_owned());
            return Ok(Self { own, ..Self::default() });
        }
        let user = etcetera::choose_base_strategy().ok();
        let user = user.map(|dirs| dirs.config_dir().join("mainstem").join("config.toml"));
        let user = user.map(|path| declared(&path)).transpose()?.flatten();
        Ok(Self { own: user.map(Declared::all).unwrap_or_default(), ..Self::of_folder(Path::new("."))? })
    }

    /// Reads the file of a folder, and no other.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn of_folder(folder: &Path) -> anyhow::Result<Self> {
        let path = if folder == Path::new(".") { PathBuf::from(PROJECT) } else { folder.join(NAME) };
        Ok(Self { project: declared(&path)?.unwrap_or_default(), ..Self::default() })
    }

    /// The parts of the project's file that need trust.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.project.parts.iter().map(|(part, _)| part)
    }

    /// The flags; beyond them the environment, the trusted parts of the project's file, and the
    /// user's.
    pub(crate) fn beyond(
        &self,
        flags: Settings,
        var: impl Fn(&str) -> Option<String>,
        is_trusted: impl Fn(&Part) -> bool,
    ) -> Settings {
        let project = self.project.trusted(is_trusted).narrowing(&self.own);
        flags.or(Settings::from_env(var)).or(project).or(self.own.clone())
    }
}

impl Declared {
    fn trusted(&self, is_trusted: impl Fn(&Part) -> bool) -> Settings {
        let trusted = self.parts.iter().filter(|(part, _)| is_trusted(part));
        trusted.fold(self.plain.clone(), |all, (_, settings)| all.or(settings.clone()))
    }

    fn all(self) -> Settings {
        self.trusted(|_| true)
    }
}

impl Settings {
    pub(crate) fn from_flags(run: &args::Run) -> Self {
        Self {
            model: run.model.clone().map(|name| Setting::new(name, "--model")),
            workspace: run.workspace.clone().map(|path| Setting::new(path, "--workspace")),
            max_turns: run.max_turns,
            fleet: run.fleet,
            files: run.no_files.then(|| Setting::new(false, "--no-files")),
            shell: run.shell.then(|| Setting::new(true, "--shell")),
            budget: budget(run.budget_tokens, run.budget_cost),
            ..Self::of_sandbox(&run.sandbox)
        }
    }

    /// What flags say about commands.
    pub(crate) fn of_sandbox(said: &args::Sandbox) -> Self {
        Self {
            shell_network: said.shell_network.map(|switch| Setting::new(switch.into(), "--shell-network")),
            shell_limits: said.shell_limit.iter().cloned().collect(),
            ..Self::default()
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

    /// Fills unset values from `others`.
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
            project_permissions: others.project_permissions.narrowed_by(&self.project_permissions),
            files: self.files.or(others.files),
            shell: self.shell.or(others.shell),
            shell_network: self.shell_network.or(others.shell_network),
            shell_limits: self.shell_limits.or(others.shell_limits),
            agent_generate: self.agent_generate.or(others.agent_generate),
            budget: first(self.budget, others.budget),
            prices: self.prices.or(others.prices),
            mcp,
            agent_servers: self.agent_servers.or(others.agent_servers),
            providers,
            input_roles: if self.input_roles.is_empty() { others.input_roles } else { self.input_roles },
            protected: [self.protected, others.protected].concat(),
            trust: self.trust,
        }
    }

    /// Limits the project's settings to the user's own: the lower limit applies, and what the user
    /// turns off stays off.
    fn narrowing(self, own: &Self) -> Self {
        let within = |said, own: &Option<Setting<bool>>| own.clone().filter(|own| !own.value).or(said);
        let off = own.shell_network.clone().filter(|own| own.value == Network::Off);
        Self {
            max_turns: least(self.max_turns, own.max_turns),
            fleet: self.fleet.within(own.fleet),
            files: within(self.files, &own.files),
            shell: within(self.shell, &own.shell),
            agent_generate: within(self.agent_generate, &own.agent_generate),
            agent_servers: within(self.agent_servers, &own.agent_servers),
            shell_network: off.or(self.shell_network),
            shell_limits: self.shell_limits.within(&own.shell_limits),
            budget: lesser(self.budget, own.budget),
            project_permissions: self.permissions,
            permissions: Rules::new(),
            ..self
        }
    }

    /// How a vendor is reached.
    pub(crate) fn access(&self, vendor: &str) -> Access {
        self.providers.get(vendor).cloned().unwrap_or_default()
    }
}

impl Access {
    /// Fills unset values from the other.
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

fn budget(tokens: Option<u64>, cost: Option<Cost>) -> Budget {
    let mut budget = Budget::default();
    (budget.tokens, budget.cost) = (tokens, cost);
    budget
}

/// Each limit of `one`, or that of `other` if it is unset.
fn first(one: Budget, other: Budget) -> Budget {
    let mut budget = budget(one.tokens.or(other.tokens), one.cost.or(other.cost));
    (budget.spawns, budget.time_seconds) =
        (one.spawns.or(other.spawns), one.time_seconds.or(other.time_seconds));
    budget
}

/// The lower of each limit.
fn lesser(one: Budget, other: Budget) -> Budget {
    let mut budget = budget(least(one.tokens, other.tokens), least(one.cost, other.cost));
    (budget.spawns, budget.time_seconds) =
        (least(one.spawns, other.spawns), least(one.time_seconds, other.time_seconds));
    budget
}

/// The lower of two limits.
fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}

fn declared(path: &Path) -> anyhow::Result<Option<Declared>> {
    read::text(path, MAX_BYTES)?.map(|text| file::parse(&text, path)).transpose()
}

#[cfg(test)]
mod tests;
