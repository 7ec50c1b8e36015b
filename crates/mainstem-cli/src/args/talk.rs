//! `mainstem chat`, `attach` and `tasks`: sessions at work, here or on a server.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Command, Id, Subcommand, builder::NonEmptyStringValueParser};
use mainstem_event::TaskStatus;

use super::{Form, Mode, WorkspaceFlag};
use crate::config::{Budget, Settings, text::duration};

/// Which server, if any.
#[derive(Debug, Default, Args)]
pub(crate) struct At {
    /// Ask the server at this address, with the token in MAINSTEM_TOKEN, instead of what is kept on this machine.
    #[arg(long, global = true, value_name = "URL", env = "MAINSTEM_SERVER", conflicts_with = "journal")]
    pub(crate) server: Option<String>,
}

/// Which server, if any, for commands that take settings. A server has its own, except for the
/// limits that each run can lower.
#[derive(Debug, Default, Args)]
pub(crate) struct SettingsServer {
    /// Run it on the server at this address, with the token in MAINSTEM_TOKEN: agents, model and files are the server's.
    #[arg(long, value_name = "URL", env = "MAINSTEM_SERVER", conflicts_with_all = local_flags())]
    pub(crate) server: Option<String>,
}

/// The flags that a server does not take.
fn local_flags() -> Vec<Id> {
    let settings = Settings::augment_args(Command::new(""));
    let ids = settings.get_arguments().map(|arg| arg.get_id().clone());
    ids.filter(|id| id != "max_depth" && id != "max_children").chain(["journal".into()]).collect()
}

/// `mainstem chat`
#[derive(Debug, Args)]
pub(crate) struct Chat {
    #[command(flatten)]
    pub(crate) at: SettingsServer,
    /// Go on with this session, or begin it; without it a new one.
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Keep the session in this file instead of the user's.
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// Talk to this agent of the workspace, or of the server.
    #[arg(short, long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) settings: Settings,
    #[command(flatten)]
    pub(crate) budget: Budget,
    /// How stderr shows what goes on.
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
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) at: At,
    /// The file that keeps the session, if it is not the user's.
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// Begin at the event of this number; by default at the beginning of the run that is at work, or else of the latest that the server knows, or of the session.
    #[arg(long, value_name = "SEQ")]
    pub(crate) from: Option<u64>,
    /// End with the run that is at work, or at once if none is.
    #[arg(long)]
    pub(crate) once: bool,
    /// How stderr shows what goes on.
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    pub(crate) progress: Mode,
}

/// `mainstem tasks`
#[derive(Debug, Args)]
pub(crate) struct Tasks {
    #[command(flatten)]
    pub(crate) at: At,
    #[command(flatten)]
    pub(crate) workspace: WorkspaceFlag,
    /// The file that keeps the sessions, if it is not the user's.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: TasksCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// List them, oldest first.
    List {
        /// Only those of this session.
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Only those that stand so: pending, running, completed, failed, cancelled …
        #[arg(long, value_name = "STATUS", value_parser = status)]
        status: Option<TaskStatus>,
        /// The form of the list.
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
        output: Form,
    },
    /// Show one, with its result.
    Show {
        /// The task.
        id: String,
    },
    /// Show what was done in one, event by event.
    Logs {
        /// The task.
        id: String,
    },
    /// Wait until one is over, and show it.
    Wait {
        /// The task.
        id: String,
        /// How long to wait: `90s`, `5m`.
        #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10m")]
        timeout: Duration,
    },
    /// Ask one to stop.
    Cancel {
        /// The task.
        id: String,
    },
}

fn status(text: &str) -> Result<TaskStatus, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}
