//! `mainstem tools`: the tools of an agent.

use std::time::Duration;

use anyhow::anyhow;
use mainstem::{
    Harness,
    declarations::{Code, Diagnostic},
    prelude::ScriptedModel,
    spec::closest,
    tool::{ToolSet, ToolSpec},
};
use serde_json::{Value, json};

use crate::{
    agents::why_left_out,
    args::{Form, Source, Tools},
    config::{Config, var},
    exit::{Exit, Fault, OrExit},
    harness::{add_tools, in_words, limited, workspace},
    model,
    print::{json, print},
    progress, signals, table,
    terminal::Terminal,
    trust::{self, Reads},
};

const HEADS: [&str; 3] = ["TOOL", "FROM", "DOES"];

/// The characters of a description that fit into a line.
const WIDTH: usize = 72;

pub(crate) fn run(args: &Tools, source: &Source, terminal: Terminal) -> Result<Exit, Fault> {
    let flags = args.settings.clone();
    let (config, untrusted) = trust::look(flags, source, Reads::Agents).or_exit(Exit::Config)?;
    trust::warn(&untrusted, terminal);
    let harness = harness(args, &config).or_exit(Exit::Config)?;
    let tools = tools(args, &harness).or_exit(Exit::Usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    let mut signals = signals::watch().or_exit(Exit::Failed)?;
    let listed = runtime.block_on(async {
        let listed = tokio::select! {
            // Servers that were started for the list must not outlive it.
            signal = signals.next() => Ok(signal.exit()),
            () = tools.ready() => list(args, &tools).map(|()| Exit::Reply),
        };
        harness.shutdown(Duration::ZERO).await;
        listed
    })?;
    let found = harness.diagnostics();
    found.iter().for_each(|found| progress::say(&found.to_string(), terminal));
    let is_incomplete = !untrusted.is_empty() || found.iter().any(leaves_out);
    let is_wrong = listed == Exit::Reply && is_incomplete;
    Ok(if is_wrong { Exit::Config } else { listed })
}

/// Returns `true` if tools of a server are missing.
fn leaves_out(found: &Diagnostic) -> bool {
    found.is_error() && found.code() == Code::Server
}

/// Returns the harness of a run, with a model that is never called.
fn harness(args: &Tools, config: &Config) -> anyhow::Result<Harness> {
    let workspace = workspace(&config.settings);
    let harness = Harness::builder(args.agent.as_deref().unwrap_or("main"), ScriptedModel::new())
        .with_registry(model::registry(&config.settings, 0.0, var)?)
        .with_workspace(&workspace.value);
    limited(add_tools(harness, config)?, &config.settings.limits)
        .build()
        .map_err(|error| in_words(error, &workspace))
}

/// Returns the tools of the agent as the root.
fn tools(args: &Tools, harness: &Harness) -> anyhow::Result<ToolSet> {
    let agents = harness.agents();
    if let Some(id) = args.agent.as_deref().filter(|id| agents.catalog().get(id).is_none()) {
        if let Some(why) = why_left_out(id, &harness.diagnostics()) {
            return Err(anyhow!("--agent: {why}"));
        }
        let known: Vec<_> = agents.catalog().iter().map(|entry| &*entry.spec.id).collect();
        let near = closest(id, known.iter().copied());
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
        return Err(anyhow!("--agent: unknown agent {id:?}; known: {}{near}", known.join(", ")));
    }
    Ok(agents.root().tools().clone())
}

fn list(args: &Tools, tools: &ToolSet) -> Result<(), Fault> {
    let specs = tools.specs();
    match args.output {
        Form::Json => json(&specs.iter().map(|spec| object(spec, tools)).collect()),
        Form::Text => print(&table::text(HEADS, specs.iter().map(|spec| row(spec, tools)))),
    }
}

fn row(spec: &ToolSpec, tools: &ToolSet) -> [String; 3] {
    let line = spec.description.lines().next().unwrap_or_default();
    let short: String = line.chars().take(WIDTH).collect();
    let does = if short.len() < line.len() { format!("{}…", short.trim_end()) } else { short };
    [spec.name.clone(), from(spec, tools), does]
}

fn object(spec: &ToolSpec, tools: &ToolSet) -> Value {
    json!({
        "name": spec.name,
        "from": from(spec, tools),
        "description": spec.description,
        "read_only": tools.get(&spec.name).is_some_and(|tool| tool.is_read_only()),
        "parameters": spec.parameters,
    })
}

/// Returns the origin of a tool: a server, or the harness.
fn from(spec: &ToolSpec, tools: &ToolSet) -> String {
    tools
        .source_of(&spec.name)
        .map_or_else(|| "mainstem".to_owned(), |source| format!("mcp {}", source.name()))
}
