//! `mainstem jobs` and `mainstem worker`: runs at a time, or again and again.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{ArgAction, Args, Subcommand};
use mainstem::{
    event::Timestamp,
    journal::{Cron, CronError},
    message::{JobId, SessionId},
};

use super::{
    At, Form, JournalAt, pace,
    serve::{KeepFlags, Log, Lost, Serve},
};
use crate::config::{Settings, text::duration};

pub(super) const HELP: &str = "\
A job is stored in a journal. A server or a worker with that journal begins its
run when it is due: on one machine a file, on several a PostgreSQL database.

  mainstem jobs add \"Report changes\" --cron '0 9 * * MON-FRI Europe/Berlin'
  mainstem jobs add \"Check the backups\" --in 2h
  mainstem worker
";

/// `mainstem jobs`
#[derive(Debug, Args)]
pub(crate) struct Jobs {
    #[command(flatten)]
    pub(crate) at: At,
    /// The file or database with the jobs; by default the user's.
    #[arg(long, global = true, value_name = "FILE|URL")]
    pub(crate) journal: Option<JournalAt>,
    #[command(subcommand)]
    pub(crate) command: JobsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// Add a job, and print its id.
    Add(Box<Add>),
    /// List the jobs that are not over; the one that is due first comes first.
    List {
        /// Also those that are over, for a week after their end.
        #[arg(long)]
        all: bool,
        /// The maximum number of jobs.
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        /// The form of the list.
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
        output: Form,
    },
    /// Show a job, and how its last run ended.
    Show {
        /// The job.
        #[arg(value_parser = JobId::parse_scoped)]
        id: JobId,
    },
    /// Cancel a job, and its run if one is active.
    Cancel {
        /// The job.
        #[arg(value_parser = JobId::parse_scoped)]
        id: JobId,
    },
}

/// `mainstem jobs add`
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// The task.
    pub(crate) prompt: String,
    /// Begin it at this time: 2026-12-24T18:00:00Z, or with another offset from UTC
    /// (2026-12-24T19:00:00+01:00). By default as soon as a process has room.
    #[arg(long, value_name = "TIME", value_parser = time, group = "when")]
    pub(crate) at: Option<Timestamp>,
    /// Begin it after this long: 90s, 2h, 1d.
    #[arg(long = "in", value_name = "TIME", value_parser = duration, group = "when")]
    pub(crate) after: Option<Duration>,
    /// Begin it again and again: minute, hour, day of the month, month, day of the week, and a time
    /// zone; UTC by default.
    #[arg(long, value_name = "EXPRESSION", group = "when", value_parser = cron)]
    pub(crate) cron: Option<String>,
    /// The session of its runs; by default each has one of its own.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<SessionId>,
    /// The agent that leads the runs; by default the one of the server or worker.
    #[arg(short, long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Jobs of a higher priority begin before others that are due.
    #[arg(long, value_name = "N", default_value_t, allow_negative_numbers = true)]
    pub(crate) priority: i16,
    /// What becomes of a run whose process ends, of several that share a database: another one
    /// resumes its turn, or closes it. By default what their own --on-lost says.
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) on_lost: Option<Lost>,
    /// The id of the job; by default a new one. A second job of the same id is refused.
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<JobId>,
}

fn at_least_one(text: &str) -> Result<usize, &'static str> {
    text.parse().ok().filter(|count| *count > 0).ok_or("must be at least 1")
}

fn cron(text: &str) -> Result<String, CronError> {
    text.parse::<Cron>().map(|_| text.to_owned())
}

fn time(text: &str) -> Result<Timestamp, String> {
    let time: jiff::Timestamp =
        text.parse().map_err(|_| "expected a date, a time and an offset, such as 2026-12-24T18:00:00Z")?;
    let micros = u64::try_from(time.as_microsecond()).map_err(|_| "the time is before 1970")?;
    Ok(Timestamp::from_micros(micros))
}

pub(super) const WORKER_HELP: &str = "\
Examples:
  mainstem worker -m demo
  PGPASSWORD_FILE=/run/secrets/postgres \\
      mainstem worker --journal postgres://fleet@db.example/agents
";

/// `mainstem worker`
#[derive(Debug, Args)]
pub(crate) struct Worker {
    /// The file or database with the jobs; by default the user's. The password comes from
    /// PGPASSWORD, or from the file that PGPASSWORD_FILE names.
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) journal: Option<JournalAt>,
    /// How many jobs run at once.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = at_least_one)]
    pub(crate) jobs: usize,
    /// How many jobs of a tenant run at once, in all processes that share the journal.
    #[arg(long, value_name = "N")]
    pub(crate) jobs_per_tenant: Option<usize>,
    /// The agent that leads runs; by default the one that `mainstem run` would run.
    #[arg(short, long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// A further agent that jobs can name; repeatable.
    #[arg(long, value_name = "ID")]
    pub(crate) allow_agent: Vec<String>,
    /// A model that jobs can name; repeatable.
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_model: Vec<String>,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// The tokens of the servers: jobs of their tenants are run, too.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Keep the files of each session in this directory, or in this bucket: s3://BUCKET/PATH, with
    /// the AWS_* variables, so that other servers with the same --journal have them. Its agents
    /// then work in a directory of their own, which is empty at first.
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) session_files: Option<String>,
    /// What becomes of a run whose process has ended, with a database: another one resumes its
    /// turn, or closes it. A run can have a setting of its own.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    pub(crate) on_lost: Lost,
    #[command(flatten)]
    pub(crate) keep: KeepFlags,
    /// How long runs may continue after a signal to stop; then they are cancelled.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    pub(crate) grace: Duration,
    /// How stderr shows problems. MAINSTEM_LOG filters them: `warn`, `debug`, …
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) log: Log,

    /// The pace of the demo, for tests.
    #[arg(long, value_name = "FACTOR", value_parser = pace, default_value_t = 1.0, hide = true, action = ArgAction::Set)]
    pub(crate) demo_pace: f64,
}

impl Worker {
    /// Returns the server that it is, apart from an address.
    pub(crate) fn as_server(&self) -> Serve {
        Serve {
            bind: SocketAddr::from(([127, 0, 0, 1], 0)),
            agent: self.agent.clone(),
            allow_agent: self.allow_agent.clone(),
            allow_model: self.allow_model.clone(),
            protocol: Vec::new(),
            notify_host: Vec::new(),
            settings: self.settings.clone(),
            token_file: self.token_file.clone(),
            journal: self.journal.clone(),
            session_files: self.session_files.clone(),
            on_lost: self.on_lost,
            jobs: self.jobs,
            jobs_per_tenant: self.jobs_per_tenant,
            keep: self.keep.clone(),
            allow_host: Vec::new(),
            close_idle: Some(Duration::from_secs(60)),
            grace: self.grace,
            log: self.log,
            demo_pace: self.demo_pace,
        }
    }
}
