//! A server's process and everything it starts, as one thing that can be ended.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    ffi::OsString,
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

/// What a server may know of this process's environment: where things are and how people read, no
/// keys.
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

/// A process that runs. Dropped, it is killed with all processes of its group; under a keeper, with
/// all that it has started.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Until it was killed; its number may be another's then.
    #[cfg(unix)]
    hold: Option<Hold>,
}

/// What ends a server with what it has started.
#[cfg(unix)]
#[derive(Clone, Copy, Debug)]
enum Hold {
    Group(Pid),
    /// The child is a keeper, which is the server's parent.
    #[cfg(target_os = "linux")]
    Keeper(mainstem_guard::Keeper),
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
    let own_path = env.get("PATH").map(OsString::from);
    let (mut command, is_kept) = command(program, args, dir, own_path)?;
    command.envs(passed).envs(env);
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
    Ok((Process::new(child, is_kept), pipes, stderr))
}

/// The program, under a keeper if this one can be one.
#[cfg(target_os = "linux")]
fn command(
    program: &str,
    args: &[String],
    dir: Option<&Path>,
    path: Option<OsString>,
) -> io::Result<(Command, bool)> {
    let Some(itself) = mainstem_guard::Program::itself() else { return Ok((plain(program, args), false)) };
    ensure_runs(program, dir, path)?;
    Ok((itself.keeper(program, args)?.into(), true))
}

#[cfg(not(target_os = "linux"))]
fn command(
    program: &str,
    args: &[String],
    _: Option<&Path>,
    _: Option<OsString>,
) -> io::Result<(Command, bool)> {
    Ok((plain(program, args), false))
}

fn plain(program: &str, args: &[String]) -> Command {
    let mut command = Command::new(program);
    command.args(args).env_clear().kill_on_drop(true);
    command
}

/// Fails as a start of the program would: under a keeper, that fails later and elsewhere.
#[cfg(target_os = "linux")]
fn ensure_runs(program: &str, dir: Option<&Path>, path: Option<OsString>) -> io::Result<()> {
    use rustix::fs::{Access, access};
    if program.contains('/') {
        return Ok(access(dir.unwrap_or_else(|| Path::new("")).join(program), Access::EXEC_OK)?);
    }
    let path = path.or_else(|| std::env::var_os("PATH")).unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut files = std::env::split_paths(&path).map(|dir| dir.join(program));
    let is_there = files.any(|file| file.is_file() && access(file, Access::EXEC_OK).is_ok());
    if is_there { Ok(()) } else { Err(rustix::io::Errno::NOENT.into()) }
}

impl Process {
    #[cfg(unix)]
    fn new(child: Child, is_kept: bool) -> Self {
        let hold = child.id().and_then(|id| Hold::new(id, is_kept));
        Self { child, hold }
    }

    #[cfg(not(unix))]
    fn new(child: Child, _: bool) -> Self {
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

    /// What can be signalled: no keeper that was waited for, whose number may be another's by now.
    /// A group has its number as long as one of it is left.
    #[cfg(unix)]
    fn held(&self) -> Option<Hold> {
        let is_left = self.child.id().is_some();
        self.hold.filter(|hold| is_left || matches!(hold, Hold::Group(_)))
    }

    #[cfg(unix)]
    fn terminate(&self) {
        self.held().into_iter().for_each(Hold::terminate);
    }

    #[cfg(not(unix))]
    fn terminate(&self) {}

    /// Kills the process and its descendants at once. Without a keeper, descendants in process
    /// groups of their own are not reached.
    #[cfg(unix)]
    fn kill(&mut self) {
        self.held().into_iter().for_each(Hold::kill);
        self.hold = None;
    }

    #[cfg(not(unix))]
    fn kill(&mut self) {
        let _ = self.child.start_kill();
    }
}

#[cfg(unix)]
impl Hold {
    #[cfg(target_os = "linux")]
    fn new(id: u32, is_kept: bool) -> Option<Self> {
        if is_kept {
            return mainstem_guard::Keeper::new(id).map(Self::Keeper);
        }
        Pid::from_raw(id.cast_signed()).map(Self::Group)
    }

    #[cfg(not(target_os = "linux"))]
    fn new(id: u32, _: bool) -> Option<Self> {
        Pid::from_raw(id.cast_signed()).map(Self::Group)
    }

    fn terminate(self) {
        match self {
            // It fails if all of them have ended.
            Self::Group(group) => drop(kill_process_group(group, Signal::TERM)),
            #[cfg(target_os = "linux")]
            Self::Keeper(keeper) => keeper.terminate(),
        }
    }

    fn kill(self) {
        match self {
            Self::Group(group) => drop(kill_process_group(group, Signal::KILL)),
            #[cfg(target_os = "linux")]
            Self::Keeper(keeper) => keeper.kill(),
        }
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

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests;
