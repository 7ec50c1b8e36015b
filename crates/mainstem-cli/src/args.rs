//! The command line.

mod agents;
mod sessions;
mod talk;
mod trust;
mod workspace;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, builder::NonEmptyStringValueParser};

pub(crate) use self::agents::{Agents, AgentsCommand, Form, Keys, List, Listing, New, Show, Validate};
pub(crate) use self::{
    sessions::{Replay, Sessions, SessionsCommand},
    talk::{At, Attach, Chat, SettingsServer, Tasks, TasksCommand},
    trust::{Source, Trust, TrustCommand},
    workspace::WorkspaceFlag,
};
use crate::{
    config::{Budget, Settings, keys::listed, text::duration},
    exit, model,
};

/// Runs a fleet of agents and shows what each of them does, live.
#[derive(Debug, Parser)]
#[command(name = "mainstem", version, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) config: Source,
    /// Whether to use colours; NO_COLOR and CLICOLOR_FORCE are obeyed, too.
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) color: Color,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give a prompt to an agent and its fleet; the reply goes to stdout, progress to stderr.
    #[command(after_help = after_help())]
    Run(Box<Run>),
    /// List, show, make and check the agents that files of the workspace declare.
    Agents(Agents),
    /// Say what is configured, whether it works, and how to mend what does not.
    Doctor(Doctor),
    /// List the vendors whose models can be asked, and what sets each of them up.
    Models(Models),
    /// List the tools that an agent has, those of MCP servers included: these are started for it.
    Tools(Tools),
    /// Talk with an agent, turn by turn; the session is kept.
    #[command(after_help = CHAT)]
    Chat(Box<Chat>),
    /// Follow a session that is at work elsewhere: on a server, or in another process of this machine.
    Attach(Attach),
    /// List, show, follow and stop background tasks.
    Tasks(Tasks),
    /// Serve an agent over HTTP: runs, and what all agents do, as server-sent events.
    #[command(after_help = SERVE)]
    Serve(Serve),
    /// List, export and delete the sessions that `mainstem run --session` keeps.
    Sessions(Sessions),
    /// Show what is recorded as if it happened now; replies go to stdout.
    Replay(Replay),
    /// List, add and remove folders whose files you trust.
    Trust(Trust),
    /// Write the completions of a shell to stdout.
    #[command(
        after_help = "For bash: mainstem completions bash > ~/.local/share/bash-completion/completions/mainstem"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Say which version this is.
    Version,
}

/// `mainstem run`
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// What to do; `-` reads it from stdin.
    pub(crate) prompt: Option<String>,

    /// Run this agent of the workspace, or of the server; without it, the one called `main` if there is one, or the server's.
    #[arg(short, long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Read the agents that the workspace has for Claude Code, OpenCode and Copilot, too.
    #[arg(long, conflicts_with = "server")]
    pub(crate) foreign: bool,
    /// Go on with this session, or begin it: what is said in it is kept, and known in the next run of it.
    ///
    /// Sessions are kept in `mainstem/journal.db` of the user's data directory (`XDG_DATA_HOME`), or in --journal.
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Keep the session in this file.
    #[arg(long, value_name = "FILE", requires = "session")]
    pub(crate) journal: Option<PathBuf>,
    /// Instead of a PROMPT: take up the session's last turn, which was cut off, failed or was stopped. What agents have found out until then is known.
    #[arg(long, requires = "session", conflicts_with = "prompt")]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) at: SettingsServer,

    /// What stdout gets.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, help_heading = "Output")]
    pub(crate) output: Format,
    /// The reply is JSON of the JSON Schema in FILE; one that does not fit is asked for again once, then the run fails.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output_schema: Option<PathBuf>,
    /// How stderr shows what goes on.
    #[arg(long, value_name = "MODE", value_enum, default_value_t, help_heading = "Output")]
    pub(crate) progress: Mode,
    /// Write every event of the run to FILE while it runs, a line of JSON each; filters don't apply.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) record: Option<PathBuf>,
    /// Say in the end, on stderr, what each agent sent, what of it was read, and how long its first token took; with `--output json` as a key.
    #[arg(long, help_heading = "Output")]
    pub(crate) diagnostics: bool,

    /// Show only events of this agent, of all its instances; `main` is the one that runs.
    #[arg(long, value_name = "ID", help_heading = "Filters of the events and the progress shown")]
    pub(crate) only_agent: Option<String>,
    /// Show only agents down to this depth; 0 is the one that runs.
    #[arg(
        id = "shown_depth",
        long = "max-depth",
        value_name = "N",
        help_heading = "Filters of the events and the progress shown"
    )]
    pub(crate) shown_depth: Option<u16>,
    /// Show only the agent at this path and those below it, such as `main/tester`.
    #[arg(long, value_name = "PATH", help_heading = "Filters of the events and the progress shown")]
    pub(crate) under: Option<String>,
    /// Show one status line for what the running agent says in a turn that delegates.
    #[arg(long, help_heading = "Filters of the events and the progress shown")]
    pub(crate) gate_root_text: bool,

    #[command(flatten)]
    pub(crate) budget: Budget,
    /// Cancel the run after this time: `90s`, `5m`, `1h 30m`.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Limits")]
    pub(crate) timeout: Option<Duration>,
    /// After a cancel, wait this long for agents to end by themselves.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s", help_heading = "Limits")]
    pub(crate) grace: Duration,
    /// Only look: nothing that changes things runs, until you have accepted the agent's plan.
    #[arg(long, help_heading = "Limits")]
    pub(crate) plan: bool,
    /// Leave plan mode, if the session was left in it.
    #[arg(long, conflicts_with = "plan", help_heading = "Limits")]
    pub(crate) no_plan: bool,
    /// What becomes of background tasks when the agent has its answer.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t, help_heading = "Limits")]
    pub(crate) background: Background,
    /// Exit with 6 if any child failed, even if there is a reply.
    #[arg(long, help_heading = "Limits")]
    pub(crate) strict_children: bool,

    /// How fast the demo goes: 1 is as people read, 0 is without any pause. For tests.
    #[arg(long, value_name = "FACTOR", value_parser = pace, default_value_t = 1.0, hide = true, action = ArgAction::Set)]
    pub(crate) demo_pace: f64,
}

/// `mainstem doctor`
#[derive(Debug, Args)]
#[command(after_help = doctor_help())]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Ask the model, too: whether it is reached, streams, and calls tools. Two short requests, which cost what they cost.
    #[arg(long)]
    pub(crate) online: bool,
}

/// `mainstem models`
#[derive(Debug, Args)]
pub(crate) struct Models {
    /// The form of the list.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output: Form,
}

/// `mainstem serve`
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen; beyond the loopback only with tokens of one's own.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7878")]
    pub(crate) bind: SocketAddr,
    /// The agent that runs; by default the one that `mainstem run` would run.
    #[arg(short, long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// A further agent that callers may choose to run; several times for several. What the agent that runs by default must not do, these may.
    #[arg(long, value_name = "ID")]
    pub(crate) allow_agent: Vec<String>,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// The tokens that are taken, one a line, with a tenant's name before it if it is a tenant's; without it one is made and shown.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Keep sessions in this file, so that they go on when the server is started again.
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// A further name under which it may be asked, besides those of the loopback; several times for several.
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    /// Close sessions that nobody has asked for in so long, to save memory; whoever asks opens them again from the --journal, as after a restart.
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "journal")]
    pub(crate) close_idle: Option<Duration>,
    /// How long runs may go on when it is stopped; then they are cancelled.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    pub(crate) grace: Duration,
    /// How stderr shows each request, and what is wrong. MAINSTEM_LOG says what is shown: `warn`, `debug`, `mainstem_server=info` …
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) log: Log,

    /// How fast the demo goes. For tests.
    #[arg(long, value_name = "FACTOR", value_parser = pace, default_value_t = 1.0, hide = true, action = ArgAction::Set)]
    pub(crate) demo_pace: f64,
}

/// `mainstem tools`
#[derive(Debug, Args)]
pub(crate) struct Tools {
    /// The agent; by default the one that `mainstem run` would run.
    #[arg(short, long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// The form of the list; json has the schemas, too.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output: Form,
}

/// What stdout gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The final reply.
    #[default]
    Text,
    /// One object: how the run ended, the reply, the cost, every agent.
    Json,
    /// Every event as it happens, one JSON object a line.
    Ndjson,
    /// The same as server-sent events.
    Sse,
}

/// How stderr shows what goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Live on a terminal, plain elsewhere.
    #[default]
    Auto,
    /// A tree that is redrawn in place.
    Live,
    /// Lines, those of one agent together.
    Plain,
    /// Only warnings and errors.
    Quiet,
}

/// How requests are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Log {
    /// Lines for people.
    #[default]
    Text,
    /// An object a line.
    Json,
    /// Nothing.
    Off,
}

/// What becomes of background tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Background {
    /// Wait for them; the agent reads their results and answers again.
    #[default]
    Wait,
    /// Leave them to the server, which only --server has.
    Detach,
    /// Stop them.
    Cancel,
}

/// Whether to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal that has them.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

fn pace(text: &str) -> Result<f64, String> {
    let pace = text.parse().ok().filter(|pace: &f64| (0.0..=100.0).contains(pace));
    pace.ok_or_else(|| "a number from 0 to 100 is wanted".to_owned())
}

impl Run {
    /// Returns what the flags set.
    pub(crate) fn settings(&self) -> Settings {
        Settings { budget: self.budget.clone(), ..self.settings.clone() }
    }
}

fn doctor_help() -> String {
    format!(
        "Keys of ./mainstem.toml and the user's mainstem/config.toml, with their flags and variables:\n{}",
        listed()
    )
}

fn after_help() -> String {
    let examples = EXAMPLES.replace("{variables}", &model::variables());
    format!("{examples}\nExit status:\n{}", exit::table())
}

const CHAT: &str = "\
Each line is a turn; the reply goes to stdout. Ctrl-C stops the turn that is at work, and ends the chat if none is; so do /quit and
the end of stdin. /resume takes up a turn that has no answer, /agents lists the children, /help says so again.
";

const SERVE: &str = "\
Examples:
  mainstem serve -m demo
  curl -N -H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json' -H 'Accept: text/event-stream' \\
       -d '{\"input\": \"Compare Paris and Rome\"}' http://127.0.0.1:7878/v1/sessions/one/runs
  curl -N -H \"Authorization: Bearer $TOKEN\" -H 'Last-Event-ID: 17' http://127.0.0.1:7878/v1/sessions/one/events
\nThe token of each request says whose sessions it sees: `acme SECRET` in --token-file opens those of tenant acme alone.
";

const EXAMPLES: &str = "\
Examples:
  mainstem run                                     the demo, unless a model is configured
  mainstem run -m openai:gpt-4o-mini \"Compare Paris and Rome\"
  git diff | mainstem run -w docs/examples/review -
  mainstem run --output json \"…\" | jq -r .reply
  mainstem run --output ndjson --only-agent reviewer \"…\"

Files:
  Agents can read, change and make every file in the workspace, and none outside it. A child
  works in a directory of its own below agents/, unless its file says workspace.mode: shared; its
  tools: list says what it can do, such as read_file alone. In ./mainstem.toml:
    files = false
    shell = true                # as --shell does
    shell_network = \"off\"       # as --shell-network does
    shell_limits = { memory = \"2GiB\", cpu = \"10m\", file_size = \"1GiB\", processes = 64 }
    agent_generate = true       # the agent can draft others, as files of subagents/

Tools of MCP servers, which are started when an agent that has them first works:
    [mcp.everything]
    command = \"npx\"
    args = [\"-y\", \"@modelcontextprotocol/server-everything\"]
    [mcp.docs]
    url = \"https://docs.example/mcp\"
    headers = { Authorization = \"Bearer ${DOCS_TOKEN}\" }
  `mainstem tools` lists them. An agent's file chooses with mcp_servers: [docs], or with tools:.
  Such servers, a shell and other addresses of models count once you have trusted the folder: see
  `mainstem trust --help`.

Models:
  Set {variables}.
  `mainstem models` lists these, and those of other servers, such as OPENAI_BASE_URL for vLLM or
  llama.cpp; `mainstem doctor` says what is set up. A flag goes before the environment, that before
  ./mainstem.toml, and that before the user's mainstem/config.toml:
    model = \"openai:qwen3\"
    [permissions]
    ask = [\"shell\", \"write_file(path: src/**)\"]
    [budget]
    tokens = 200_000
    [prices]
    \"openai:qwen3\" = { input = 0, output = 0 }    # millionths of a dollar for a million tokens
    [providers.openai]
    base_url = \"http://localhost:11434/v1\"
    api_key_env = \"MY_KEY\"      # the name of a variable, never a key
";

#[cfg(test)]
mod tests;
