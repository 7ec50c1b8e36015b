//! Running a command in a workspace, as far from everything else as the system allows.

mod confine;
mod group;
mod output;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

pub(crate) use self::{
    confine::Confinement,
    group::{Group, start},
    output::Output,
};

/// What a command may know of this process's environment.
const PASSED: [&str; 5] = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"];

/// Where programs are, if nobody says.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What the tool `shell` gives to commands, beyond the workspace.
///
/// By default a command may read what programs need (`/usr`, `/etc`, `/opt`, `/proc` …), write in the workspace and `/tmp`, and knows
/// `PATH`, the locale and the time zone. `HOME` is the workspace. The network is open, and so are sockets in the file system (that of
/// Docker, say); `/tmp` is everybody's. Outside Linux, and on kernels without Landlock, nothing holds a command, and its answer says so. A toolchain that is elsewhere needs more:
///
/// ```
/// # use mainstem_workspace::ShellOptions;
/// let options = ShellOptions::default().with_readable("/home/me/.cargo").with_variable("CARGO_HOME");
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default)]
pub struct ShellOptions {
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    variables: Vec<OsString>,
}

impl ShellOptions {
    /// Lets commands read and run what is below this path.
    #[must_use]
    pub fn with_readable(mut self, path: impl Into<PathBuf>) -> Self {
        self.readable.push(path.into());
        self
    }

    /// Lets commands change what is below this path.
    #[must_use]
    pub fn with_writable(mut self, path: impl Into<PathBuf>) -> Self {
        self.writable.push(path.into());
        self
    }

    /// Passes a variable of this process's environment on.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<OsString>) -> Self {
        self.variables.push(name.into());
        self
    }

    /// All that a command knows: a list of what is passed, never of what is not, so that no secret is forgotten.
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
