//! A supervisor: the parent of a program that this process speaks to through its streams, such as
//! an MCP server. It ends the program with all its descendants when this process has ended; it
//! neither confines nor measures them.

use std::{
    env,
    ffi::OsStr,
    io::{self, Read, Write, stderr},
    os::{fd::OwnedFd, unix::net::UnixStream, unix::process::CommandExt},
    process::{Command, Stdio},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, WaitStatus, getppid, kill_process, kill_process_group, pidfd_open},
};
use serde::{Deserialize, Serialize};
use signal_hook::{
    consts::{SIGCHLD, SIGINT, SIGTERM},
    low_level::pipe,
};

use crate::{
    guard::{adopt_orphans, end_all, reap},
    program::{Program, ROLE, SUPERVISOR},
};

/// The variable with the order.
const ORDER: &str = "MAINSTEM_GUARD_ORDER";

/// How long a program may take to end by itself after this process has ended; its stdin is closed
/// then.
const GRACE: Duration = Duration::from_secs(2);

/// The command to start, and the process that it belongs to.
#[derive(Serialize, Deserialize)]
struct Order {
    parent: i32,
    command: Vec<String>,
}

impl Program {
    /// Returns a command that runs under a supervisor: when this process ends or is killed, the
    /// command and its descendants have 2 s to end, and are then killed.
    ///
    /// The environment is that of the returned command; its streams are those of the program. Use
    /// [`terminate`](Supervisor::terminate) and [`kill`](Supervisor::kill) on the started process,
    /// which must not be killed itself. A program that can't be started ends with status 127.
    ///
    /// # Errors
    /// If the command can't be written as JSON.
    pub fn supervisor(&self, program: &str, args: &[String]) -> io::Result<Command> {
        let command = [program].into_iter().map(str::to_owned).chain(args.iter().cloned()).collect();
        let order = Order { parent: rustix::process::getpid().as_raw_pid(), command };
        let mut supervisor = self.as_role(SUPERVISOR);
        supervisor.env(ORDER, serde_json::to_string(&order)?).process_group(0);
        Ok(supervisor)
    }
}

/// A running supervisor, by the number of its process.
#[derive(Clone, Copy, Debug)]
pub struct Supervisor(Pid);

impl Supervisor {
    /// Returns the supervisor with this number, which must not have been waited for.
    pub fn new(process: u32) -> Option<Self> {
        Pid::from_raw(process.cast_signed()).map(Self)
    }

    /// Asks the command to end.
    pub fn terminate(self) {
        // It fails if it has ended.
        let _ = kill_process(self.0, Signal::TERM);
    }

    /// Kills the command with all its descendants.
    pub fn kill(self) {
        let _ = kill_process(self.0, Signal::INT);
    }
}

/// Supervises one command; returns the exit code.
pub(crate) fn run() -> i32 {
    supervise().unwrap_or_else(|error| {
        // A stderr that is closed is ignored.
        let _ = writeln!(stderr(), "the command can't be started: {error}");
        127
    })
}

fn supervise() -> io::Result<i32> {
    let order: Order = serde_json::from_str(&env::var(ORDER).unwrap_or_default())?;
    adopt_orphans()?;
    let Some(parent) = Pid::from_raw(order.parent) else { return Ok(1) };
    let ended = pidfd_open(parent, PidfdFlags::empty())?;
    // If the parent has ended before, its number may belong to another process by now.
    if getppid() != Some(parent) {
        return Ok(1);
    }
    let signals = Signals { terminate: signal(SIGTERM)?, kill: signal(SIGINT)?, child: signal(SIGCHLD)? };
    let child = start(&order.command)?;
    let status = wait(child, &ended, signals)?;
    end_all(child)?;
    Ok(status.map_or(128 + Signal::KILL.as_raw(), code))
}

/// The pipes of signals, which are readable when a signal has arrived.
struct Signals {
    terminate: UnixStream,
    kill: UnixStream,
    /// A child has ended: the command, or an orphan.
    child: UnixStream,
}

fn signal(number: i32) -> io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    reader.set_nonblocking(true)?;
    pipe::register(number, writer)?;
    Ok(reader)
}

fn start(command: &[String]) -> io::Result<Pid> {
    let (program, args) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let is_ours = |name: &OsStr| name == ROLE || name == ORDER;
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(env::vars_os().filter(|(name, _)| !is_ours(name)));
    command.stdin(Stdio::inherit()).process_group(0);
    let child = command.spawn()?;
    // Only the command has the streams.
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Pid::from_raw(child.id().cast_signed()).ok_or_else(|| io::Error::other("a process has no number"))
}

/// Waits for the end of the command, of the parent, or for the signal to kill.
fn wait(child: Pid, parent: &OwnedFd, mut signals: Signals) -> io::Result<Option<WaitStatus>> {
    let exit = pidfd_open(child, PidfdFlags::empty())?;
    loop {
        let mut fds = [
            PollFd::new(&exit, PollFlags::IN),
            PollFd::new(parent, PollFlags::IN),
            PollFd::new(&signals.kill, PollFlags::IN),
            PollFd::new(&signals.terminate, PollFlags::IN),
            PollFd::new(&signals.child, PollFlags::IN),
        ];
        wait_for(&mut fds, None)?;
        let is_ready: Vec<_> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        if is_ready[0] {
            return Ok(reap(child)?.1);
        }
        if is_ready[1] {
            wait_for(&mut [PollFd::new(&exit, PollFlags::IN)], Some(GRACE))?;
            return Ok(None);
        }
        if is_ready[2] {
            return Ok(None);
        }
        // Drains the signal's pipe.
        if is_ready[3] {
            let _ = signals.terminate.read(&mut [0; 64]);
            let _ = kill_process_group(child, Signal::TERM);
        }
        if is_ready[4] {
            let _ = signals.child.read(&mut [0; 64]);
        }
        // An orphan that has ended.
        if let Some(status) = reap(child)?.1 {
            return Ok(Some(status));
        }
    }
}

fn wait_for(fds: &mut [PollFd<'_>], time: Option<Duration>) -> io::Result<()> {
    let time = time.and_then(|time| Timespec::try_from(time).ok());
    match poll(fds, time.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the exit code that a shell would return: 128 + the signal for a killed process.
fn code(status: WaitStatus) -> i32 {
    let signal = status.terminating_signal().map(|signal| 128 + signal);
    signal.or_else(|| status.exit_status()).unwrap_or(1)
}

#[cfg(test)]
mod tests;
