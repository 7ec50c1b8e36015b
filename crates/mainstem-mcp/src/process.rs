//! A server's process with all its descendants, which end together.

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

/// The variables of this process's environment that a server gets: paths and locale, no keys.
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
    // Programs on Windows need these.
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

/// The time between two ways of ending a process.
const GRACE: Duration = Duration::from_secs(1);

/// The number of bytes of a server's stderr that messages show.
const TAIL: usize = 1 << 10;

/// A running process. Dropping it kills it with all processes of its group; under a supervisor,
/// with all its descendants.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// `None` after it was killed: its number may belong to another process then.
    #[cfg(unix)]
    target: Option<KillTarget>,
}

/// How a server is ended with its descendants.
#[cfg(unix)]
#[derive(Clone, Copy, Debug)]
enum KillTarget {
    Group(Pid),
    /// The child is a supervisor, which is the server's parent.
    #[cfg(target_os = "linux")]
    Supervisor(mainstem_guard::Supervisor),
}

/// The server's end of its stdout and stdin.
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
    let (mut command, is_supervised) = command(program, args, dir, own_path)?;
    command.envs(passed).envs(env);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(dir) = dir {
        command.current_dir(dir);
    }
    // This process passes Ctrl-C on.
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn()?;
    let lost = || io::Error::other("a pipe is missing");
    let pipes = (child.stdout.take().ok_or_else(lost)?, child.stdin.take().ok_or_else(lost)?);
    let stderr = Stderr { pipe: child.stderr.take(), ..Stderr::default() };
    Ok((Process::new(child, is_supervised), pipes, stderr))
}

/// Returns the command of the program, under a supervisor if this process can be one.
#[cfg(target_os = "linux")]
fn command(
    program: &str,
    args: &[String],
    dir: Option<&Path>,
    path: Option<OsString>,
) -> io::Result<(Command, bool)> {
    let Some(itself) = mainstem_guard::Program::itself() else { return Ok((plain(program, args), false)) };
    ensure_runs(program, dir, path)?;
    Ok((itself.supervisor(program, args)?.into(), true))
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

/// Fails as a start of the program would: under a supervisor, that fails later and elsewhere.
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
    fn new(child: Child, is_supervised: bool) -> Self {
        let target = child.id().and_then(|id| KillTarget::new(id, is_supervised));
        Self { child, target }
    }

    #[cfg(not(unix))]
    fn new(child: Child, _: bool) -> Self {
        Self { child }
    }

    /// Waits until the process ends by itself.
    pub(crate) async fn exited(&mut self) {
        // Waiting fails only if the process has already been reaped.
        let _ = self.child.wait().await;
    }

    /// Waits for the end of a process whose stdin is closed; then terminates it, then kills it.
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

    /// Returns what can be signalled: not a supervisor that was waited for, whose number may belong
    /// to another process by now. A group has its number as long as one of its processes is left.
    #[cfg(unix)]
    fn kill_target(&self) -> Option<KillTarget> {
        let is_left = self.child.id().is_some();
        self.target.filter(|target| is_left || matches!(target, KillTarget::Group(_)))
    }

    #[cfg(unix)]
    fn terminate(&self) {
        self.kill_target().into_iter().for_each(KillTarget::terminate);
    }

    #[cfg(not(unix))]
    fn terminate(&self) {}

    /// Kills the process and its descendants at once. Without a supervisor, descendants in process
    /// groups of their own are not reached.
    #[cfg(unix)]
    fn kill(&mut self) {
        self.kill_target().into_iter().for_each(KillTarget::kill);
        self.target = None;
    }

    #[cfg(not(unix))]
    fn kill(&mut self) {
        let _ = self.child.start_kill();
    }
}

#[cfg(unix)]
impl KillTarget {
    #[cfg(target_os = "linux")]
    fn new(id: u32, is_supervised: bool) -> Option<Self> {
        if is_supervised {
            return mainstem_guard::Supervisor::new(id).map(Self::Supervisor);
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
            Self::Supervisor(supervisor) => supervisor.terminate(),
        }
    }

    fn kill(self) {
        match self {
            Self::Group(group) => drop(kill_process_group(group, Signal::KILL)),
            #[cfg(target_os = "linux")]
            Self::Supervisor(supervisor) => supervisor.kill(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A server's stderr. It has to be read, or the server would block on a full pipe.
#[derive(Debug, Default)]
pub(crate) struct Stderr {
    pipe: Option<ChildStderr>,
    /// The last bytes.
    tail: Vec<u8>,
    /// The bytes of an incomplete line.
    line: Vec<u8>,
}

impl Stderr {
    /// Reads without end, stores the last bytes, and logs each line without secrets.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
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
        // The log gets a line without end in parts.
        if self.line.len() > 4 * TAIL {
            self.line.clear();
        }
    }

    /// Returns the end of its stderr, once it has ended.
    pub(crate) async fn stderr_tail(&mut self, server: &str, calls: &Calls) -> String {
        // A process that it left behind may hold the pipe open.
        let _ = timeout(Duration::from_millis(100), self.drain(server, calls)).await;
        // Cut after the secrets are removed: a cut before could leave half of one.
        let words = calls.redact(&String::from_utf8_lossy(&self.tail));
        let words = words.trim();
        words[words.ceil_char_boundary(words.len().saturating_sub(TAIL))..].to_owned()
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests;
