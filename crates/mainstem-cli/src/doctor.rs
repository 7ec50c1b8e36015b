//! `mainstem doctor`: checks the configuration, and shows how to correct what is wrong.

mod journal;
mod online;

use std::{fmt::Write as _, sync::Arc};

#[cfg(unix)]
use mainstem::guard::{Files, Network};
use mainstem::{
    declarations::{Declarations, Diagnostic, Inputs},
    mcp::{Client, Server},
    provider::{PROVIDERS, Provider},
    spec::{AgentSpec, Sources},
    tool::ToolSource,
};
use serde::Serialize;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::{
    agents,
    args::{Doctor, Form, Source},
    command_line::SERVER,
    config::{Config, Setting, Settings, keys::ways, value, var},
    demo,
    exit::{Exit, Fault, OrExit, in_one_line},
    harness, model,
    print::{counted, json, print},
    remotes, sanitize,
    signals::{self, Signal},
    terminal::Terminal,
    trust::{self, Reads},
    trusted::FolderPart,
};

/// The result of a check, and the fix.
#[derive(Serialize)]
struct Finding {
    state: State,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    #[serde(rename = "ok")]
    Well,
    /// Optional, and not set up.
    Absent,
    Wrong,
}

impl Finding {
    fn well(text: impl Into<String>) -> Self {
        Self { state: State::Well, text: text.into(), fix: None }
    }

    fn absent(text: impl Into<String>) -> Self {
        Self { state: State::Absent, text: text.into(), fix: None }
    }

    fn wrong(text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { state: State::Wrong, text: text.into(), fix: Some(fix.into()) }
    }
}

pub(crate) fn run(args: &Doctor, source: &Source, terminal: Terminal) -> Result<Exit, Fault> {
    let (mut findings, mut exit) = (Vec::new(), Exit::Reply);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    let signals = args.online.then(signals::watch).transpose().or_exit(Exit::Failed)?;
    let mut stop = Stop { signals, stopped: None };
    match trust::look(args.settings.clone(), source, Reads::Agents) {
        Err(error) => {
            findings.push(Finding::wrong(
                format!("configuration: {}", in_one_line(&error)),
                "correct the file there",
            ));
        }
        Ok((config, parts)) => {
            let settings = &config.settings;
            findings.push(Finding::well("configuration: read"));
            findings.extend(parts.iter().map(untrusted));
            findings.extend(var(SERVER).map(|url| server(&url)));
            findings.extend(providers(settings));
            findings.push(workspace(&config));
            findings.push(journal::check(args.journal.as_ref(), &runtime));
            findings.extend(shell(settings));
            findings.extend(servers(args, settings, &runtime, &mut stop));
            findings.extend(elsewhere(args, &config, &runtime, &mut stop));
            findings.extend(model(args, settings, &runtime, &mut stop, &mut exit));
        }
    }
    match args.output {
        Form::Json => json(&findings.iter().map(|finding| json!(finding)).collect())?,
        Form::Text => print(&text(&findings, terminal))?,
    }
    if let Some(signal) = stop.stopped {
        return Ok(signal.exit());
    }
    let is_wrong = findings.iter().any(|finding| finding.state == State::Wrong);
    Ok(if is_wrong && exit == Exit::Reply { Exit::Config } else { exit })
}

fn untrusted(found: &FolderPart) -> Finding {
    let text = format!("not in effect, because it is not trusted: {}", found.part);
    Finding::wrong(text, format!("read the file; then `{}`", found.command()))
}

/// Says what uses the server of the environment; all other findings are about this machine.
fn server(url: &str) -> Finding {
    Finding::well(format!(
        "{SERVER}: run, chat, attach, watch, replay, sessions, tasks and jobs use {url}, as with --server"
    ))
}

fn providers(settings: &Settings) -> impl Iterator<Item = Finding> {
    // Providers with the same variables have a line together.
    let mut lines: Vec<(Vec<&str>, String, bool)> = Vec::new();
    for provider in PROVIDERS {
        let origin = model::set_up_by(provider, settings, var);
        let is_set_up = origin.is_some();
        let text = origin.map_or_else(|| not_set_up(provider), |origin| format!("set up by {origin}"));
        match lines.iter_mut().find(|line| line.1 == text) {
            Some((names, ..)) => names.push(provider.name),
            None => lines.push((vec![provider.name], text, is_set_up)),
        }
    }
    lines.into_iter().map(|(names, text, is_set_up)| {
        let text = format!("{}: {text}", names.join(", "));
        if is_set_up { Finding::well(text) } else { Finding::absent(text) }
    })
}

fn not_set_up(provider: &Provider) -> String {
    let by: Vec<_> = provider.set_up_by().collect();
    match by[..] {
        [key, server] => format!("not set up (by {key}, or {server} for another server)"),
        _ => format!("not set up (by {})", by.join(", ")),
    }
}

fn workspace(config: &Config) -> Finding {
    let here = Setting::new(".".into(), "the current directory");
    let Setting { value, origin } = config.settings.workspace.as_ref().unwrap_or(&here);
    if !value.is_dir() {
        let text = format!("workspace: {} is not a directory ({origin})", value.display());
        return Finding::wrong(text, format!("name one that exists, by {}", ways("workspace")));
    }
    match Inputs::new(Sources::of_workspace(value)).read(&Declarations::default()) {
        Ok((declarations, found)) => {
            // The count of `mainstem agents validate`, unless the configuration prevents a run.
            let found = agents::findings(config, value, false).unwrap_or(found);
            let agents = counted(declarations.specs().len(), "agent");
            agents_of(format!("workspace: {}, {agents} in files", value.display()), &found)
        }
        Err(error) => Finding::wrong(format!("workspace: {error}"), "see `mainstem agents validate`"),
    }
}

fn agents_of(text: String, found: &[Diagnostic]) -> Finding {
    match found.iter().filter(|found| found.is_error()).count() {
        0 => Finding::well(text),
        errors => {
            Finding::wrong(format!("{text}, {}", counted(errors, "error")), "see `mainstem agents validate`")
        }
    }
}

/// Runs an empty command to find out what confines commands on this machine.
#[cfg(unix)]
fn shell(settings: &Settings) -> Option<Finding> {
    let options = harness::shell_options(settings);
    let network = match value(&settings.shell_network).unwrap_or_default() {
        Network::On => "on",
        Network::Off => "off",
    };
    Some(match options.probe() {
        Ok(held) => {
            let text =
                format!("shell: {held}, network {network}; limits: {}", settings.shell_limits.limits());
            if held.files == Files::Confined { Finding::well(text) } else { Finding::absent(text) }
        }
        Err(error) if settings.shell.is_on() => {
            Finding::wrong(format!("shell: {error}"), "set `shell = false`, or correct what the error names")
        }
        Err(error) => Finding::absent(format!("shell: {error}")),
    })
}

#[cfg(not(unix))]
fn shell(_: &Settings) -> Option<Finding> {
    None
}

/// A signal that ends the checks, and the servers that they started.
struct Stop {
    signals: Option<signals::First>,
    stopped: Option<Signal>,
}

impl Stop {
    /// Returns the output of a future; `None` after a signal.
    async fn or<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let signals = self.signals.as_mut().filter(|_| self.stopped.is_none())?;
        tokio::select! {
            signal = signals.next() => {
                self.stopped = Some(signal);
                None
            }
            output = work => Some(output),
        }
    }
}

/// Lists the MCP servers; with `--online` checks that they start and have tools.
fn servers(args: &Doctor, settings: &Settings, runtime: &Runtime, stop: &mut Stop) -> Vec<Finding> {
    let check = |(name, server): (&String, &Setting<Server>)| match Client::new(&**name, server.value.clone())
    {
        Err(error) => {
            Finding::wrong(format!("MCP server ({}): {error}", server.origin), "give it another name there")
        }
        Ok(_) if !args.online => {
            Finding::absent(format!("MCP server {name}: `{}` ({}), not started", server.value, server.origin))
        }
        Ok(client) => runtime.block_on(reach(name, &client, stop)),
    };
    settings.mcp.iter().map(check).collect()
}

async fn reach(name: &str, client: &Client, stop: &mut Stop) -> Finding {
    let is_ready = stop.or(client.ready()).await.is_some();
    let (problems, tools) = (client.problems(), client.tools().names().count());
    client.shutdown().await;
    match problems.first() {
        _ if !is_ready => Finding::absent(format!("MCP server {name}: the check was interrupted")),
        None => Finding::well(format!("MCP server {name}: {}", counted(tools, "tool"))),
        Some(problem) => {
            let fix = format!("try `{}` by hand, or correct [mcp.{name}]", client.server());
            Finding::wrong(problem.clone(), fix)
        }
    }
}

/// Lists the agents that other servers run; with `--online` asks these servers.
fn elsewhere(args: &Doctor, config: &Config, runtime: &Runtime, stop: &mut Stop) -> Vec<Finding> {
    // What can't be built is among the findings of the workspace.
    let specs = remotes::in_effect(config).unwrap_or_default();
    let check = |spec: &Arc<AgentSpec>| {
        let (id, url) = (&spec.id, spec.url.as_deref().unwrap_or_default());
        if !args.online {
            return Finding::absent(format!("agent {id}: at {url}, not asked"));
        }
        match runtime.block_on(stop.or(remotes::ask(config, spec))) {
            None => Finding::absent(format!("agent {id}: the check was interrupted")),
            Some(Ok(description)) => Finding::well(format!("agent {id}: {}", remotes::line(&description))),
            Some(Err(error)) => {
                Finding::wrong(format!("agent {id}: {error}"), "correct `url`, `protocol` or `headers`")
            }
        }
    };
    specs.iter().map(check).collect()
}

/// Checks that there is a model; with `--online` that it does what a fleet requires.
fn model(
    args: &Doctor,
    settings: &Settings,
    runtime: &Runtime,
    stop: &mut Stop,
    exit: &mut Exit,
) -> Vec<Finding> {
    let Some(Setting { value: name, origin }) = model::choose(settings, var) else {
        let (text, fix) = model::unchosen(settings).map_or_else(
            || ("model: none is configured", model::ADVICE.to_string()),
            |why| ("model: none is chosen", why),
        );
        return vec![Finding::wrong(text, fix)];
    };
    let resolved = model::registry(settings, 0.0, var).and_then(|registry| model::resolve(&registry, &name));
    let model = match resolved {
        Ok(model) => model,
        Err(error) => {
            let text = format!("model: {name} ({origin}): {}", in_one_line(&error));
            return vec![Finding::wrong(text, "see `mainstem models` for names and variables")];
        }
    };
    let mut findings = vec![Finding::well(format!("model: {name} ({origin})"))];
    if args.online && name == demo::NAME {
        findings.push(Finding::absent("online: the demo has no provider"));
    } else if args.online {
        let checked = runtime.block_on(stop.or(online::ask(&model))).unwrap_or_default();
        if checked.iter().any(|finding| finding.state == State::Wrong) {
            *exit = Exit::Refused;
        }
        findings.extend(checked);
    } else {
        findings.push(Finding::absent("online: not checked; `mainstem doctor --online` checks it"));
    }
    findings
}

fn text(findings: &[Finding], terminal: Terminal) -> String {
    findings.iter().fold(String::new(), |mut text, finding| {
        let mark = match (finding.state, terminal.ascii) {
            (State::Well, false) => "✔",
            (State::Wrong, false) => "✘",
            (State::Absent, false) => "·",
            (State::Well, true) => "ok",
            (State::Wrong, true) => "!!",
            (State::Absent, true) => "--",
        };
        let _ = writeln!(text, "{mark} {}", sanitize::clean(&finding.text));
        if let Some(fix) = &finding.fix {
            let _ = writeln!(text, "    fix: {}", fix.replace('\n', "\n    "));
        }
        text
    })
}
