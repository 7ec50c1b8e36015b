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

use crate::call::Calls;

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

/// How much of what a server wrote to stderr is said in messages, in bytes.
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
    let stderr = Stderr { pipe: child.stderr.take(), ..Stderr::default() };
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

    /// Waits for the process's own end.
    pub(crate) async fn exited(&mut self) {
        // Whatever goes wrong here, there is nothing to wait for.
        let _ = self.child.wait().await;
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
    /// The end of it, as it came.
    tail: Vec<u8>,
    /// What is in no whole line yet.
    line: Vec<u8>,
}

impl Stderr {
    /// Reads for ever, keeps the end, and logs each line without secrets.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn drain(&mut self, server: &str, calls: &Calls) -> Infallible {
        let mut buffer = [0; 4 << 10];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut buffer).await {
                Ok(count @ 1..) => self.take(&buffer[..count], server, calls),
                Ok(0) | Err(_) => self.pipe = None,
            }
        }
        pending().await
    }

    fn take(&mut self, bytes: &[u8], server: &str, calls: &Calls) {
        self.tail.extend_from_slice(bytes);
        self.tail.drain(..self.tail.len().saturating_sub(4 * TAIL));
        self.line.extend_from_slice(bytes);
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            tracing::debug!(server, "{}", calls.redact(String::from_utf8_lossy(&line).trim_end()));
        }
        // A line without end is nothing for a log.
        if self.line.len() > 4 * TAIL {
            self.line.clear();
        }
    }

    /// What it said last, once it has ended.
    pub(crate) async fn last_words(&mut self, server: &str, calls: &Calls) -> String {
        // Something it left behind may hold the pipe open.
        let _ = timeout(Duration::from_millis(100), self.drain(server, calls)).await;
        // Cut after the secrets are out, or half of one might be left.
        let words = calls.redact(&String::from_utf8_lossy(&self.tail));
        let words = words.trim();
        words[words.ceil_char_boundary(words.len().saturating_sub(TAIL))..].to_owned()
    }
}
