//! The program that serves as guard: by default the running one, started again.

use std::{
    env,
    ffi::OsString,
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{self, Command, Stdio},
    sync::OnceLock,
};

use crate::{Confinement, GuardError, Job, Report, guard, inner};

/// The environment variable with a process's role.
pub(crate) const ROLE: &str = "MAINSTEM_GUARD";
pub(crate) const GUARD: &str = "guard";
pub(crate) const INNER: &str = "inner";
#[cfg(target_os = "linux")]
pub(crate) const SUPERVISOR: &str = "supervisor";
#[cfg(target_os = "linux")]
pub(crate) const TRIAL: &str = "trial";

/// The running program, if it can be its own guard.
static ITSELF: OnceLock<Program> = OnceLock::new();

/// Makes this program its own guard: call it first in `main`, before arguments are read and before
/// a thread is started.
///
/// In a process that was started as a guard, it runs the guard and exits; otherwise it returns.
pub fn init() {
    take_role();
    let _ = ITSELF.set(Program::new(itself()));
}

/// Runs the guard and exits, in a process that was started as one; returns in any other. For
/// programs that [`Program::new`] names and that are not their own guards.
pub fn take_role() {
    match env::var_os(ROLE).as_deref().and_then(|role| role.to_str()) {
        Some(GUARD) => process::exit(guard::run()),
        Some(INNER) => process::exit(inner::run()),
        #[cfg(target_os = "linux")]
        Some(SUPERVISOR) => process::exit(crate::supervisor::run()),
        #[cfg(target_os = "linux")]
        Some(TRIAL) => process::exit(crate::namespace::trial()),
        _ => {}
    }
}

/// Returns the running program, even if its file was replaced meanwhile.
fn itself() -> PathBuf {
    if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { env::current_exe().unwrap_or_default() }
}

/// A program that calls [`init`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    path: PathBuf,
    args: Vec<OsString>,
}

impl Program {
    /// Creates the program in this file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), args: Vec::new() }
    }

    /// Adds an argument, for a program that reads some before it calls [`init`].
    #[must_use]
    pub fn with_arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Returns the running program, if it has called [`init`].
    pub fn itself() -> Option<Self> {
        ITSELF.get().cloned()
    }

    /// Returns a guard to be started, in a process group of its own and with an empty environment.
    ///
    /// Its stdin takes [`Job::to_line`]; the guard ends everything when its stdin is closed. Its
    /// stdout has [`Report`]s, its stderr what the command writes to its stdout and its stderr.
    pub fn command(&self) -> Command {
        self.as_role(GUARD)
    }

    /// Returns this process's program and arguments, in another role.
    pub(crate) fn again(role: &str) -> Command {
        let mut command = Self { path: itself(), args: env::args_os().skip(1).collect() }.as_role(role);
        // The command gets the rest of the environment.
        command.envs(env::vars_os().filter(|(name, _)| name != ROLE));
        command
    }

    pub(crate) fn as_role(&self, role: &str) -> Command {
        let mut command = Command::new(&self.path);
        command.arg0("mainstem-guard").args(&self.args).env_clear().env(ROLE, role);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        if role == GUARD {
            // The program passes Ctrl-C on.
            command.process_group(0);
        }
        command
    }
}

impl Job {
    /// Returns the job as a line for a guard's stdin.
    ///
    /// # Errors
    /// If a path is not UTF-8, or the command has a NUL character.
    pub fn to_line(&self) -> Result<String, GuardError> {
        if self.command.iter().any(|word| word.contains('\0')) {
            return Err(GuardError::Failed("it has a NUL character".to_owned()));
        }
        let json = serde_json::to_string(self).map_err(|error| GuardError::Failed(error.to_string()))?;
        Ok(json + "\n")
    }
}

/// Runs an empty command in the current directory, and returns its confinement. Blocks for some
/// milliseconds.
///
/// # Errors
/// If the guard, or the job's network, is not available on this machine.
pub fn probe(program: &Program, job: &Job) -> Result<Confinement, GuardError> {
    let job = Job { command: vec!["/bin/sh".to_owned(), "-c".to_owned(), ":".to_owned()], ..job.clone() };
    let mut guard = program.command().stderr(Stdio::null()).spawn()?;
    let (stdin, stdout) = (guard.stdin.take(), guard.stdout.take());
    if let Some(mut stdin) = stdin.as_ref() {
        stdin.write_all(job.to_line()?.as_bytes())?;
    }
    let lines = stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).split(b'\n'));
    let reports: Vec<_> = lines.map_while(Result::ok).filter_map(|line| Report::parse(&line)).collect();
    guard.wait()?;
    let mut confinement = Err(GuardError::Silent);
    for report in reports {
        match report {
            Report::Started(started) => confinement = Ok(started),
            Report::Failed(why) => confinement = Err(GuardError::Failed(why)),
            Report::Exited(_) | Report::Killed(_) | Report::Reached(_) | Report::SetAside { .. } => {}
        }
    }
    confinement
}
