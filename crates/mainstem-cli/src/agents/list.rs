//! `mainstem agents list`

use std::path::Path;

use mainstem::spec::AgentSpec;
use serde_json::{Value, json};

use super::{
    findings::is_left_out,
    load, say,
    value::{mode, origin},
};
use crate::{
    args::{Form, List},
    config::Config,
    exit::{Exit, Fault},
    print::{counted, json, print},
    progress, table,
    terminal::Terminal,
};

const HEADS: [&str; 6] = ["ID", "MODE", "HIDDEN", "MODEL", "TOOLS", "ORIGIN"];

pub(super) fn list(
    args: &List,
    config: &Config,
    workspace: &Path,
    terminal: Terminal,
) -> Result<Exit, Fault> {
    let (specs, found) = load(config, workspace, &args.listing);
    let specs = specs.iter().filter(|spec| !is_left_out(spec, &found));
    match args.listing.output {
        Form::Json => json(&specs.map(object).collect())?,
        Form::Text => print(&table(specs))?,
    }
    let (errors, warnings): (Vec<_>, Vec<_>) = found.iter().partition(|found| found.is_error());
    say(errors, terminal);
    if !warnings.is_empty() {
        let count = counted(warnings.len(), "warning");
        let foreign = if args.listing.foreign { " --foreign" } else { "" };
        let note = format!("warning: {count} in these files: see `mainstem agents validate{foreign}`");
        progress::say(&note, terminal);
    }
    Ok(Exit::Reply)
}

fn object(spec: &AgentSpec) -> Value {
    json!({
        "id": spec.id,
        "description": spec.description,
        "mode": mode(spec.mode),
        "hidden": spec.hidden,
        "model": spec.model,
        "tools": spec.tools,
        "disallowed_tools": spec.disallowed_tools,
        "origin": origin(&spec.origin),
    })
}

fn table<'a>(specs: impl Iterator<Item = &'a AgentSpec>) -> String {
    table::text(HEADS, specs.map(row))
}

fn row(spec: &AgentSpec) -> [String; HEADS.len()] {
    [
        spec.id.clone(),
        mode(spec.mode).to_owned(),
        if spec.hidden { "yes" } else { "no" }.to_owned(),
        spec.model.clone().unwrap_or_else(|| "-".to_owned()),
        tools(spec),
        origin(&spec.origin),
    ]
}

fn tools(spec: &AgentSpec) -> String {
    let but = if spec.disallowed_tools.is_empty() {
        String::new()
    } else {
        format!(" but {}", spec.disallowed_tools.join(","))
    };
    let listed = match spec.tools.as_deref() {
        None => "all".to_owned(),
        Some([]) => "none".to_owned(),
        Some(tools) => tools.join(","),
    };
    listed + &but
}
