//! `mainstem agents`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use mainstem::remote::Host;

use super::WorkspaceFlag;

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Agents {
    #[command(flatten)]
    pub(crate) workspace: WorkspaceFlag,
    #[command(subcommand)]
    pub(crate) command: AgentsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// List agents, a line each: id, mode, model, tools and file.
    List(List),
    /// Show the values of an agent's file, with the line of each.
    Show(Show),
    /// Write subagents/ID.md from a template; an existing file is never changed.
    New(New),
    /// List the keys that an agent's file can have, with their defaults.
    Keys(Keys),
    /// Check agent files and skills; exits with 1 if there is an error.
    Validate(Validate),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) listing: Listing,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The agent's id: the name of its file without .md.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Ask the server of an agent with a `url` what it says of the agent.
    #[arg(long)]
    pub(crate) online: bool,
    /// Allow a server whose address is not public: a name, an address, a network, or `*`.
    #[arg(long = "remote-host", value_name = "HOST", requires = "online")]
    pub(crate) remote_hosts: Vec<Host>,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

#[derive(Debug, Args)]
pub(crate) struct Keys {
    /// The form of the output.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output: Form,
}

#[derive(Debug, Args)]
pub(crate) struct New {
    /// The agent's id: a-z, 0-9, _ and -, beginning with a letter or digit.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The purpose of the agent; models decide by it when to use the agent.
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: String,
}

#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// Agent files, directories of them, or ids of agents; by default all of the workspace, with
    /// its skills.
    #[arg(value_name = "PATH|ID")]
    pub(crate) targets: Vec<PathBuf>,
    /// Exit with 1 for warnings, too.
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

/// The files to read, and the form of the output.
#[derive(Debug, Args)]
pub(crate) struct Listing {
    /// Read the workspace's agents for Claude Code, OpenCode, Copilot, Gemini CLI, Cursor, Codex
    /// and goose, too.
    #[arg(long)]
    pub(crate) foreign: bool,
    /// The form of the output.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output: Form,
}

/// A form for people or for programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Lines.
    #[default]
    Text,
    /// One JSON value.
    Json,
}

const HELP: &str = "\
Files of other products, with --foreign:
  .claude/agents/*.md, .opencode/agent/*.md, .opencode/agents/*.md,
  .github/agents/*.md, .gemini/agents/*.md, .cursor/agents/*.md,
  .codex/agents/*.toml, .goose/agents/*.md, .agents/agents/*.md
  An agent of subagents/ goes before one of these with the same id.

Examples:
  mainstem agents new reviewer --description \"Reviews a change\"
  mainstem agents validate --strict
  mainstem agents list --foreign --output json | jq -r '.[].id'
  mainstem agents show reviewer";
