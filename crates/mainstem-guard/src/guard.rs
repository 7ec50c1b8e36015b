//! The guard: it runs outside of the command's confinement, measures the command, waits for its
//! end, and ends all its processes.

use std::{
    io::{self, Write, stderr, stdin, stdout},
    os::fd::AsFd,
    process::ChildStdin,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    io::Errno,
    process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait},
};

use crate::{
    Job, Limit, Report,
    limits::Limits,
    program::{INNER, Program},
    tree,
};

/// How often the processes are measured.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// How long killed processes may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a command ends.
enum End {
    /// The program closed its end of the pipe, or was killed.
    Hangup,
    /// The inner process has ended.
    Inner(WaitStatus),
    Reached(Limit),
}

/// Guards one command; returns the exit code.
pub(crate) fn run() -> i32 {
    match guard() {
        Ok(()) => 0,
        Err(error) => {
            report(&Report::Failed(error.to_string()));
            1
        }
    }
}

/// Sends a report to the program. A write error is ignored: it means a hangup, which the guard
/// detects on its stdin.
pub(crate) fn report(report: &Report) {
    if let Ok(line) = serde_json::to_string(report) {
        let mut stdout = stdout().lock();
        // On its own line, after partial output.
        let _ = writeln!(stdout, "\n{line}").and_then(|()| stdout.flush());
    }
}

fn guard() -> io::Result<()> {
    let mut line = String::new();
    if stdin().read_line(&mut line)? == 0 {
        return Ok(());
    }
    let mut job: Job = serde_json::from_str(&line)?;
    adopt_orphans()?;
    let closed = Paths::find(&mut job)?;
    job.is_namespaced = job.is_namespaced && make_namespaces(&job);
    let (inner, _stdin) = start_inner(&job)?;
    let end = until_end(inner, &job.limits);
    let ended = end_all(inner);
    closed.set_aside(&job)?;
    ended?;
    match end? {
        End::Hangup => {}
        // The inner process reports an exit of the command itself; this counts if it could not.
        End::Inner(status) => {
            status.terminating_signal().into_iter().for_each(|signal| report(&Report::Killed(signal)))
        }
        End::Reached(limit) => report(&Report::Reached(limit)),
    }
    Ok(())
}

/// The closed paths that existed before the command.
#[cfg(target_os = "linux")]
struct Paths(crate::closed::Found);

#[cfg(target_os = "linux")]
impl Paths {
    fn find(job: &mut Job) -> io::Result<Self> {
        let found = crate::closed::find(&job.rules.closed)?;
        // Outside paths are out of the command's reach, and the working directory can't be mounted
        // on itself while the command is in it.
        let is_inside = |path: &&std::path::PathBuf| path.is_relative() && **path != *"";
        job.read_only = found.values().flatten().filter(is_inside).cloned().collect();
        Ok(Self(found))
    }

    /// Moves away what the command has created at closed paths, and reports it.
    fn set_aside(&self, job: &Job) -> io::Result<()> {
        for (path, to) in crate::closed::set_aside(&job.rules.closed, &self.0)? {
            report(&Report::SetAside { path: path.display().to_string(), to: to.display().to_string() });
        }
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
struct Paths;

#[cfg(not(target_os = "linux"))]
impl Paths {
    fn find(_: &mut Job) -> io::Result<Self> {
        Ok(Self)
    }

    fn set_aside(&self, _: &Job) -> io::Result<()> {
        Ok(())
    }
}

/// Makes this process the parent of every descendant whose parent ends.
#[cfg(target_os = "linux")]
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

#[cfg(not(target_os = "linux"))]
fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

#[cfg(target_os = "linux")]
fn make_namespaces(job: &Job) -> bool {
    crate::namespace::unshare(job.network)
}

#[cfg(not(target_os = "linux"))]
fn make_namespaces(_: &Job) -> bool {
    false
}

/// Returns the inner process and its stdin, which must stay open: when it is closed, the inner
/// process takes the guard for dead.
fn start_inner(job: &Job) -> io::Result<(Pid, ChildStdin)> {
    let mut command = Program::again(INNER);
    command.stdout(stdout().as_fd().try_clone_to_owned()?);
    command.stderr(stderr().as_fd().try_clone_to_owned()?);
    let mut inner = command.spawn()?;
    let mut pipe = inner.stdin.take().ok_or_else(|| io::Error::other("a pipe is missing"))?;
    // A write error is ignored: the exit status is reported below.
    let _ = writeln!(pipe, "{}", serde_json::to_string(job)?);
    close_stderr()?;
    let pid = Pid::from_raw(inner.id().cast_signed());
    Ok((pid.ok_or_else(|| io::Error::other("a process has no number"))?, pipe))
}

/// Closes stderr: the command's output ends with the command only if no other process holds it.
pub(crate) fn close_stderr() -> io::Result<()> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    Ok(rustix::stdio::dup2_stderr(null)?)
}

fn until_end(inner: Pid, limits: &Limits) -> io::Result<End> {
    let (stdin, exit) = (stdin(), exit_of(inner));
    loop {
        let mut fds = vec![PollFd::new(&stdin, PollFlags::IN)];
        fds.extend(exit.as_ref().map(|exit| PollFd::new(exit, PollFlags::IN)));
        match poll(&mut fds, Some(&TICK)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // The job was the last message, so this is the end of the pipe.
        if !fds[0].revents().is_empty() {
            return Ok(End::Hangup);
        }
        if let Some(status) = reap(inner)?.1 {
            return Ok(End::Inner(status));
        }
        let mut usage = tree::usage(inner);
        if limits.reached(&usage) == Some(Limit::Memory) {
            // Forked processes share pages, which would count for each of them.
            usage.memory = tree::memory(inner);
        }
        if let Some(limit) = limits.reached(&usage) {
            return Ok(End::Reached(limit));
        }
    }
}

/// Returns a pidfd, which is readable when the process has ended; `None` falls back to polling at
/// each tick.
#[cfg(target_os = "linux")]
fn exit_of(process: Pid) -> Option<std::os::fd::OwnedFd> {
    rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn exit_of(_: Pid) -> Option<std::os::fd::OwnedFd> {
    None
}

/// Reaps the children that have ended; returns whether others are left, and the status of the inner
/// process if it has ended.
pub(crate) fn reap(inner: Pid) -> io::Result<(bool, Option<WaitStatus>)> {
    let mut end = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == inner => end = Some(status),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Ok((true, end)),
            Err(Errno::CHILD) => return Ok((false, end)),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Kills until this process has no children; orphans are reparented to it.
pub(crate) fn end_all(inner: Pid) -> io::Result<()> {
    let since = Instant::now();
    while since.elapsed() < END_TIMEOUT {
        for group in tree::groups(inner) {
            // It fails if the group has ended meanwhile.
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        let _ = kill_process(inner, Signal::KILL);
        if !reap(inner)?.0 {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(2));
    }
    Err(io::Error::other("some processes of the command do not end, although they were killed"))
}
