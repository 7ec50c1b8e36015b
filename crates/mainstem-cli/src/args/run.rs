//! `mainstem run`

use std::{path::PathBuf, time::Duration};

use clap::{ArgAction, Args, ValueEnum};
use mainstem::message::SessionId;

use mainstem::provider;

use super::{JournalAt, SettingsServer, pace, serve::Lost};
use crate::{
    approval::Approve,
    config::{Budget, Settings, text::duration},
    exit,
};

#[derive(Clone, Debug, Args)]
pub(crate) struct Run {
    /// The task, in any number of words. What is piped to stdin follows it, or is the task itself;
    /// in a loop that reads stdin, add `< /dev/null`.
    pub(crate) prompt: Vec<String>,

    /// Attach FILE to the PROMPT: an image, a PDF, audio or text. Can be given several times.
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub(crate) attach: Vec<PathBuf>,

    /// The agent of the workspace or of the server; by default `main` if there is one, or the
    /// server's.
    #[arg(short, long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Read the workspace's agents for Claude Code, OpenCode, Copilot, Gemini CLI, Cursor, Codex
    /// and goose, too.
    #[arg(long, conflicts_with = "server")]
    pub(crate) foreign: bool,
    /// Continue this session, or begin it; its next run knows what was said in it.
    ///
    /// Sessions are recorded in `mainstem/journal.db` of the user's data directory
    /// (`XDG_DATA_HOME`), or in --journal. A run at a terminal is recorded as a new session if none
    /// is named.
    #[arg(long, value_name = "ID", group = "recorded")]
    pub(crate) session: Option<SessionId>,
    /// Continue the session whose run began last.
    #[arg(short = 'c', long = "continue", conflicts_with = "session", group = "recorded")]
    pub(crate) is_continued: bool,
    /// Record no session, so that the run can't be continued or resumed.
    #[arg(long = "ephemeral", conflicts_with_all = ["recorded", "server"])]
    pub(crate) is_ephemeral: bool,
    /// Record the session in this file, or PostgreSQL database.
    #[arg(long, value_name = "FILE|URL", requires = "recorded")]
    pub(crate) journal: Option<JournalAt>,
    /// Resume the session's last turn, which was interrupted or failed, without a PROMPT; agents
    /// know what they found before.
    #[arg(long, requires = "recorded", conflicts_with = "prompt")]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) at: SettingsServer,
    /// If a run of the session is active on the server, wait until it has ended.
    #[arg(long, requires = "session", conflicts_with = "resume")]
    pub(crate) queue: bool,

    /// What stdout gets.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, help_heading = "Output")]
    pub(crate) output: Format,
    /// A JSON Schema in FILE that the reply has to match. The model is asked once more for a reply
    /// that does not; then the run fails.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output_schema: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) progress: ProgressFlags,
    /// Show progress as lines that begin with the time of day (UTC).
    #[arg(short, long, conflicts_with_all = ["progress", "quiet"], help_heading = "Output")]
    pub(crate) verbose: bool,
    /// Write each event of the run to FILE as it happens, a line of JSON each, without filters.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) record: Option<PathBuf>,
    /// Report at the end, on stderr, what each agent sent, what of it was read, and how long its
    /// first token took; with `--output json` as a key.
    #[arg(long, help_heading = "Output")]
    pub(crate) diagnostics: bool,

    /// Show only events of this agent, in all its instances; `main` is the one that runs.
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
    /// Leave out the text that the leading agent writes while it delegates; a status line stands
    /// for it. Its reply is shown.
    #[arg(long, help_heading = "Filters of the events and the progress shown")]
    pub(crate) gate_root_text: bool,

    #[command(flatten)]
    pub(crate) budget: Budget,
    /// Cancel the run after this time: `90s`, `5m`, `1h 30m`.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Limits")]
    pub(crate) timeout: Option<Duration>,
    /// How long agents have to end by themselves after a cancel.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s", help_heading = "Limits")]
    pub(crate) grace: Duration,
    /// Plan first: only tools that change nothing run, until you accept the agent's plan.
    #[arg(long, help_heading = "Limits")]
    pub(crate) plan: bool,
    /// How calls of tools that may change something are approved, such as those that write files or
    /// run commands. By default you are asked at a terminal, and elsewhere they run.
    #[arg(long, value_name = "WHO", value_enum, help_heading = "Limits")]
    pub(crate) approve: Option<Approve>,
    /// Leave plan mode, if the session is in it.
    #[arg(long, conflicts_with = "plan", help_heading = "Limits")]
    pub(crate) no_plan: bool,
    /// What happens to background tasks when the agent has answered.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t, help_heading = "Limits")]
    pub(crate) background: Background,
    /// What becomes of the run if its server ends, of several that share a database: another one
    /// resumes its turn, or closes it. By default what the servers' own --on-lost says.
    #[arg(long, value_name = "WHAT", value_enum, help_heading = "Limits")]
    pub(crate) on_lost: Option<Lost>,
    /// Exit with 6 if a child failed, even if there is a reply.
    #[arg(long, help_heading = "Limits")]
    pub(crate) strict_children: bool,

    /// The pace of the demo, for tests: 1 is as people read, 0 has no pause.
    #[arg(long, value_name = "FACTOR", value_parser = pace, default_value_t = 1.0, hide = true, action = ArgAction::Set)]
    pub(crate) demo_pace: f64,
}

impl Run {
    /// Returns what the flags set.
    pub(crate) fn settings(&self) -> Settings {
        Settings { budget: self.budget.clone(), ..self.settings.clone() }
    }
}

/// What stdout gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The final reply.
    #[default]
    Text,
    /// One object: how the run ended, the reply or its part, the cost, every agent.
    Json,
    /// Every event as it happens, one JSON object a line.
    Ndjson,
    /// Every event as a server-sent event.
    Sse,
}

/// How stderr shows progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Live on a terminal, plain elsewhere.
    #[default]
    Auto,
    /// A tree that is redrawn in place.
    Live,
    /// Lines, grouped by agent.
    Plain,
    /// Only warnings and errors.
    Quiet,
}

/// How stderr shows progress.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ProgressFlags {
    /// How stderr shows progress.
    #[arg(long = "progress", id = "progress", value_name = "MODE", value_enum, default_value_t)]
    mode: Mode,
    /// Show only warnings and errors on stderr, as `--progress quiet` does.
    #[arg(short = 'q', long = "quiet", id = "quiet", conflicts_with = "progress")]
    is_quiet: bool,
}

impl ProgressFlags {
    pub(crate) fn mode(self) -> Mode {
        if self.is_quiet { Mode::Quiet } else { self.mode }
    }

    pub(crate) fn is_quiet(self) -> bool {
        self.mode() == Mode::Quiet
    }
}

/// What happens to background tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Background {
    /// Wait for them; the agent reads their results and answers again.
    #[default]
    Wait,
    /// Leave them to the server; requires --server.
    Detach,
    /// Stop them.
    Cancel,
}

/// Returns examples, and the exit status.
pub(super) fn help() -> String {
    let examples = EXAMPLES.replace("{variables}", &provider::variables());
    format!("{examples}\nExit status:\n{}", exit::table())
}

const EXAMPLES: &str = "\
Examples:
  mainstem run                 the demo, unless a model is configured
  mainstem run -m openai:gpt-4o-mini \"Compare Paris and Rome\"
  git diff | mainstem run -w docs/examples/review \"Review this change\"
  mainstem run --output json \"…\" | jq -r .reply
  mainstem run --output ndjson --only-agent reviewer \"…\"

At a terminal:
  The key w shows the run full screen, as `mainstem watch` does, while it goes
  on; q comes back.

Files:
  Agents can read, change and create files in the workspace, and only there. A
  child works in a directory of its own below agents/, unless its file has
  workspace.mode: shared; its tools: list has what it can do, such as read_file
  alone. In ./mainstem.toml:
    files = false
    shell = true                # as --shell does
    shell_network = \"off\"       # as --shell-network does
    shell_limits = { memory = \"2GiB\", cpu = \"10m\", processes = 64 }
    agent_generate = true       # the agent drafts others: subagents/*.md

Tools of MCP servers, which start when an agent that has them first runs:
    [mcp.everything]
    command = \"npx\"
    args = [\"-y\", \"@modelcontextprotocol/server-everything\"]
    [mcp.docs]
    url = \"https://docs.example/mcp\"
    headers = { Authorization = \"Bearer ${DOCS_TOKEN}\" }
  `mainstem tools` lists them. An agent's file chooses with mcp_servers: [docs],
  or with tools:. Such servers, a shell and other addresses of models require
  trust in the folder: see `mainstem trust --help`.

Models:
  Set {variables}.
  `mainstem models` lists these, and those of other servers, such as
  OPENAI_BASE_URL for vLLM or llama.cpp; `mainstem doctor` checks what is set
  up, and its help lists all keys.
  The order of precedence: flags, the environment, ./mainstem.toml, the user's
  mainstem/config.toml:
    model = \"openai:qwen3\"
    [permissions]
    ask = [\"shell\", \"write_file(path: src/**)\"]
    [budget]
    tokens = 200_000
    [prices]
    # Millionths of a dollar for a million tokens:
    \"qwen3\" = { input = 0, output = 0 }
    [providers.openai]
    base_url = \"http://localhost:11434/v1\"
    api_key_env = \"MY_KEY\"      # the name of a variable, never a key
    tokens_per_minute = 30_000    # calls wait until there is room
";
