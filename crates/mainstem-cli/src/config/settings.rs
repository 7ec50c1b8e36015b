//! The settings: each is declared here, once, with its flag, its key in a file, and its policies.
//!
//! A flag goes before the environment, that before `./mainstem.toml`, and that before the user's
//! file. `project` is what a project's file can do to the user's; `trust` what of it needs trust.

use std::{
    collections::BTreeMap,
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    time::Duration,
};

use anyhow::anyhow;
use clap::ArgAction::SetTrue;
use mainstem::{
    api::RunOptions,
    guard::Network,
    mcp::Server,
    model::{ModelOptions, OnCut, PromptCache},
    policy::{self, ContextWindows, Cost, Prices},
    provider::PROVIDERS,
    react::RepetitionLimits,
    remote::Host,
    spec::{Effort, ServerTool},
    subagent::trust::server_does,
};

use super::{
    Setting, ShellLimits,
    guarded::{ByKey, ForEach, NotNeeded, ToLeaveTheFolder, ToSet, ToTurnOn, TrustPolicy},
    input_roles::{self, InputRole},
    listed::Listed,
    permissions::Permissions,
    project::{chooses, lowers, narrows, turns_off},
    providers::{Access, Providers, access_does, base_urls},
    remote_hosts, servers,
    setting::{CompactAt, value},
    switch::Switch,
    table::{Table, Var, table},
    text::time,
};

table! {
    /// What flags, the environment or a file set; or all of them together.
    pub(crate) struct Settings {
        /// The model that agents use by default.
        #[arg(short, long, value_name = "NAME", help = model_help())]
        model: Option<Setting<String>> { env: variable("MAINSTEM_MODEL"), project: chooses, trust: NotNeeded }

        /// How hard models think; an agent's file can have its own.
        #[arg(long, value_name = "LEVEL")]
        effort: Option<Setting<Effort>> { project: chooses, trust: NotNeeded }

        /// The most tokens that a model thinks with in one answer, for models that take a number;
        /// an agent's file can have its own.
        #[arg(long, value_name = "N")]
        thinking_budget: Option<Setting<u32>> { project: chooses, trust: NotNeeded }

        /// The most tokens of one answer, with the model's thinking; an agent's file can have its
        /// own.
        #[arg(long, value_name = "N", help_heading = "Limits")]
        max_output_tokens: Option<Setting<NonZeroU32>> { project: chooses, trust: NotNeeded }

        /// Tools of its vendor that a model has: `web_search`, `code_execution`; an agent's file
        /// can have its own.
        #[arg(skip)]
        server_tools: Vec<ServerTool> {
            project: chooses,
            trust: ToSet("lets models search the web or run code at the vendor", server_tools_do),
        }

        /// What happens when an answer is cut: its call is repeated (the default), the answer is
        /// read on where the vendor stores it, which `resume` requests, or the run fails.
        #[arg(long, value_name = "WAY")]
        on_cut: Option<Setting<OnCut>> {
            project: turns_off,
            trust: ToTurnOn("\"resume\"", "has vendors store the answers of models"),
        }

        /// How long Anthropic caches the prompt of a conversation after its last use: `5m` (the
        /// default), `1h`, for which writing costs more, or `off`.
        #[arg(long, value_name = "TIME")]
        prompt_cache: Option<Setting<PromptCache>> { project: chooses, trust: NotNeeded }

        /// The directory that agents work in, and whose subagents/*.md declare them; by default the
        /// current one [env: MAINSTEM_WORKSPACE].
        #[arg(short, long, value_name = "DIR")]
        workspace: Option<Setting<PathBuf>> {
            env: variable("MAINSTEM_WORKSPACE"),
            project: chooses,
            trust: ToLeaveTheFolder,
        }

        /// Stop the agent after N model calls, with the answer that it has by then.
        #[arg(long, value_name = "N", help_heading = "Limits")]
        max_turns: Option<Setting<NonZeroU32>> { project: lowers, trust: NotNeeded }

        /// Compact a conversation whose prompt exceeds this percentage of its model's context
        /// window, from 10 to 100; 0 for never [default: 80].
        #[arg(long, value_name = "PERCENT", help_heading = "Limits")]
        compact_at: Option<Setting<CompactAt>> { project: chooses, trust: NotNeeded }

        /// The model that summarizes conversations that are compacted; by default the agent's own.
        #[arg(long, value_name = "NAME", help_heading = "Limits")]
        compaction_model: Option<Setting<String>> { project: chooses, trust: NotNeeded }

        /// Context windows by model: the longest prompt, in tokens.
        #[arg(skip)]
        context_windows: Option<Setting<ContextWindows>> { project: chooses, trust: NotNeeded }

        /// Limits of the fleet.
        #[command(flatten)]
        limits: FleetLimits { project: narrows, trust: ByKey }

        /// When an agent that repeats its tool calls, with the same results, is told and is ended.
        #[arg(skip)]
        repetition: Repetition { project: narrows, trust: ByKey }

        /// Rules that allow, ask about and deny calls of tools; those of all files apply.
        #[arg(skip)]
        permissions: Permissions { project: narrows, trust: NotNeeded }

        /// Give agents no tools for files; by default they read and write files in the workspace,
        /// and only there.
        #[arg(long = "no-files", action = SetTrue)]
        files: Switch { project: turns_off, trust: NotNeeded }

        /// Let agents run commands, each in the directory that it works in.
        ///
        /// On Linux with Landlock a command writes only there and in /tmp; `mainstem doctor` shows
        /// what confines commands on this machine. All processes of a command end with it.
        #[arg(long, action = SetTrue)]
        shell: Switch { project: turns_off, trust: ToTurnOn("true", "lets agents run commands") }

        /// The network of commands; `on` by default.
        #[arg(long, value_name = "SWITCH")]
        shell_network: Option<Setting<Network>> {
            project: turns_off,
            trust: ToTurnOn("\"on\"", "lets agents' commands use the network"),
        }

        /// Limits of each command with all its processes: `memory`, `cpu`, `file_size`,
        /// `processes`.
        #[command(flatten)]
        shell_limits: ShellLimits {
            project: narrows,
            trust: ToSet("sets the limits of agents' commands", ShellLimits::does),
        }

        /// Let the agent draft others, as files of subagents/.
        #[arg(long, action = SetTrue)]
        agent_generate: Switch {
            project: turns_off,
            trust: ToTurnOn("true", "lets the agent write files of new agents"),
        }

        /// What a run may spend.
        #[arg(skip)]
        budget: Budget { project: narrows, trust: ByKey }

        /// Prices by model, in millionths of a dollar for a million tokens.
        #[arg(skip)]
        prices: Option<Setting<Prices>> { project: chooses, trust: ToSet(PRICES, |_| PRICES.to_owned()) }

        /// MCP servers by name.
        #[arg(skip)]
        #[serde(deserialize_with = "servers::read")]
        mcp: BTreeMap<String, Setting<Server>> {
            project: chooses,
            trust: ForEach("starts an MCP server, or sends tool calls to it", |name, _, raw| {
                server_does(name, raw)
            }),
        }

        /// Let agents' files declare MCP servers.
        #[arg(skip)]
        agent_servers: Switch {
            project: turns_off,
            trust: ToTurnOn("true", "lets agents' files declare MCP servers"),
        }

        /// Allow remote agents, and MCP servers of agents' files, at a host whose address is not
        /// public: a name, an address, a network such as `10.0.0.0/8`, or `*`. An agent's file
        /// names its address with `url`.
        #[arg(long = "remote-host", value_name = "HOST")]
        #[serde(deserialize_with = "remote_hosts::read")]
        remote_hosts: Vec<Host> {
            project: chooses,
            trust: ToSet("lets agents and their MCP servers be at these hosts", remote_hosts::does),
        }

        /// How each provider's models are reached: `base_url`, `api_key_env` (the name of a
        /// variable) and `headers`. Limits of its calls, besides those that it reports:
        /// `requests_per_minute`, `tokens_per_minute`, and `calls` at the same time. A call whose
        /// answer has no byte for `idle_timeout` fails and is repeated; `"5m"` by default.
        #[arg(skip)]
        providers: Providers {
            env: base_urls,
            project: chooses,
            trust: ForEach("sends prompts and the key elsewhere", access_does),
        }

        /// What callers of `mainstem serve` can do.
        #[arg(skip)]
        serve: Serve { project: narrows, trust: ByKey }
    }
}

table! {
    /// Limits of the fleet; the harness has defaults for those that are unset.
    pub(crate) struct FleetLimits {
        /// The greatest depth of agents; the one that runs is at 0, its children at 1 [default: 3].
        #[arg(long = "max-agent-depth", value_name = "N", help_heading = "Limits")]
        max_depth: Option<Setting<u16>> { project: lowers, trust: NotNeeded }

        /// The most children that run at a time; more wait for their turn [default: 16].
        #[arg(long, value_name = "N", help_heading = "Limits")]
        max_children: Option<Setting<NonZeroUsize>> { project: lowers, trust: NotNeeded }

        /// The most background tasks at a time; more are refused [default: 16].
        #[arg(long, value_name = "N", help_heading = "Limits")]
        max_tasks: Option<Setting<usize>> { project: lowers, trust: NotNeeded }

        /// How long an agent waits for a child by default, which then continues in the background
        /// [default: 30s].
        #[arg(long = "child-wait", value_name = "TIME", help_heading = "Limits")]
        #[serde(deserialize_with = "time")]
        wait: Option<Setting<Duration>> { project: lowers, trust: NotNeeded }

        /// End a child that emits no event for this long [default: 10m].
        #[arg(long = "idle-timeout", value_name = "TIME", help_heading = "Limits")]
        #[serde(deserialize_with = "time")]
        idle: Option<Setting<Duration>> { project: lowers, trust: NotNeeded }
    }
}

table! {
    /// How often an agent may repeat itself.
    pub(crate) struct Repetition {
        /// After how many equal rounds of tool calls in a row an agent is told; 0 for never
        /// [default: 3].
        #[arg(skip)]
        told: Option<Setting<u32>> { project: chooses, trust: NotNeeded }

        /// After how many equal rounds of tool calls in a row an agent ends, with `no_progress`; 0
        /// for never [default: 10].
        #[arg(skip)]
        ended: Option<Setting<u32>> { project: chooses, trust: NotNeeded }

        /// The most rounds of a circle that is detected; 0 turns both off [default: 4].
        #[arg(skip)]
        longest: Option<Setting<usize>> { project: chooses, trust: NotNeeded }
    }
}

table! {
    /// What a run may spend.
    pub(crate) struct Budget {
        /// Refuse model calls above N tokens, in and out, of all agents together. A call's tokens
        /// are estimated before it.
        #[arg(long = "budget-tokens", value_name = "N", help_heading = "Limits")]
        tokens: Option<Setting<u64>> { project: lowers, trust: NotNeeded }

        /// Refuse model calls above this cost in US dollars, such as `0.50`, of all agents
        /// together; a file has it in millionths. Refuses models without a price, which `[prices]`
        /// in mainstem.toml can set.
        #[arg(long = "budget-cost", value_name = "DOLLARS", help_heading = "Limits")]
        cost: Option<Setting<Cost>> { project: lowers, trust: NotNeeded }

        /// The most agents that a run starts.
        #[arg(skip)]
        spawns: Option<Setting<u64>> { project: lowers, trust: NotNeeded }

        /// The seconds after which a run times out.
        #[arg(skip)]
        time_seconds: Option<Setting<u64>> { project: lowers, trust: NotNeeded }
    }
}

table! {
    /// What callers of `mainstem serve` can do.
    pub(crate) struct Serve {
        /// Roles besides `user` that inputs over HTTP can have: `system`, `assistant`.
        #[arg(skip)]
        #[serde(deserialize_with = "input_roles::read")]
        input_roles: Vec<InputRole> {
            project: chooses,
            trust: ToSet("lets HTTP callers send inputs of these roles", input_roles::does),
        }
    }
}

/// What `[prices]` does.
const PRICES: &str = "sets the prices on which budgets in money depend";

/// Reads a setting from a variable.
fn variable<T: From<String>>(name: &'static str) -> impl Fn(Var<'_>) -> Option<Setting<T>> {
    move |var| var(name).map(|value| Setting::new(value.into(), name))
}

fn model_help() -> String {
    let examples: Vec<_> =
        PROVIDERS.iter().take(3).map(|provider| format!("`{}`", provider.example())).collect();
    let examples = examples.join(", ");
    format!("The model: {examples} …, or `demo`, which plays a script and needs no key [env: MAINSTEM_MODEL]")
}

#[expect(clippy::ptr_arg, reason = "a policy takes the field's type")]
fn server_tools_do(tools: &Vec<ServerTool>) -> String {
    mainstem::subagent::trust::server_tools_do(tools)
}

impl Settings {
    /// Returns what is set, in the order of the keys.
    pub(crate) fn listed(&self) -> Vec<Listed> {
        let mut all = Vec::new();
        Table::list(self, "", &mut all);
        all
    }

    /// Returns how a provider is reached.
    pub(crate) fn access(&self, provider: &str) -> Access {
        self.providers.get(provider).cloned().unwrap_or_default()
    }

    /// Returns the options of model calls.
    ///
    /// # Errors
    /// A budget leaves no room for an answer; the error has its origin.
    pub(crate) fn model_options(&self) -> anyhow::Result<ModelOptions> {
        let mut options = ModelOptions::new();
        options.effort = value(&self.effort).map(|effort| effort.to_string());
        options.thinking_budget = value(&self.thinking_budget);
        let server_tools: Vec<_> = self.server_tools.iter().map(ToString::to_string).collect();
        options.server_tools = Some(server_tools).filter(|tools| !tools.is_empty());
        (options.on_cut, options.prompt_cache) = (value(&self.on_cut), value(&self.prompt_cache));
        options.max_output_tokens = value(&self.max_output_tokens).map(NonZeroU32::get);
        let origin = self.thinking_budget.as_ref().map_or("", |budget| &*budget.origin);
        options.check_thinking_budget().map_err(|why| anyhow!("{origin}: {why}"))?;
        Ok(options)
    }

    /// Returns the options of a run with these limits, which a server takes, too.
    pub(crate) fn run_options(&self, budget: &Budget) -> RunOptions {
        RunOptions {
            budget: budget.of_run(),
            max_depth: value(&self.limits.max_depth),
            max_children: value(&self.limits.max_children).map(NonZeroUsize::get),
            ..RunOptions::default()
        }
    }
}

impl Repetition {
    /// Returns the limits, with the defaults of those that are unset.
    pub(crate) fn limits(&self) -> RepetitionLimits {
        let mut limits = RepetitionLimits::new();
        limits.told = value(&self.told).unwrap_or(limits.told);
        limits.ended = value(&self.ended).unwrap_or(limits.ended);
        limits.longest = value(&self.longest).unwrap_or(limits.longest);
        limits
    }
}

impl Budget {
    /// Returns the budget of a run.
    pub(crate) fn of_run(&self) -> policy::Budget {
        let Self { tokens, cost, spawns, time_seconds } = self;
        let mut budget = policy::Budget::default();
        (budget.tokens, budget.cost) = (value(tokens), value(cost));
        (budget.spawns, budget.time_seconds) = (value(spawns), value(time_seconds));
        budget
    }
}
