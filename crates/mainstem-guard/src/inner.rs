//! The inner process, between the guard and the command: it confines itself, starts the command,
//! and waits for its end.
//!
//! In a process namespace it is the first process. When that ends, the kernel kills all others of
//! the namespace; and it ends with the guard.

use std::{
    env,
    io::{self, stderr, stdin},
    os::{fd::AsFd, unix::process::CommandExt},
    process::{Child, Command, Stdio},
};

use rustix::{
    io::Errno,
    process::{Resource, Rlimit, WaitOptions, setrlimit, setsid, wait},
};

use crate::{
    Confinement, Job, Report,
    guard::{close_stderr, report},
    limits::Limits,
    program::ROLE,
};

/// Runs one command; returns the exit code.
pub(crate) fn run() -> i32 {
    match work() {
        Ok(()) => 0,
        Err(error) => {
            report(&Report::Failed(error.to_string()));
            1
        }
    }
}

fn work() -> io::Result<()> {
    let mut line = String::new();
    stdin().read_line(&mut line)?;
    let job: Job = serde_json::from_str(&line)?;
    end_with_guard()?;
    setsid()?;
    limit(&job.limits)?;
    let confinement = confine(&job)?;
    // Before the command starts: one that reaches a limit at once ends this process, too.
    report(&Report::Started(confinement));
    let command = start(&job)
        .map_err(|error| io::Error::new(error.kind(), format!("the command can't be started: {error}")))?;
    close_stderr()?;
    wait_for(&command)
}

#[cfg(target_os = "linux")]
fn end_with_guard() -> io::Result<()> {
    use rustix::{
        event::{PollFd, PollFlags, Timespec, poll},
        process::{Signal, set_parent_process_death_signal},
    };
    // If memory is short, the kernel kills this process before the one that started it.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // A guard that ended earlier has sent no signal, but the kernel has closed its end of the pipe.
    // In a process namespace `getppid` does not show it.
    let stdin = stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut fds, Some(&Timespec::default()))? {
        0 => Ok(()),
        _ => Err(io::Error::other("the guard has ended")),
    }
}

#[cfg(not(target_os = "linux"))]
fn end_with_guard() -> io::Result<()> {
    Ok(())
}

/// Sets the limits that the kernel holds for each process. The guard ends all of them a little
/// earlier, and reports the limit.
fn limit(limits: &Limits) -> io::Result<()> {
    let lower = |resource, most: u64| {
        let most = rustix::process::getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
    };
    lower(Resource::Fsize, limits.file_size)?;
    lower(Resource::Cpu, limits.cpu.as_secs().saturating_add(1))?;
    lower(Resource::Core, 0)?;
    Ok(())
}

#[cfg(target_os = "linux")]
fn confine(job: &Job) -> io::Result<Confinement> {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    let is_protecting = job.is_namespaced && crate::namespace::mount_own_proc(&job.read_only)?;
    let files = crate::confine::restrict(&job.rules)?;
    if job.network == crate::Network::Off {
        crate::network::switch_off()?;
    }
    // The command must not reach this process's pipes through `/proc`.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(Confinement { files, has_own_processes: job.is_namespaced, is_protecting })
}

#[cfg(not(target_os = "linux"))]
fn confine(job: &Job) -> io::Result<Confinement> {
    if job.network == crate::Network::Off {
        return Err(io::Error::other("the network can't be switched off on this system"));
    }
    Ok(Confinement::default())
}

fn start(job: &Job) -> io::Result<Child> {
    let (program, args) =
        job.command.split_first().ok_or_else(|| io::Error::other("the command is empty"))?;
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(env::vars_os().filter(|(name, _)| name != ROLE));
    command.stdin(Stdio::null());
    command.stdout(stderr().as_fd().try_clone_to_owned()?).stderr(stderr().as_fd().try_clone_to_owned()?);
    if cfg!(target_os = "linux") {
        // A signal of the command to its group does not reach this process. On other systems the
        // guard can only end the group.
        command.process_group(0);
    }
    command.spawn()
}

/// Waits for the command; reaps the orphans of a namespace meanwhile.
fn wait_for(command: &Child) -> io::Result<()> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_pid() == command.id().cast_signed() => {
                let signal = status.terminating_signal().map(Report::Killed);
                let end = signal.or_else(|| status.exit_status().map(Report::Exited));
                return end
                    .map(|end| report(&end))
                    .ok_or_else(|| io::Error::other("the command has no status"));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
