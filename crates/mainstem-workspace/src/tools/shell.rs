//! `shell`: a command in the workspace.

use std::{fmt, io, os::unix::process::ExitStatusExt, process::ExitStatus, sync::Arc, time::Duration};

use mainstem_tool::{RunContext, Tool, ToolError, ToolOutput, ToolState, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::{io::AsyncReadExt, net::unix::pipe::Receiver, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    Workspaces,
    shell::{self, Group, Output, ShellOptions},
};

/// Seconds, unless the model says otherwise.
const TIMEOUT: u64 = 120;

/// Most seconds.
const LONGEST: u64 = 600;

/// How long output is awaited when the command has ended but somebody keeps its pipe open.
const LINGER: Duration = Duration::from_millis(100);

/// How much is read at once.
const BLOCK: usize = 8 << 10;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Shell {
    /// The command, for sh -c.
    command: String,
    /// After how many seconds it is ended. Default 120, maximum 600.
    #[serde(default)]
    #[schemars(range(min = 1))]
    timeout_seconds: Option<u64>,
}

pub(crate) fn tool(workspaces: &Workspaces, options: ShellOptions) -> Arc<dyn Tool> {
    let description = "Run a command with sh in the workspace's directory. It has no input. It can write in the workspace and in /tmp \
                       only. When it ends, the processes that it left in the background are ended too. Long output is shown with its \
                       beginning and its end; send it to a file to read all of it.";
    let (workspaces, options) = (workspaces.clone(), Arc::new(options));
    Arc::new(tool_fn("shell", description, move |cx, shell: Shell| {
        let (workspaces, options) = (workspaces.clone(), options.clone());
        async move { shell.run(&cx, &workspaces, &options).await }
    }))
}

impl Shell {
    async fn run(
        self,
        cx: &RunContext,
        workspaces: &Workspaces,
        options: &ShellOptions,
    ) -> Result<ToolOutput, ToolError> {
        let workspace = workspaces.work(cx, |workspace, _| Ok(workspace.clone())).await?;
        let (group, pipe, confinement) = shell::start(&self.command, workspace.root(), options)
            .await
            .map_err(|error| ToolError::new(format!("the command can't be started: {error}")))?;
        let timeout = self.timeout_seconds.unwrap_or(TIMEOUT).clamp(1, LONGEST);
        let mut running = Running { group, pipe, output: Output::default() };
        let end = tokio::select! {
            biased;
            () = cx.cancelled() => End::Cancelled,
            () = sleep(Duration::from_secs(timeout)) => End::TimedOut(timeout),
            end = running.follow(cx) => end?,
        };
        let mut text = running.finish();
        let notes = [confinement.note(), self.clamped()].into_iter().flatten().map(str::to_owned);
        for note in notes.chain([end.to_string()]) {
            text.push_str(&format!("[{note}]\n"));
        }
        text.truncate(text.trim_end_matches('\n').len());
        Ok(ToolOutput::from(text).with_state(end.state()))
    }

    fn clamped(&self) -> Option<&'static str> {
        (self.timeout_seconds? > LONGEST).then_some("timeout_seconds is at most 600")
    }
}

/// A command and what it has printed.
struct Running {
    group: Group,
    pipe: Receiver,
    output: Output,
}

impl Running {
    /// Shows what comes until the command has ended.
    async fn follow(&mut self, cx: &RunContext) -> io::Result<End> {
        let exited = CancellationToken::new();
        let Self { group, pipe, output } = self;
        let wait = async {
            let status = group.wait().await;
            exited.cancel();
            status
        };
        let (status, is_closed) = tokio::join!(wait, pump(cx, pipe, output, &exited));
        Ok(End::Exited { status: status?, is_closed: is_closed? })
    }

    /// Ends it, and gives what was not shown yet.
    fn finish(mut self) -> String {
        self.group.kill();
        let mut text = String::new();
        let mut block = [0; BLOCK];
        // What was printed before the end is still in the pipe; more than a pipe holds is not read, for somebody may go on writing. The
        // pipe itself is asked, which never waits: tokio only knows what was there when it looked last.
        for _ in 0..(1 << 20) / BLOCK {
            match rustix::io::read(&self.pipe, &mut block) {
                Ok(length @ 1..) => text.extend(self.output.push(&block[..length])),
                _ => break,
            }
        }
        text + &self.output.finish()
    }
}

/// Reads until the pipe is closed, or the command has ended and nothing more comes: then `false`.
async fn pump(
    cx: &RunContext,
    pipe: &mut Receiver,
    output: &mut Output,
    exited: &CancellationToken,
) -> io::Result<bool> {
    let mut block = vec![0; BLOCK];
    loop {
        let lingered = async {
            exited.cancelled().await;
            sleep(LINGER).await;
        };
        let length = tokio::select! {
            biased;
            length = pipe.read(&mut block) => length?,
            () = lingered => return Ok(false),
        };
        if length == 0 {
            return Ok(true);
        }
        if let Some(text) = output.push(&block[..length]) {
            cx.progress(text).await;
        }
    }
}

/// How it ended.
#[derive(Debug)]
enum End {
    Exited {
        status: ExitStatus,
        /// Whether nobody can write to its output any more.
        is_closed: bool,
    },
    TimedOut(u64),
    Cancelled,
}

impl End {
    fn state(&self) -> ToolState {
        match self {
            Self::Exited { status, .. } if status.success() => ToolState::Success,
            Self::Exited { .. } | Self::TimedOut(_) => ToolState::Error,
            Self::Cancelled => ToolState::Interrupted,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (status, is_closed) = match self {
            Self::TimedOut(seconds) => {
                return write!(f, "timed out after {seconds} s; all its processes were ended");
            }
            Self::Cancelled => return f.write_str("interrupted; all its processes were ended"),
            Self::Exited { status, is_closed } => (status, is_closed),
        };
        if !is_closed {
            f.write_str("a process that left the command's group may still run; ")?;
        }
        match (status.code(), status.signal()) {
            (Some(code), _) => write!(f, "exit status {code}"),
            (None, Some(signal)) => write!(f, "killed by signal {signal}"),
            (None, None) => f.write_str("ended without a status"),
        }
    }
}

#[cfg(test)]
mod tests;
