//! A command under its guard.

use std::{io, process::Stdio, time::Duration};

use mainstem_guard::{Confinement, GuardError, Limit, Report};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::unix::pipe::Receiver,
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use super::ShellOptions;
use crate::Workspace;

/// How long to wait for the end of all processes; a guard stops waiting earlier, and reports why.
const END_TIMEOUT: Duration = Duration::from_secs(15);

/// A running command. Dropping it kills it with all its processes.
#[derive(Debug)]
pub(crate) struct Guarded {
    pub(crate) guard: Child,
    /// Held open: the guard ends everything when it is closed.
    control: Option<ChildStdin>,
    reports: Lines<BufReader<ChildStdout>>,
    /// The reports so far.
    ending: Ending,
    pub(crate) confinement: Confinement,
}

/// How a command ended, with all its processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ending {
    /// The command's own status, if it ended before it was killed.
    pub(crate) status: Option<Status>,
    /// The limit that ended it.
    pub(crate) limit: Option<Limit>,
    /// What it created at protected paths: the path, and the path to which it was moved.
    pub(crate) set_aside: Vec<(String, String)>,
    /// Why some of its processes may still run.
    pub(crate) failure: Option<String>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Exited(i32),
    Killed(i32),
}

impl Ending {
    fn push(&mut self, report: Report) {
        match report {
            // The first is that of the command, a later one that of the inner process.
            Report::Exited(code) => _ = self.status.get_or_insert(Status::Exited(code)),
            Report::Killed(signal) => _ = self.status.get_or_insert(Status::Killed(signal)),
            Report::Reached(limit) => self.limit = Some(limit),
            Report::SetAside { path, to } => self.set_aside.push((path, to)),
            Report::Failed(why) => self.failure = Some(why),
            _ => {}
        }
    }
}

impl Guarded {
    /// Waits for the command and all its processes.
    ///
    /// # Cancel safety
    /// Cancel safe: a later call continues after the reports that were read.
    pub(crate) async fn wait(&mut self) -> io::Result<Ending> {
        while let Some(line) = self.reports.next_line().await? {
            Report::parse(line.as_bytes()).into_iter().for_each(|report| self.ending.push(report));
        }
        let status = self.guard.wait().await?;
        if self.ending == Ending::default() && !status.success() {
            self.ending.failure = Some(format!("the guard of the command ended early ({status})"));
        }
        Ok(self.ending.clone())
    }

    /// Ends every process, and waits for that.
    pub(crate) async fn end(&mut self) -> Ending {
        self.control = None;
        let ending =
            timeout(END_TIMEOUT, self.wait()).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        ending.unwrap_or_else(|error| Ending {
            failure: Some(format!("the end of its processes is not known: {error}")),
            ..self.ending.clone()
        })
    }

    /// Waits until the command is confined, or has failed to start.
    async fn started(&mut self) -> Result<Confinement, GuardError> {
        while let Some(line) = self.reports.next_line().await? {
            match Report::parse(line.as_bytes()) {
                Some(Report::Started(confinement)) => return Ok(confinement),
                Some(Report::Failed(why)) => return Err(GuardError::Failed(why)),
                _ => {}
            }
        }
        Err(GuardError::Silent)
    }
}

/// Starts a command; its output and its errors come through one pipe, in the order in which they
/// are written.
///
/// # Errors
/// If no guard is available, or the command can't be started.
pub(crate) async fn start(
    command: &str,
    workspace: &Workspace,
    options: &ShellOptions,
) -> Result<(Guarded, Receiver), GuardError> {
    let (reader, writer) = io::pipe()?;
    let reader = Receiver::from_owned_fd(reader.into())?;
    let mut guard = Command::from(options.guard()?.command());
    guard.current_dir(workspace.handle_path()).envs(options.environment(workspace.root()));
    guard.stderr(Stdio::from(writer));
    let mut guard = guard.spawn()?;
    let missing = || io::Error::other("a pipe is missing");
    let mut control = guard.stdin.take().ok_or_else(missing)?;
    let reports = BufReader::new(guard.stdout.take().ok_or_else(missing)?).lines();
    // A write error is ignored: if the guard has ended, its reports or their absence explain it
    // better.
    let (closed, is_read_only) = workspace.closed();
    let _ = control.write_all(options.job(command, closed, is_read_only).to_line()?.as_bytes()).await;
    let (ending, confinement) = (Ending::default(), Confinement::default());
    let mut guarded = Guarded { guard, control: Some(control), reports, ending, confinement };
    guarded.confinement = guarded.started().await?;
    Ok((guarded, reader))
}
