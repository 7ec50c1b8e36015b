//! `mainstem serve`

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{ArgAction, Args, ValueEnum};

use mainstem::{remote::Host, session::Keep};
use mainstem_server::{OnLost, Protocol};

use super::{JournalAt, pace};
use crate::config::{Settings, text::duration};

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The address to listen at; beyond the loopback it requires --token-file.
    #[arg(long, value_name = "ADDR", value_parser = address, default_value = "127.0.0.1:7878")]
    pub(crate) bind: SocketAddr,
    /// The agent that runs; by default the one that `mainstem run` would run.
    #[arg(short, long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// A further agent that callers can run, with its own rights instead of the default agent's;
    /// repeatable.
    #[arg(long, value_name = "ID")]
    pub(crate) allow_agent: Vec<String>,
    /// A model that callers can choose for the agent that leads a run, such as `openai:gpt-5-mini`;
    /// repeatable.
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_model: Vec<String>,
    /// Protocols to serve beside Mainstem's own, with commas: agui, a2a, agent-protocol, langgraph,
    /// mcp, fleet.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) protocol: Vec<Protocol>,
    /// Let notifications that callers of A2A ask for go to a host whose address is not public: a
    /// name, an address, a network such as 10.0.0.0/8, or *; repeatable.
    #[arg(long, value_name = "HOST")]
    pub(crate) notify_host: Vec<Host>,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// The accepted tokens, one a line, each after the name of its tenant if it has one; by default
    /// one token is generated and shown.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Record sessions in this file, so that they continue after a restart; or in this PostgreSQL
    /// database, which other servers may share (`mainstem migrate` changes its tables). The
    /// password comes from PGPASSWORD, or from the file that PGPASSWORD_FILE names.
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) journal: Option<JournalAt>,
    /// Keep the files of each session in this directory, or in this bucket: s3://BUCKET/PATH, with
    /// the AWS_* variables, so that other servers with the same --journal have them. Its agents
    /// then work in a directory of their own, which is empty at first.
    #[arg(long, value_name = "DIR|URL", requires = "journal")]
    pub(crate) session_files: Option<String>,
    /// What becomes of a run whose server has ended, with a database: another one resumes its
    /// turn, or closes it. A run can have a setting of its own.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t, requires = "journal")]
    pub(crate) on_lost: Lost,
    /// How many jobs run at once, of those that `mainstem jobs` and `POST /v1/jobs` have stored in
    /// the journal; 0 leaves them to other servers and workers.
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) jobs: usize,
    /// How many jobs of a tenant run at once, in all processes that share the journal.
    #[arg(long, value_name = "N", requires = "journal")]
    pub(crate) jobs_per_tenant: Option<usize>,
    #[command(flatten)]
    pub(crate) keep: KeepFlags,
    /// A further host name of the server, besides those of the loopback; repeatable.
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    /// Close sessions without a request for this long, to save memory; the next request opens them
    /// again from --journal, as after a restart.
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "journal")]
    pub(crate) close_idle: Option<Duration>,
    /// How long runs may continue after a signal to stop; then they are cancelled.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    pub(crate) grace: Duration,
    /// How stderr shows requests and problems. MAINSTEM_LOG filters them: `warn`, `debug`,
    /// `mainstem_server=info` …
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) log: Log,

    /// The pace of the demo, for tests.
    #[arg(long, value_name = "FACTOR", value_parser = pace, default_value_t = 1.0, hide = true, action = ArgAction::Set)]
    pub(crate) demo_pace: f64,
}

/// Which recorded sessions are kept.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct KeepFlags {
    /// Delete sessions without an event for longer than this: 30d. By default all are kept.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) keep: Option<Duration>,
    /// Delete sessions, the one without an event for longest first, until the events of the others
    /// have at most this size: 10GiB.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) keep_size: Option<u64>,
}

impl KeepFlags {
    pub(crate) fn keep(&self) -> Keep {
        let keep = self.keep.into_iter().fold(Keep::all(), Keep::with_max_idle);
        self.keep_size.into_iter().fold(keep, Keep::with_max_bytes)
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an IP address and a port, such as 127.0.0.1:7878".to_owned())
}

fn bytes(text: &str) -> Result<u64, String> {
    mainstem::guard::size::parse(text).ok_or_else(|| "expected a size, such as 500MiB or 10GiB".to_owned())
}

/// What becomes of a run whose server has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Lost {
    /// A new run goes on with its turn.
    #[default]
    Resume,
    /// It ends with an error.
    Close,
}

impl From<Lost> for OnLost {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Resume => Self::Resume,
            Lost::Close => Self::Close,
        }
    }
}

/// How requests are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Log {
    /// Lines for people.
    #[default]
    Text,
    /// One object a line.
    Json,
    /// Nothing.
    Off,
}

pub(super) const HELP: &str = "\
Examples:
  mainstem serve -m demo
  curl -N -H \"Authorization: Bearer $TOKEN\" \\
       -H 'Content-Type: application/json' -H 'Accept: text/event-stream' \\
       -d '{\"input\": \"Compare Paris and Rome\"}' \\
       http://127.0.0.1:7878/v1/sessions/one/runs
  curl -N -H \"Authorization: Bearer $TOKEN\" -H 'Last-Event-ID: 17' \\
       http://127.0.0.1:7878/v1/sessions/one/events
\nA request's token selects the sessions that it sees: `acme SECRET` in
--token-file opens those of tenant acme alone.
";
