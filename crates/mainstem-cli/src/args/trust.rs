//! `--config`, `--trust` and `mainstem trust`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Form, GLOBAL};
use crate::config::keys::guarded;

/// The source of the configuration, and the trust in it.
#[derive(Debug, Default, Args)]
pub(crate) struct Source {
    /// Read this configuration instead of ./mainstem.toml and the user's. All of it is trusted.
    #[arg(long = "config", global = true, value_name = "FILE", help_heading = GLOBAL)]
    pub(crate) named: Option<PathBuf>,
    /// Trust the folder's files as they are, for this command; `mainstem trust --help` lists the
    /// parts that need trust [env: MAINSTEM_TRUST].
    #[arg(long, global = true, help_heading = GLOBAL)]
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
    /// List the trusted parts and the calls that are always allowed, by folder.
    List {
        /// The form of the list.
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
        output: Form,
    },
    /// Trust a folder's files as they are.
    Add {
        /// The folder.
        #[arg(value_name = "DIR", default_value = ".")]
        dir: PathBuf,
        /// Include its agents for other products, as `mainstem run --foreign` does.
        #[arg(long)]
        foreign: bool,
    },
    /// Remove the trust in a folder's files, and forget which calls are always allowed there.
    Rm {
        /// The folder.
        #[arg(value_name = "DIR", default_value = ".")]
        dir: PathBuf,
    },
}

fn help() -> String {
    format!(
        "\
A folder's files may come from elsewhere. These parts of them apply only once
they are trusted:
  in mainstem.toml
{}  in subagents/*.md
    mcp_servers
All other parts apply at once. At a terminal `mainstem run`, `chat` and `serve`
ask; elsewhere they refuse. A part that changes has to be trusted again, and
only that part.

MAINSTEM_TRUST=1 is --trust for every command; MAINSTEM_TRUST=DIR:DIR trusts
these folders alone.
",
        guarded()
    )
}
