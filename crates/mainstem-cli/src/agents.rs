//! `mainstem agents`: the agents that files declare, without running any.

mod keys;
mod list;
mod new;
mod show;
mod validate;
mod value;

use std::{
    fmt::Display,
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

use anyhow::ensure;
use mainstem::{
    declarations::Diagnostic,
    spec::{Sources, SpecSet},
};

use crate::{
    args::{Agents, AgentsCommand, Listing, Source},
    config::{Setting, Settings},
    exit::{Exit, Fault, OrExit},
    harness, sanitize,
    terminal::Terminal,
    trust::{self, Reads},
};

pub(crate) fn run(args: &Agents, source: &Source, terminal: Terminal) -> Result<Exit, Fault> {
    let (flags, reads) = (args.workspace.settings(), reads(&args.command));
    let config = trust::look_and_warn(flags, source, reads, terminal).or_exit(Exit::Config)?;
    let workspace = workspace(&config.settings).or_exit(Exit::Config)?;
    match &args.command {
        AgentsCommand::Keys(keys) => keys::keys(keys),
        AgentsCommand::List(list) => list::list(list, &workspace.value, terminal),
        AgentsCommand::Show(show) => show::show(show, &workspace.value, terminal),
        AgentsCommand::New(new) => new::new(new, &workspace.value, terminal),
        AgentsCommand::Validate(validate) => validate::validate(validate, &config, &workspace),
    }
}

fn workspace(settings: &Settings) -> anyhow::Result<Setting<PathBuf>> {
    let workspace = harness::workspace(settings);
    let Setting { value, origin } = &workspace;
    ensure!(value.is_dir(), "{origin}: workspace {value:?} is not a directory");
    Ok(workspace)
}

/// Returns which agents' files a command reads, for the check of trust.
fn reads(command: &AgentsCommand) -> Reads {
    match command {
        AgentsCommand::Validate(args) if args.paths.is_empty() => Reads::agents(args.listing.foreign),
        _ => Reads::NoAgents,
    }
}

fn sources(workspace: &Path, listing: &Listing) -> Sources {
    let ours = Sources::of_workspace(workspace);
    if listing.foreign { ours.with_other_products_of(workspace) } else { ours }
}

/// Reads the files of agents; blocks on the file system.
fn load(workspace: &Path, listing: &Listing) -> (SpecSet, Vec<Diagnostic>) {
    let (specs, found) = sources(workspace, listing).load();
    (specs, found.into_iter().map(Diagnostic::from).collect())
}

/// Writes text to stdout, without control sequences. A closed pipe is not an error.
pub(crate) fn print(text: &str) -> Result<(), Fault> {
    write(&sanitize::clean(text))
}

/// Writes a value to stdout.
pub(crate) fn json(value: &serde_json::Value) -> Result<(), Fault> {
    print_json(&serde_json::to_string_pretty(value).or_exit(Exit::Failed)?)
}

/// Writes a line or lines of JSON to stdout, with control characters escaped.
pub(crate) fn print_json(json: &str) -> Result<(), Fault> {
    write(&(sanitize::escape_json(json) + "\n"))
}

fn write(text: &str) -> Result<(), Fault> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).or_exit(Exit::Failed),
        _ => Ok(()),
    }
}

/// Writes findings to stderr.
fn say(found: impl IntoIterator<Item: Display>, terminal: Terminal) {
    for found in found {
        let text = sanitize::clean(&found.to_string());
        let text = if terminal.ascii { sanitize::ascii(&text) } else { text };
        let _ = writeln!(io::stderr(), "{text}");
    }
}

/// Returns a count with its noun: `1 error`, `2 errors`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
