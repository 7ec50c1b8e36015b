//! `mainstem agents`: the agents that files declare, without running any.

mod keys;
mod list;
mod new;
mod show;
mod validate;
mod value;

use std::{
    fmt::Display,
    io::{self, Write},
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

/// Writes findings to stderr.
fn say(found: impl IntoIterator<Item: Display>, terminal: Terminal) {
    for found in found {
        let text = sanitize::clean(&found.to_string());
        let text = if terminal.ascii { sanitize::ascii(&text) } else { text };
        let _ = writeln!(io::stderr(), "{text}");
    }
}
