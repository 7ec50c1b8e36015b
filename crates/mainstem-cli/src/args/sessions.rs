//! `mainstem sessions` and `mainstem replay`: recorded sessions.

use std::time::Duration;

use anyhow::ensure;
use clap::{Args, Subcommand};
use mainstem::{
    api::NewLink,
    message::{LinkId, SessionId},
};

use super::{At, Form, JournalAt, KeepFlags, ProgressFlags, WorkspaceFlag};
use crate::config::text::duration;

#[derive(Debug, Args)]
pub(crate) struct Sessions {
    #[command(flatten)]
    pub(crate) at: At,
    /// The file or database with the sessions; by default the user's.
    #[arg(long, global = true, value_name = "FILE|URL")]
    pub(crate) journal: Option<JournalAt>,
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions; the one whose run began last comes first.
    List {
        /// Only sessions with this text in their ids.
        search: Option<String>,
        /// The maximum number of sessions.
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        /// The form of the list.
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
        output: Form,
    },
    /// Show a session: when it was active, the state of each of its agents, and the conversation
    /// with the leading one.
    Show {
        /// The session.
        #[arg(value_parser = SessionId::parse_scoped)]
        id: SessionId,
        /// Show the state of each agent after the event of this number, instead of the present one,
        /// and no conversation.
        #[arg(long, value_name = "EVENT")]
        at: Option<u64>,
    },
    /// Write every event of a session to stdout, a line of JSON each.
    Export {
        /// The session.
        #[arg(value_parser = SessionId::parse_scoped)]
        id: SessionId,
        /// Write one HTML document instead, which shows them in a browser without a server.
        #[cfg(feature = "page")]
        #[arg(long, conflicts_with = "test")]
        html: bool,
        /// Write a test in Rust instead, which runs the session again from its record and checks
        /// that each agent does what it did. Save it in `tests/` of a project.
        #[arg(long)]
        test: bool,
    },
    #[command(flatten)]
    Served(ServedCommand),
    /// Delete sessions with all their events, and the records of their tasks in the workspace. This
    /// can't be undone.
    Rm {
        /// The sessions.
        #[arg(required = true, value_parser = SessionId::parse_scoped)]
        ids: Vec<SessionId>,
        #[command(flatten)]
        workspace: WorkspaceFlag,
        #[command(flatten)]
        files: FilesFlag,
    },
    /// Delete the sessions that are not kept, and print them. This can't be undone.
    Prune {
        #[command(flatten)]
        keep: KeepFlags,
        /// Only print them.
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        workspace: WorkspaceFlag,
        #[command(flatten)]
        files: FilesFlag,
    },
}

/// The files that sessions have beside the journal.
#[derive(Debug, Args)]
pub(crate) struct FilesFlag {
    /// Delete the sessions' files, too, which `mainstem serve --session-files` keeps in this
    /// directory or bucket.
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) session_files: Option<String>,
}

impl FilesFlag {
    /// Checks that no server is to delete the sessions.
    ///
    /// # Errors
    /// The flag is set, and so is a server.
    pub(crate) fn check(&self, at: &At) -> anyhow::Result<()> {
        let is_there = at.server.is_some() && self.session_files.is_some();
        ensure!(
            !is_there,
            "--session-files is for a journal; a server deletes the files of its sessions itself"
        );
        Ok(())
    }
}

/// The commands that only a server answers.
#[derive(Debug, Subcommand)]
pub(crate) enum ServedCommand {
    /// Print what the active sessions of a server do, a line for each change, until a signal.
    Live {
        /// Also the sessions of all tenants, for the operator's token alone.
        #[arg(long)]
        all: bool,
        /// The form of the lines. JSON has the frames of `GET /v1/live`.
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
        output: Form,
    },
    /// Create a link of a server's session, and print its address. Who has it reads that session on
    /// the server's page, and nothing else.
    Share {
        /// The session.
        id: SessionId,
        /// When the link ends: 30min, 1day; 90 days at most.
        #[arg(long = "for", value_name = "TIME", value_parser = lasts, default_value = "7days")]
        lasts: Duration,
        /// The last event that it shows; by default it shows all, later ones included.
        #[arg(long, value_name = "EVENT")]
        through: Option<u64>,
        /// The form of the answer. JSON has the token alone, too, for requests to the server.
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
        output: Form,
    },
    /// List the links of a server's session that have not ended, the oldest first.
    Links {
        /// The session.
        id: SessionId,
        /// The form of the list.
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
        output: Form,
    },
    /// Revoke links of a server's session: within seconds their readers read nothing more.
    Revoke {
        /// The session.
        id: SessionId,
        /// The links, as `mainstem sessions links` lists them.
        #[arg(required = true)]
        links: Vec<LinkId>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// A file of `mainstem run --record` or `mainstem sessions export`; or the id of a session.
    #[arg(value_name = "FILE|SESSION")]
    pub(crate) what: String,
    #[command(flatten)]
    pub(crate) at: At,
    /// The file or database with the session; by default the user's.
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) journal: Option<JournalAt>,
    /// The speed: 1 is as it happened, 10 ten times as fast, `max` without pauses. A pause is at
    /// most 3 s.
    #[arg(long, value_name = "N", value_parser = speed, default_value = "1")]
    pub(crate) speed: f64,
    #[command(flatten)]
    pub(crate) progress: ProgressFlags,
}

/// Reads how long a link lasts.
fn lasts(text: &str) -> Result<Duration, String> {
    let lasts = duration(text)?;
    let is_valid = (NewLink::SHORTEST..=NewLink::LONGEST).contains(&lasts.as_secs());
    if is_valid { Ok(lasts) } else { Err("a link lasts 1min to 90days".to_owned()) }
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = if text == "max" { Some(f64::INFINITY) } else { text.parse().ok() };
    speed.filter(|speed| *speed > 0.0).ok_or_else(|| "expected a number above 0, or max".to_owned())
}
