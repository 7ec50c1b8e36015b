//! `mainstem chat`, `attach` and `tasks`: live sessions, here or on a server.

use std::time::Duration;

use anyhow::ensure;
use clap::{Args, Command, Id, Subcommand};
use mainstem::message::{SessionId, TaskId};
use mainstem_event::TaskStatus;

use super::{Form, JournalAt, Mode, ProgressFlags, WorkspaceFlag};
use crate::{
    approval::Approve,
    config::{Budget, Settings, text::duration},
};

/// The server, if any.
#[derive(Debug, Default, Args)]
pub(crate) struct At {
    /// Use the server at this address, with the token in MAINSTEM_TOKEN, instead of this machine's
    /// records [env: MAINSTEM_SERVER].
    #[arg(long, global = true, value_name = "URL", conflicts_with = "journal")]
    pub(crate) server: Option<String>,
}

impl At {
    /// Checks that a directory of this machine is not named beside a server.
    ///
    /// # Errors
    /// Both are named.
    pub(crate) fn check(&self, workspace: &WorkspaceFlag) -> anyhow::Result<()> {
        let is_there = self.server.is_some() && workspace.settings().workspace.is_some();
        ensure!(!is_there, "--workspace is a directory of this machine; it cannot be used with --server");
        Ok(())
    }
}

/// The server, if any, for commands that take settings. A server has its own, except for the
/// limits that each run can lower.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SettingsServer {
    /// Run on the server at this address, with the token in MAINSTEM_TOKEN; agents, models and
    /// files are the server's [env: MAINSTEM_SERVER].
    #[arg(long, value_name = "URL", conflicts_with_all = local_flags())]
    pub(crate) server: Option<String>,
}

/// The flags that a server does not take.
fn local_flags() -> Vec<Id> {
    let settings = Settings::augment_args(Command::new(""));
    let ids = settings.get_arguments().map(|arg| arg.get_id().clone());
    let of_a_run = ["model", "max_depth", "max_children"];
    ids.filter(|id| !of_a_run.contains(&id.as_str())).chain(["journal".into()]).collect()
}

/// `mainstem chat`
#[derive(Clone, Debug, Args)]
pub(crate) struct Chat {
    #[command(flatten)]
    pub(crate) at: SettingsServer,
    /// Continue this session, or begin it; by default a new one.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<SessionId>,
    /// Continue the session whose run began last.
    #[arg(short = 'c', long = "continue", conflicts_with = "session")]
    pub(crate) is_continued: bool,
    /// Record the session in this file or database instead of the user's.
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) journal: Option<JournalAt>,
    /// The agent of the workspace, or of the server.
    #[arg(short, long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) settings: Settings,
    #[command(flatten)]
    pub(crate) budget: Budget,
    /// How calls of tools that may change something are approved, such as those that write files or
    /// run commands. By default you are asked at a terminal, and elsewhere they run.
    #[arg(long, value_name = "WHO", value_enum, help_heading = "Limits")]
    pub(crate) approve: Option<Approve>,
    /// The plan mode that `/plan` sets; by default the session's.
    #[arg(skip)]
    pub(crate) plan: Option<bool>,
    /// How stderr shows progress.
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    pub(crate) progress: Mode,
}

impl Chat {
    /// Returns what the flags set.
    pub(crate) fn settings(&self) -> Settings {
        Settings { budget: self.budget.clone(), ..self.settings.clone() }
    }
}

/// `mainstem attach`
#[derive(Debug, Args)]
pub(crate) struct Attach {
    /// The session.
    #[arg(value_parser = attached)]
    pub(crate) session: SessionId,
    #[command(flatten)]
    pub(crate) at: At,
    /// The file or database with the session; by default the user's.
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) journal: Option<JournalAt>,
    /// The number of the first event; by default the first of the active run, or of the latest run
    /// that the server knows, or of the session.
    #[arg(long, value_name = "SEQ")]
    pub(crate) from: Option<u64>,
    /// End with the active run, or at once if there is none.
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressFlags,
}

/// `mainstem tasks`
#[derive(Debug, Args)]
pub(crate) struct Tasks {
    #[command(flatten)]
    pub(crate) at: At,
    #[command(flatten)]
    pub(crate) workspace: WorkspaceFlag,
    /// The file or database with the sessions; by default the user's.
    #[arg(long, global = true, value_name = "FILE|URL")]
    pub(crate) journal: Option<JournalAt>,
    #[command(subcommand)]
    pub(crate) command: TasksCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// List tasks, the oldest first.
    List {
        /// Only tasks of this session.
        #[arg(long, value_name = "ID")]
        session: Option<SessionId>,
        /// Only tasks with this status: pending, running, completed, failed, cancelled …
        #[arg(long, value_name = "STATUS", value_parser = status)]
        status: Option<TaskStatus>,
        /// The form of the list.
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
        output: Form,
    },
    /// Show a task, with its result.
    Show {
        /// The task.
        id: TaskId,
    },
    /// Show what the agents of a task did and said.
    Logs {
        /// The task.
        id: TaskId,
    },
    /// Wait until a task has ended, and show it.
    Wait {
        /// The task.
        id: TaskId,
        /// The longest wait: `90s`, `5m`.
        #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10m")]
        timeout: Duration,
    },
    /// Stop a task.
    Cancel {
        /// The task.
        id: TaskId,
    },
    /// Remove tasks that are over, with their results. This can't be undone.
    Rm {
        /// The tasks.
        #[arg(required = true)]
        ids: Vec<TaskId>,
    },
}

/// `mainstem watch`
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// A session, or a file of `mainstem run --record` or `mainstem sessions export`; by default
    /// the session whose run began last.
    #[arg(value_name = "SESSION|FILE")]
    pub(crate) what: Option<String>,
    /// Show it in a browser: a session of a server on the server's page; a file, or what is
    /// recorded of another session, in a document that opens without a server.
    #[cfg(feature = "page")]
    #[arg(long)]
    pub(crate) web: bool,
    #[command(flatten)]
    pub(crate) at: At,
    /// The file or database with the session; by default the user's.
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) journal: Option<JournalAt>,
}

pub(super) const WATCH_HELP: &str = "\
The tree of agents is on the left, what the selected one was told, said and did
on the right. Arrow keys select an agent and move in time; `?` lists all keys.

Examples:
  mainstem watch                     the session whose run began last
  mainstem run -m demo --record demo.ndjson && mainstem watch demo.ndjson
  mainstem watch --server http://127.0.0.1:7878 my-session
";

pub(super) const CHAT_HELP: &str = "\
Each line is a turn; the reply goes to stdout. Esc or Ctrl-C cancels the active
turn. What is typed meanwhile follows it, and /now TEXT enters it: the agent
reads it before its next step. /quit, Ctrl-D and the end of stdin end the chat.
A terminal has a history, and completes commands and @FILE with Tab; Alt-Enter
begins another line of the same turn. /help lists the commands.
";

/// Parses the id of a session to attach to, which is not the address of a server.
fn attached(text: &str) -> Result<SessionId, String> {
    if text.starts_with("http://") || text.starts_with("https://") {
        return Err(format!(
            "this is an address, not a session; write `mainstem attach --server {text} SESSION`"
        ));
    }
    SessionId::parse_scoped(text).map_err(|error| error.to_string())
}

fn status(text: &str) -> Result<TaskStatus, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}
