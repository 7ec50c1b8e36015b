//! `--config`, `--trust` and `mainstem trust`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Form;
use crate::config::keys::guarded;

/// Where the configuration comes from, and what of it is trusted.
#[derive(Debug, Default, Args)]
pub(crate) struct Source {
    /// Read this configuration instead of ./mainstem.toml and the user's. All of it is trusted.
    #[arg(long = "config", global = true, value_name = "FILE")]
    pub(crate) named: Option<PathBuf>,
    /// Trust, for this command, what the files of the folder say now; `mainstem trust --help` says which of it needs trust [env: MAINSTEM_TRUST].
    #[arg(long, global = true)]
    pub(crate) trust: bool,
}

/// `mainstem trust`
#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Trust {
    #[command(subcommand)]
    pub(crate) command: TrustCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// List what is trusted, by folder.
    List {
        /// The form of the list.
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
        output: Form,
    },
    /// Trust what the files of a folder say now.
    Add {
        /// The folder.
        #[arg(value_name = "DIR", default_value = ".")]
        dir: PathBuf,
        /// Also what it has for Claude Code, OpenCode and Copilot, as `mainstem run --foreign` reads it.
        #[arg(long)]
        foreign: bool,
    },
    /// Trust nothing of a folder any longer.
    Rm {
        /// The folder.
        #[arg(value_name = "DIR", default_value = ".")]
        dir: PathBuf,
    },
}

fn help() -> String {
    format!(
        "\
A folder's files may come from elsewhere. These parts of them apply only once they are trusted:
  in mainstem.toml
{}  in subagents/*.md
    mcp_servers, url with headers
All other parts apply at once. At a terminal `mainstem run`, `chat` and `serve` ask; elsewhere they
refuse. A part that changes has to be trusted again, and only that part.

MAINSTEM_TRUST=1 is --trust for every command; MAINSTEM_TRUST=DIR:DIR trusts these folders alone.
",
        guarded()
    )
}
