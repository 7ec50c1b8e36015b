//! `mainstem mcp`

use clap::{ArgAction, Args};

use super::{JournalAt, Log, pace};
use crate::config::Settings;

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// The agent that is offered first; by default the one that `mainstem run` would run.
    #[arg(short, long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Offer only this agent; repeatable. By default all that can lead a run.
    #[arg(long, value_name = "ID")]
    pub(crate) only: Vec<String>,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Record sessions in this file or PostgreSQL database, so that they can be continued later.
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) journal: Option<JournalAt>,
    /// How stderr shows problems, which clients usually log.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) log: Log,

    /// The pace of the demo, for tests.
    #[arg(long, value_name = "FACTOR", value_parser = pace, default_value_t = 1.0, hide = true, action = ArgAction::Set)]
    pub(crate) demo_pace: f64,
}

pub(super) const HELP: &str = "\
Clients start it themselves. For Claude Code, and for a client with a JSON file:
  claude mcp add fleet -- mainstem mcp --workspace /path/to/project
  { \"mcpServers\": { \"fleet\": {
      \"command\": \"mainstem\", \"args\": [\"mcp\", \"-w\", \"/path/to/project\"]
  } } }
\nOver HTTP: `mainstem serve --protocol mcp`, at the path /mcp.
";
