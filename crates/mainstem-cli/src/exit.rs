//! The exit codes of the process, and the code of each end of a run.

use std::{fmt::Write as _, process::ExitCode, time::Duration};

use anyhow::anyhow;
use mainstem::{api::RunView, http::cancels_sent};
use mainstem_event::Outcome;
use tokio::{runtime::Runtime, time::timeout};

/// An exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Reply = 0,
    Failed = 1,
    Usage = 2,
    Config = 3,
    Refused = 4,
    Limit = 5,
    ChildFailed = 6,
    Timeout = 124,
    HungUp = 129,
    Interrupted = 130,
    ClosedPipe = 141,
    Terminated = 143,
}

/// How long a process that ends waits for requests that cancel responses.
const CANCELS: Duration = Duration::from_secs(2);

/// Ends a runtime. Blocking calls, such as name lookups, do not delay that; requests that cancel
/// what models' vendors would write on do, for a moment.
pub(crate) fn shut_down(runtime: Runtime) {
    runtime.block_on(async { timeout(CANCELS, cancels_sent()).await.ok() });
    runtime.shutdown_background();
}

/// The meaning of each code, for people.
const TABLE: [(Exit, &str); 12] = [
    (Exit::Reply, "there is a reply"),
    (Exit::Failed, "the run failed"),
    (Exit::Usage, "the command line is wrong"),
    (Exit::Config, "no usable model or configuration, or files that are not trusted"),
    (Exit::Refused, "the provider refused, also after retries (key, quota, load)"),
    (Exit::Limit, "a limit was reached: of turns, or a budget"),
    (Exit::ChildFailed, "there is a reply, but a child failed (--strict-children)"),
    (Exit::Timeout, "--timeout ran out"),
    (Exit::HungUp, "cancelled by SIGHUP: the terminal was closed"),
    (Exit::Interrupted, "cancelled by Ctrl-C"),
    (Exit::ClosedPipe, "the reader closed the output, as `| head` does"),
    (Exit::Terminated, "cancelled by SIGTERM"),
];

/// Returns the table for the help.
pub(crate) fn table() -> String {
    TABLE.iter().fold(String::new(), |mut text, (exit, meaning)| {
        let _ = writeln!(text, "  {:>3}  {meaning}", *exit as u8);
        text
    })
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error that prevents a run or its result.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) exit: Exit,
    pub(crate) error: anyhow::Error,
    /// What to do next, in a line below the error.
    pub(crate) hint: Option<String>,
}

impl Fault {
    /// Creates a fault without a hint.
    pub(crate) fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self { exit, error: error.into(), hint: None }
    }
}

/// Returns an error with its causes, without those that the message before them ends with.
pub(crate) fn in_one_line(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        match text.is_empty() {
            true => text = cause,
            false if text.ends_with(&cause) => {}
            false => text.push_str(&format!(": {cause}")),
        }
    }
    text
}

/// Adds an exit code to an error.
pub(crate) trait OrExit<T> {
    fn or_exit(self, exit: Exit) -> Result<T, Fault>;
}

impl<T, E: Into<anyhow::Error>> OrExit<T> for Result<T, E> {
    fn or_exit(self, exit: Exit) -> Result<T, Fault> {
        self.map_err(|error| Fault::new(exit, error))
    }
}

/// Returns the exit code of a turn that was not cancelled by a signal; `None` is a dropped turn.
pub(crate) fn of_end(ended: Option<&RunView>, a_child_failed: bool) -> Exit {
    let Some((outcome, ended)) = ended.and_then(|ended| Some((ended.status.outcome()?, ended))) else {
        return Exit::Failed;
    };
    let is = |codes: &[&str]| ended.error.as_ref().is_some_and(|error| codes.contains(&&*error.code));
    match outcome {
        Outcome::Success if a_child_failed => Exit::ChildFailed,
        Outcome::Success => Exit::Reply,
        Outcome::MaxIterations => Exit::Limit,
        // `--timeout` is a limit.
        Outcome::Timeout => Exit::Limit,
        _ if is(&["budget", "limit"]) => Exit::Limit,
        _ if is(&REFUSALS) => Exit::Refused,
        _ => Exit::Failed,
    }
}

/// The refusals of providers: see
const REFUSALS: [&str; 4] = ["auth", "rate_limited", "quota_exceeded", "overloaded"];

/// An exit code, with its message.
pub(crate) fn with_message(exit: Exit, why: Option<String>, failed: &[String]) -> Result<Exit, Fault> {
    let error = match (exit, why) {
        (Exit::Reply, _) => return Ok(exit),
        (Exit::Limit, None) => {
            anyhow!("the limit of turns was reached; the reply may be incomplete")
        }
        (Exit::ChildFailed, _) => anyhow!("a child failed: {}", failed.join(", ")),
        (_, Some(why)) => anyhow!(why),
        (_, None) => anyhow!("the run ended without a reply"),
    };
    Err(Fault::new(exit, error))
}

#[cfg(test)]
mod tests;
