//! `shell`: runs a command in the workspace.

use std::{fmt, io, sync::Arc, time::Duration};

use mainstem_guard::{Limit, Limits, Network};
use mainstem_tool::{Tool, ToolContext, ToolError, ToolOutput, ToolState, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::{io::AsyncReadExt, net::unix::pipe::Receiver, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    Workspace, Workspaces,
    shell::{self, Ending, Guarded, Output, ShellOptions, Status},
};

/// The default timeout, in seconds.
const DEFAULT_TIMEOUT_SECS: u64 = 120;

/// The maximum timeout, in seconds.
const MAX_TIMEOUT_SECS: u64 = 600;

/// How long to wait for output after the command ended, if another process holds the pipe.
const LINGER: Duration = Duration::from_millis(100);

/// The size of the read buffer, in bytes.
const BLOCK: usize = 8 << 10;

/// The most that a pipe holds, in bytes.
const MAX_PIPE_BYTES: usize = 1 << 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Shell {
    /// The command, for sh -c.
    command: String,
    /// Timeout in seconds. Default 120, maximum 600.
    #[serde(default)]
    #[schemars(range(min = 1))]
    timeout_seconds: Option<u64>,
}

pub(crate) fn tool(workspaces: &Workspaces, options: ShellOptions) -> Arc<dyn Tool> {
    let description = "Run a command with sh in the workspace's directory. It has no input. It can write in the workspace and in /tmp \
                       only; `.git` and files that configure agents are read-only, unless the user allows it. When it ends, its background processes are killed. Long output is \
                       truncated in the middle; redirect it to a file to read all of it.";
    let network = if options.network() == Network::Off { " It has no network." } else { "" };
    let description = format!("{description}{network} Limits: {}.", options.limits());
    let (workspaces, options) = (workspaces.clone(), Arc::new(options));
    Arc::new(tool_fn("shell", &description, move |cx, shell: Shell| {
        let (workspaces, options) = (workspaces.clone(), options.clone());
        async move { shell.run(&cx, &workspaces, &options).await }
    }))
}

impl Shell {
    async fn run(
        self,
        cx: &ToolContext,
        workspaces: &Workspaces,
        options: &ShellOptions,
    ) -> Result<ToolOutput, ToolError> {
        let workspace = workspaces.work(cx, |workspace, _| Ok(workspace.clone())).await?;
        let started = shell::start(&self.command, &workspace, options);
        let (guarded, pipe) = tokio::select! {
            biased;
            () = cx.cancelled() => return Err(ToolError::new("interrupted before the command was started")),
            started = started => started.map_err(|error| ToolError::new(format!("the command can't be started: {error}")))?,
        };
        let timeout = self.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECS).clamp(1, MAX_TIMEOUT_SECS);
        let mut running = Running { guarded, pipe, output: Output::default() };
        let interruption = tokio::select! {
            biased;
            () = cx.cancelled() => Some(Interruption::Cancelled),
            () = sleep(Duration::from_secs(timeout)) => Some(Interruption::TimedOut(timeout)),
            ended = running.follow(cx) => ended.map(|()| None)?,
        };
        let confinement = running.guarded.confinement;
        let (mut text, ending) = running.finish().await;
        let summary = Summary { interruption, ending, limits: options.limits() };
        // What a cancelled command has written is stored with the next call.
        let stored = match interruption {
            Some(Interruption::Cancelled) => Ok(()),
            _ => workspaces.store_changes(cx).await,
        };
        let notes = [confinement.files.note(), self.timeout_note()].into_iter().flatten().map(str::to_owned);
        let unstored = stored.as_ref().err().map(ToString::to_string);
        let notes = notes.chain(summary.moved_notes(&workspace)).chain(unstored);
        for note in notes.chain([summary.to_string()]) {
            text.push_str(&format!("[{note}]\n"));
        }
        text.truncate(text.trim_end_matches('\n').len());
        let state = if stored.is_ok() { summary.state() } else { ToolState::Error };
        Ok(ToolOutput::from(text).with_state(state))
    }

    fn timeout_note(&self) -> Option<&'static str> {
        (self.timeout_seconds? > MAX_TIMEOUT_SECS).then_some("timeout_seconds is at most 600")
    }
}

/// A running command and its output.
struct Running {
    guarded: Guarded,
    pipe: Receiver,
    output: Output,
}

impl Running {
    /// Streams the output until the command has ended.
    async fn follow(&mut self, cx: &ToolContext) -> io::Result<()> {
        let ended = CancellationToken::new();
        let Self { guarded, pipe, output } = self;
        let wait = async {
            let ending = guarded.wait().await;
            ended.cancel();
            ending
        };
        let (ending, shown) = tokio::join!(wait, pump(cx, pipe, output, &ended));
        ending.and(shown)
    }

    /// Ends the command; returns the rest of the output, and how the command ended.
    async fn finish(mut self) -> (String, Ending) {
        let ending = self.guarded.end().await;
        let mut text = String::new();
        let mut block = [0; BLOCK];
        // Output printed before the end may still be in the pipe: read it without waiting,
        // bypassing tokio's readiness, and at most as much as a pipe holds.
        for _ in 0..MAX_PIPE_BYTES / BLOCK {
            match rustix::io::read(&self.pipe, &mut block) {
                Ok(length @ 1..) => text.extend(self.output.push(&block[..length])),
                _ => break,
            }
        }
        (text + &self.output.finish(), ending)
    }
}

/// Reads until the pipe is closed, or all processes have ended and the pipe is empty.
async fn pump(
    cx: &ToolContext,
    pipe: &mut Receiver,
    output: &mut Output,
    ended: &CancellationToken,
) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    loop {
        let lingered = async {
            ended.cancelled().await;
            sleep(LINGER).await;
        };
        let length = tokio::select! {
            biased;
            length = pipe.read(&mut block) => length?,
            () = lingered => return Ok(()),
        };
        if length == 0 {
            return Ok(());
        }
        if let Some(text) = output.push(&block[..length]) {
            cx.progress(text).await;
        }
    }
}

/// Why a command was ended before its end.
#[derive(Clone, Copy, Debug)]
enum Interruption {
    TimedOut(u64),
    Cancelled,
}

/// How a command ended, as the model gets it.
#[derive(Debug)]
struct Summary<'a> {
    interruption: Option<Interruption>,
    ending: Ending,
    limits: &'a Limits,
}

impl Summary<'_> {
    fn state(&self) -> ToolState {
        match (self.interruption, &self.ending) {
            (Some(Interruption::Cancelled), _) => ToolState::Interrupted,
            (None, Ending { status: Some(Status::Exited(0)), limit: None, failure: None, .. }) => {
                ToolState::Success
            }
            _ => ToolState::Error,
        }
    }

    /// Returns notes on files that it created at protected paths, and that were moved.
    fn moved_notes(&self, workspace: &Workspace) -> impl Iterator<Item = String> {
        self.ending.set_aside.iter().map(|(path, to)| {
            let rule = format!("shell(path: {}/**)", workspace.named(path).display());
            format!("{path:?} is protected; what the command made there was moved to {to:?}; the user can allow {rule:?}")
        })
    }

    /// Returns the limit that ended the command, enforced by the guard or by the kernel.
    fn limit(&self) -> Option<Limit> {
        let of_status = || match self.ending.status? {
            Status::Killed(signal) => Limit::of_signal(signal),
            // A shell exits with 128 + the signal that ended its last command.
            Status::Exited(code) => Limit::of_signal(code - 128),
        };
        self.ending.limit.or_else(of_status)
    }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.interruption, self.ending.limit, self.ending.status) {
            (Some(Interruption::TimedOut(seconds)), ..) => write!(f, "timed out after {seconds} s")?,
            (Some(Interruption::Cancelled), ..) => f.write_str("interrupted")?,
            (None, Some(limit), _) => f.write_str(&self.limits.message(limit))?,
            (None, None, Some(Status::Exited(code))) => write!(f, "exit status {code}")?,
            (None, None, Some(Status::Killed(signal))) => write!(f, "killed by signal {signal}")?,
            (None, None, None) => f.write_str("ended without a status")?,
        }
        if let (None, None, Some(limit)) = (self.interruption, self.ending.limit, self.limit()) {
            write!(f, ": {}", self.limits.message(limit))?;
        }
        match &self.ending.failure {
            Some(why) => write!(f, "; {why}"),
            None if self.interruption.is_some() || self.ending.limit.is_some() => {
                f.write_str("; all its processes were killed")
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
