//! A server's process and everything it starts, as one thing that can be ended.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    future::pending,
    io,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::AsyncReadExt,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    time::timeout,
};

/// What a server may know of this process's environment: where things are and how people read, no keys.
const PASSED: &[&str] = &[
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    // Without these, nothing runs on Windows.
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
];

/// How long each way of ending a process has before the next.
const GRACE: Duration = Duration::from_secs(1);

/// How much of what a server writes to stderr is kept for messages, in bytes.
const TAIL: usize = 1 << 10;

/// A process that runs. Dropped, it is killed with all processes of its group.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Until the group was killed; its number may belong to somebody else then.
    #[cfg(unix)]
    group: Option<Pid>,
}

/// The two ends that a server is spoken to through.
pub(crate) type Pipes = (ChildStdout, ChildStdin);

/// Starts a program.
pub(crate) fn start(
    program: &str,
    args: &[String],
    env: &BTreeMap<String, String>,
    dir: Option<&Path>,
) -> io::Result<(Process, Pipes, Stderr)> {
    let passed = PASSED.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(passed).envs(env).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(dir) = dir {
        command.current_dir(dir);
    }
    // A Ctrl-C is this process's to pass on.
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn()?;
    let lost = || io::Error::other("a pipe is missing");
    let pipes = (child.stdout.take().ok_or_else(lost)?, child.stdin.take().ok_or_else(lost)?);
    let stderr = Stderr { pipe: child.stderr.take(), tail: Vec::new() };
    Ok((Process::new(child), pipes, stderr))
}

impl Process {
    #[cfg(unix)]
    fn new(child: Child) -> Self {
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Self { child, group }
    }

    #[cfg(not(unix))]
    fn new(child: Child) -> Self {
        Self { child }
    }

    /// Waits for the end of a process whose stdin is closed, asks it to end, and makes it.
    pub(crate) async fn end(mut self) -> Option<ExitStatus> {
        let mut status = timeout(GRACE, self.child.wait()).await;
        if status.is_err() {
            self.terminate();
            status = timeout(GRACE, self.child.wait()).await;
        }
        self.kill();
        match status {
            Ok(status) => status.ok(),
            Err(_) => self.child.wait().await.ok(),
        }
    }

    #[cfg(unix)]
    fn terminate(&self) {
        if let Some(group) = self.group {
            // It fails where nobody is left.
            let _ = kill_process_group(group, Signal::TERM);
        }
    }

    #[cfg(not(unix))]
    fn terminate(&self) {}

    /// Ends every process of the group, at once. One that made itself a group of its own is not reached.
    #[cfg(unix)]
    fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    #[cfg(not(unix))]
    fn kill(&mut self) {
        let _ = self.child.start_kill();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a server writes for people. It has to be read, or the server would wait for that one day.
#[derive(Debug, Default)]
pub(crate) struct Stderr {
    pipe: Option<ChildStderr>,
    tail: Vec<u8>,
}

impl Stderr {
    /// Reads for ever, and keeps the end.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn drain(&mut self, server: &str) -> Infallible {
        let mut buffer = [0; 4 << 10];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut buffer).await {
                Ok(count @ 1..) => {
                    tracing::debug!(server, "{}", String::from_utf8_lossy(&buffer[..count]).trim_end());
                    self.tail.extend_from_slice(&buffer[..count]);
                    self.tail.drain(..self.tail.len().saturating_sub(TAIL));
                }
                Ok(0) | Err(_) => self.pipe = None,
            }
        }
        pending().await
    }

    /// What it said last, once it has ended.
    pub(crate) async fn last_words(&mut self, server: &str) -> String {
        // Something it left behind may hold the pipe open.
        let _ = timeout(Duration::from_millis(100), self.drain(server)).await;
        String::from_utf8_lossy(&self.tail).trim().to_owned()
    }
}
