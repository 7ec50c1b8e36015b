//! Commands in a workspace, as isolated as the system allows.

mod guarded;
mod output;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use mainstem_guard::{Closed, Confinement, GuardError, Job, Limits, Network, Program, Rules};

pub(crate) use self::{
    guarded::{Ending, Guarded, Status, start},
    output::Output,
};

/// The variables of this process's environment that a command gets.
const PASSED: [&str; 5] = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"];

/// The `PATH` of commands, unless the environment has one.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What the tool `shell` gives commands, beyond the workspace.
///
/// By default a command may read what programs need (`/usr`, `/etc`, `/opt`, `/proc` …), write in
/// the workspace, except for [protected](crate::Protection) paths, and in `/tmp`, and has the
/// variables `PATH`, the locale and the time zone. `HOME` is the workspace. The network is open,
/// and so are sockets in the file system (that of Docker, say); all commands share `/tmp`. A
/// toolchain elsewhere needs more:
///
/// ```
/// # use mainstem_workspace::ShellOptions;
/// let options = ShellOptions::default()
///     .with_readable("/home/me/.cargo")
///     .with_variable("CARGO_HOME");
/// # let _ = options;
/// ```
///
/// A command runs under a guard, which is this program run once more: `main` begins with
/// [`mainstem_guard::init`], or [`with_guard`](Self::with_guard) names another program. All
/// processes of a command end with its call, and with this process. The crate `mainstem-guard` has
/// a table of what is in force on which system; the tool's result says what is not.
#[derive(Clone, Debug)]
pub struct ShellOptions {
    rules: Rules,
    variables: Vec<OsString>,
    network: Network,
    limits: Limits,
    has_namespaces: bool,
    guard: Option<Program>,
}

impl Default for ShellOptions {
    fn default() -> Self {
        let rules = Rules { writable: vec!["/tmp".into()], ..Rules::default() };
        Self {
            rules,
            variables: Vec::new(),
            network: Network::default(),
            limits: Limits::default(),
            has_namespaces: true,
            guard: None,
        }
    }
}

impl ShellOptions {
    /// Lets commands read and run files below this path.
    #[must_use]
    pub fn with_readable(mut self, path: impl Into<PathBuf>) -> Self {
        self.rules.readable.push(path.into());
        self
    }

    /// Lets commands change files below this path.
    #[must_use]
    pub fn with_writable(mut self, path: impl Into<PathBuf>) -> Self {
        self.rules.writable.push(path.into());
        self
    }

    /// Passes a variable of this process's environment on.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<OsString>) -> Self {
        self.variables.push(name.into());
        self
    }

    /// Sets whether commands have a network; they have by default.
    #[must_use]
    pub fn with_network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// Sets the resources that each command may use, with all its processes.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets whether commands get namespaces of their own, where the system has them; they do by
    /// default. Without them a command sees the processes outside, and can change protected paths
    /// that exist.
    #[must_use]
    pub fn with_namespaces(mut self, wanted: bool) -> Self {
        self.has_namespaces = wanted;
        self
    }

    /// Sets the program that guards commands; this one by default.
    #[must_use]
    pub fn with_guard(mut self, program: Program) -> Self {
        self.guard = Some(program);
        self
    }

    /// Returns the program that guards commands.
    ///
    /// # Errors
    /// If no program is set, and this one has not called [`mainstem_guard::init`].
    pub fn guard(&self) -> Result<Program, GuardError> {
        self.guard.clone().or_else(Program::itself).ok_or(GuardError::NoProgram)
    }

    /// Returns the confinement of commands on this machine, by running an empty one in the current
    /// directory. Blocks for some milliseconds.
    ///
    /// # Errors
    /// If commands can't run here, or can't run without a network as these options require.
    pub fn probe(&self) -> Result<Confinement, GuardError> {
        mainstem_guard::probe(&self.guard()?, &self.job("", Closed::default(), false))
    }

    fn job(&self, command: &str, closed: Closed, is_read_only: bool) -> Job {
        let rules = Rules { closed, is_read_only, ..self.rules.clone() };
        let (network, limits) = (self.network, self.limits);
        let command = ["/bin/sh", "-c", command].map(str::to_owned).into();
        let job = Job::new(command).with_rules(rules).with_network(network).with_limits(limits);
        job.with_namespaces(self.has_namespaces)
    }

    pub(crate) fn network(&self) -> Network {
        self.network
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the environment of a command: a list of variables that are passed, so that secrets
    /// stay out by default.
    pub(crate) fn environment(&self, home: &Path) -> Vec<(OsString, OsString)> {
        let own = [
            ("PATH", PATH.into()),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "dumb".into()),
            ("HOME", home.into()),
        ];
        let own = own.into_iter().map(|(name, value)| (name.into(), value));
        let passed = PASSED.into_iter().map(OsString::from).chain(self.variables.iter().cloned());
        own.chain(passed.filter_map(|name| Some((name.clone(), std::env::var_os(name)?)))).collect()
    }
}

#[cfg(test)]
mod tests;
