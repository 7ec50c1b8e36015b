//! Starts cargo and other programs so that they behave as if typed into a shell.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Returns the command `cargo` with `args`, in the root of the workspace.
pub(crate) fn cargo(root: &Path, args: &[&str]) -> Command {
    let mut command = program(root, env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args);
    command
}

/// Returns the command of a program in `folder`, without the variables that `cargo run` sets for
/// xtask: ring's build script watches them, and would run again each time.
pub(crate) fn program(folder: &Path, name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(folder).stdin(Stdio::null());
    for (variable, _) in env::vars_os() {
        let name = variable.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&variable);
        }
    }
    command
}

/// Runs to the end, with the output on the terminal.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", line(command)))?;
    ensure!(status.success(), "{} ended with {status}", line(command));
    Ok(())
}

/// Runs to the end and returns what was written to standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    command.stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("cannot start {}", line(command)))?;
    ensure!(output.status.success(), "{} ended with {}", line(command), output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns `true` if cargo knows the subcommand `name`.
pub(crate) fn has(root: &Path, name: &str) -> bool {
    let mut probe = cargo(root, &[name, "--version"]);
    probe.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Returns the path in a variable that `.ci/run` sets; on a developer's machine it may be missing.
pub(crate) fn place(variable: &str, what: &str) -> Result<Option<PathBuf>> {
    let place = env::var_os(variable).map(PathBuf::from);
    if place.is_none() {
        let how = format!("{variable} does not name {what}");
        ensure!(env::var_os("CI").is_none(), how);
        println!("skipped: {how}");
    }
    Ok(place)
}

/// Returns the command as one would type it.
fn line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
