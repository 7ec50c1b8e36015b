//! `mainstem sessions`

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Form;

#[derive(Debug, Args)]
pub(crate) struct Sessions {
    /// The file that keeps them, if it is not the user's.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List them, the one that was active last first.
    List {
        /// The form of the list.
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
        output: Form,
    },
    /// Write every event of a session to stdout, a line of JSON each.
    Export {
        /// The session.
        id: String,
    },
    /// Forget sessions, with all that was said in them. There is no way back.
    Rm {
        /// The sessions.
        #[arg(required = true)]
        ids: Vec<String>,
    },
}
