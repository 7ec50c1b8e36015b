//! `mainstem agents`: the agents that files declare, without running any.

mod findings;
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

use mainstem::{
    declarations::Diagnostic,
    spec::{Sources, SpecSet},
    subagent::general_purpose,
};

pub(crate) use self::findings::{findings, why_left_out, why_unread};
use crate::{
    args::{Agents, AgentsCommand, Listing, Source},
    config::{Config, Setting, Settings},
    exit::{Exit, Fault, OrExit},
    harness, sanitize,
    terminal::Terminal,
    trust::{self, Reads},
};

pub(crate) fn run(args: &Agents, source: &Source, terminal: Terminal) -> Result<Exit, Fault> {
    let (mut flags, reads) = (args.workspace.settings(), reads(&args.command));
    if let AgentsCommand::Show(show) = &args.command {
        flags.remote_hosts.clone_from(&show.remote_hosts);
    }
    let config = trust::look_and_warn(flags, source, reads, terminal).or_exit(Exit::Config)?;
    let workspace = workspace(&config.settings).or_exit(Exit::Config)?;
    match &args.command {
        AgentsCommand::Keys(keys) => keys::keys(keys, terminal),
        AgentsCommand::List(list) => list::list(list, &config, &workspace.value, terminal),
        AgentsCommand::Show(show) => show::show(show, &config, &workspace.value, terminal),
        AgentsCommand::New(new) => new::new(new, &workspace.value, terminal),
        AgentsCommand::Validate(validate) => validate::validate(validate, &config, &workspace),
    }
}

fn workspace(settings: &Settings) -> anyhow::Result<Setting<PathBuf>> {
    let workspace = harness::workspace(settings);
    harness::check_directory(&workspace)?;
    Ok(workspace)
}

/// Returns which agents' files a command reads, for the check of trust.
fn reads(command: &AgentsCommand) -> Reads {
    match command {
        AgentsCommand::Validate(args) if args.targets.is_empty() => Reads::agents(args.listing.foreign),
        AgentsCommand::Show(args) if args.online => Reads::Agents,
        _ => Reads::NoAgents,
    }
}

fn sources(workspace: &Path, listing: &Listing) -> Sources {
    let ours = Sources::of_workspace(workspace);
    if listing.foreign { ours.with_other_products_of(workspace) } else { ours }
}

/// Reads the files of agents, and returns the agents, that which always exists included, and what a
/// run would find wrong with the files; blocks on the file system.
fn load(config: &Config, workspace: &Path, listing: &Listing) -> (SpecSet, Vec<Diagnostic>) {
    let (mut specs, of_files) = sources(workspace, listing).load();
    let general = general_purpose();
    if specs.get(&general.id).is_none() {
        specs.insert(general);
    }
    let found = findings(config, workspace, listing.foreign);
    // A configuration that a run refuses does not hide the files.
    (specs, found.unwrap_or_else(|_| of_files.into_iter().map(Diagnostic::from).collect()))
}

/// Writes findings to stderr.
fn say(found: impl IntoIterator<Item: Display>, terminal: Terminal) {
    for found in found {
        let text = sanitize::clean(&found.to_string());
        let text = if terminal.ascii { sanitize::ascii(&text) } else { text };
        let _ = writeln!(io::stderr(), "{text}");
    }
}
