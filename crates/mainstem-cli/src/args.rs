//! The command line.

mod agents;
mod jobs;
mod journal;
mod mcp;
mod run;
mod serve;
mod sessions;
mod talk;
mod trust;
mod workspace;

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::agents::{Agents, AgentsCommand, Form, Keys, List, Listing, New, Show, Validate};
pub(crate) use self::{
    jobs::{Add, Jobs, JobsCommand, Worker},
    journal::JournalAt,
    mcp::Mcp,
    run::{Background, Format, Mode, ProgressFlags, Run},
    serve::{KeepFlags, Log, Serve},
    sessions::{FilesFlag, Replay, ServedCommand, Sessions, SessionsCommand},
    talk::{At, Attach, Chat, SettingsServer, Tasks, TasksCommand, Watch},
    trust::{Source, Trust, TrustCommand},
    workspace::WorkspaceFlag,
};
use crate::config::{Settings, keys, text::duration};

/// Run a fleet of agents and watch each of them live.
#[derive(Debug, Parser)]
#[command(name = "mainstem", version, max_term_width = 100, after_help = FIRST)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) config: Source,
    /// The use of colours; NO_COLOR and CLICOLOR_FORCE apply, too.
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t, help_heading = GLOBAL)]
    pub(crate) color: Color,
    /// Show replies as the markdown that they are; by default a terminal with colours gets
    /// headings, lists, code and tables.
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) raw: bool,
    /// Without one, a chat at a terminal.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const FIRST: &str = "\
Without a command, `mainstem` opens a chat at a terminal.

First steps:
  mainstem run -m demo            the demo: no key, no network
  mainstem init                   settings, an agent and a test for this folder
  mainstem doctor                 what is set up, and what is missing
  mainstem run \"What is in this folder?\"
";

/// The heading of the flags that every command has.
const GLOBAL: &str = "Global options";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give a prompt to an agent and its fleet; the reply goes to stdout, progress to stderr.
    #[command(after_help = run::help())]
    Run(Box<Run>),
    /// List, show, create and validate the agents that files of the workspace declare.
    Agents(Agents),
    /// Check the configuration, and show how to correct what is wrong.
    #[command(after_long_help = doctor_help())]
    Doctor(Doctor),
    /// List the providers of models, and what sets up each of them.
    Models(Models),
    /// List the tools of an agent; MCP servers are started to list theirs.
    Tools(Tools),
    /// Talk with an agent, turn by turn, in a recorded session.
    #[command(after_help = talk::CHAT_HELP)]
    Chat(Box<Chat>),
    /// Follow a session that runs elsewhere: on a server, or in another process of this machine.
    Attach(Attach),
    /// Create the first files of a folder with agents: settings, an agent, a test.
    Init(Init),
    /// Show the settings of flags, the environment and files, with secrets left out.
    Config(ConfigArgs),
    /// Watch a session full screen, live or back and forth, and steer it.
    #[command(after_help = talk::WATCH_HELP)]
    Watch(Watch),
    /// List, show, follow and stop background tasks.
    Tasks(Tasks),
    /// Serve an agent over HTTP: runs, and the events of all agents as server-sent events.
    #[command(after_help = serve::HELP)]
    Serve(Box<Serve>),
    /// Offer agents as tools to an MCP client, such as Claude Code, Codex or an editor, over stdin
    /// and stdout.
    #[command(after_help = mcp::HELP)]
    Mcp(Box<Mcp>),
    /// Begin runs at a time, or again and again: add, list, show and cancel jobs.
    #[command(after_help = jobs::HELP)]
    Jobs(Jobs),
    /// Run the jobs of a journal, without serving HTTP, until a signal.
    #[command(after_help = jobs::WORKER_HELP)]
    Worker(Box<Worker>),
    /// List, export and delete recorded sessions.
    Sessions(Sessions),
    /// Show recorded events as if they happened now; replies go to stdout.
    Replay(Replay),
    /// List, add and remove folders whose files you trust.
    Trust(Trust),
    /// Write the completions of a shell to stdout.
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages: the one of `mainstem` to stdout, or those of all commands to a
    /// directory.
    #[command(after_help = "To read it: mainstem man | man -l -")]
    Man {
        /// Write a page for each command into this directory, which is created.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Create the tables of a PostgreSQL database, or change those of an earlier version.
    #[command(after_help = MIGRATE_HELP)]
    Migrate(Migrate),
    /// List the servers that share a PostgreSQL database, and ask one to stop.
    #[command(after_help = NODES_HELP)]
    Nodes(Nodes),
    /// Check that a server can begin runs, as containers and monitors do.
    #[command(after_help = HEALTH_HELP)]
    Health(Health),
    /// Print the version.
    Version,
}

const COMPLETIONS_HELP: &str = "\
For bash:
  mkdir -p ~/.local/share/bash-completion/completions
  mainstem completions bash \\
      > ~/.local/share/bash-completion/completions/mainstem
";

const MIGRATE_HELP: &str = "\
Run it once before the servers of a new version begin; those of the version
before go on meanwhile. An empty database needs it only if the servers may not
create tables.

  PGPASSWORD=… mainstem migrate --journal postgres://owner@db.example/agents
";

/// `mainstem migrate`
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// The database; its password comes from PGPASSWORD, or from the file that PGPASSWORD_FILE
    /// names.
    #[arg(long, value_name = "URL")]
    pub(crate) journal: JournalAt,
}

const NODES_HELP: &str = "\
A server that is asked to stop does so as at a signal: it begins no runs, gives
active ones the time of its --grace, and leaves its sessions to the others.

  mainstem nodes list --journal postgres://fleet@db.example/agents
  mainstem nodes drain host-3 --journal postgres://fleet@db.example/agents
";

/// `mainstem nodes`
#[derive(Debug, Args)]
pub(crate) struct Nodes {
    #[command(subcommand)]
    pub(crate) command: NodesCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NodesCommand {
    /// List the nodes, the latest first, with those that have ended within a day.
    List {
        /// The database; its password comes from PGPASSWORD, or from the file that PGPASSWORD_FILE
        /// names.
        #[arg(long, value_name = "URL")]
        journal: JournalAt,
        /// The form of the output.
        #[arg(long, value_name = "FORM", value_enum, default_value_t)]
        output: Form,
    },
    /// Ask a node to stop.
    Drain {
        /// Its name, or its number; of several with the name, all are asked.
        name: String,
        /// The database, as for the list.
        #[arg(long, value_name = "URL")]
        journal: JournalAt,
    },
}

const HEALTH_HELP: &str = "\
Exit codes: 0 if runs can begin, 1 if they can't or the server does not respond.
No token is sent.

For a container:
  HEALTHCHECK CMD [\"mainstem\", \"health\"]
";

/// `mainstem config`
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List what is set; `mainstem doctor --help` has all keys, with their defaults.
    Show {
        #[command(flatten)]
        settings: Box<Settings>,
        /// Show where each was set: a flag, a variable, or a file.
        #[arg(long)]
        origin: bool,
        /// The form of the list.
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
        output: Form,
    },
}

/// `mainstem init`
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The folder, which is created if there is none. Files that exist stay as they are.
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
}

/// `mainstem doctor`
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Check the MCP servers, the servers of agents with a `url` and the model, too: start the
    /// former, and send the model two short requests, which cost money.
    #[arg(long)]
    pub(crate) online: bool,
    /// Check this file or database instead of the user's journal.
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) journal: Option<JournalAt>,
    /// The form of the findings.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output: Form,
}

/// `mainstem health`
#[derive(Debug, Args)]
pub(crate) struct Health {
    /// The address of the server; by default that in MAINSTEM_SERVER, or http://127.0.0.1:7878.
    #[arg(value_name = "URL")]
    pub(crate) address: Option<String>,
    /// How long the server may take to respond.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "3s")]
    pub(crate) timeout: Duration,
}

/// `mainstem models`
#[derive(Debug, Args)]
pub(crate) struct Models {
    /// Ask each provider that is set up for its models, or the one that is named.
    #[arg(long, value_name = "PROVIDER", num_args = 0..=1, default_missing_value = "")]
    pub(crate) online: Option<String>,
    /// The form of the list.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output: Form,
}

/// `mainstem tools`
#[derive(Debug, Args)]
pub(crate) struct Tools {
    /// The agent; by default the one that `mainstem run` would run.
    #[arg(short, long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// The form of the list; `json` includes the schemas.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output: Form,
}

/// The use of colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal with colours.
    #[default]
    Auto,
    /// Colours, even for a pipe.
    Always,
    /// No colours.
    Never,
}

fn doctor_help() -> String {
    let keys = keys::listed();
    format!(
        "Keys of ./mainstem.toml and the user's mainstem/config.toml, with their flags\n\
         and variables:\n{keys}"
    )
}

/// Reads the pace of the demo.
fn pace(text: &str) -> Result<f64, String> {
    let pace = text.parse().ok().filter(|pace: &f64| (0.0..=100.0).contains(pace));
    pace.ok_or_else(|| "expected a number from 0 to 100".to_owned())
}

#[cfg(test)]
mod tests;
