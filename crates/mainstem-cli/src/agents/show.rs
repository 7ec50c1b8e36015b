//! `mainstem agents show`

use std::{fmt::Write as _, path::Path};

use anyhow::anyhow;
use mainstem::{
    declarations::Diagnostic,
    remote::RemoteDescription,
    spec::{AgentSpec, Dialect, Key, Origin, Parsed, SpecSet, closest, load_file},
};
use serde_json::{Map, Value, json};

use super::{
    findings::{has_file, path},
    load, say,
    value::{absent, keys, origin},
};
use crate::{
    args::{Form, Show},
    config::Config,
    exit::{Exit, Fault, OrExit},
    print::{json, print},
    remotes,
    terminal::Terminal,
};

pub(super) fn show(
    args: &Show,
    config: &Config,
    workspace: &Path,
    terminal: Terminal,
) -> Result<Exit, Fault> {
    let (specs, found) = load(config, workspace, &args.listing);
    let about = |found: &&Diagnostic| has_file(found, &args.id);
    let Some((spec, parsed)) = specs.get(&args.id).and_then(|spec| Some((spec, of_file(spec)?))) else {
        let of_it: Vec<_> = found.iter().filter(about).collect();
        say(of_it.iter().copied(), terminal);
        let error = if of_it.is_empty() {
            unknown(&args.id, &specs)
        } else {
            anyhow!("agent {:?} is left out", args.id)
        };
        return Err(error).or_exit(Exit::Usage);
    };
    let about = |found: &&Diagnostic| found.file() == path(spec);
    let remote = args.online.then(|| remote(config, &args.id)).transpose();
    let remote = remote.inspect_err(|_| say(found.iter().filter(about), terminal))?;
    match args.listing.output {
        Form::Json => {
            let mut object = object(spec, parsed.as_ref());
            if let Some(RemoteDescription { protocol, about, .. }) = &remote {
                object["remote"] = json!({ "protocol": protocol, "about": about });
            }
            json(&object)?;
        }
        Form::Text => {
            let line = remote.as_ref().map(|remote| format!("\nThe server {}\n", remotes::line(remote)));
            print(&(text(spec, parsed.as_ref()) + &line.unwrap_or_default()))?;
        }
    }
    say(found.iter().filter(about), terminal);
    Ok(Exit::Reply)
}

/// Returns what the file of an agent says where; the built-in agent has no file. `None` if the file
/// can't be read.
fn of_file(spec: &AgentSpec) -> Option<Option<Parsed>> {
    match &spec.origin {
        Origin::File(path) => load_file(path).ok().map(Some),
        Origin::BuiltIn => Some(None),
        _ => None,
    }
}

/// Asks the server of an agent, if its address is in effect.
fn remote(config: &Config, id: &str) -> Result<RemoteDescription, Fault> {
    let specs = remotes::in_effect(config).or_exit(Exit::Config)?;
    let spec = specs.iter().find(|spec| spec.id == id);
    let spec =
        spec.ok_or_else(|| anyhow!("agent {id:?} has no `url` that is in effect")).or_exit(Exit::Usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    runtime.block_on(remotes::ask(config, spec)).or_exit(Exit::Failed)
}

pub(super) fn unknown(id: &str, specs: &SpecSet) -> anyhow::Error {
    let known: Vec<_> = specs.iter().map(|spec| spec.id.as_str()).collect();
    match specs.iter().all(|spec| spec.origin == Origin::BuiltIn) {
        true => {
            anyhow!(
                "unknown agent {id:?}; the workspace has none; `mainstem agents new {id} --description …` creates one"
            )
        }
        false => {
            let near = closest(id, known.iter().copied());
            let near = near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
            anyhow!("unknown agent {id:?}; known: {}{near}", known.join(", "))
        }
    }
}

fn object(spec: &AgentSpec, parsed: Option<&Parsed>) -> Value {
    let place = |key: &str| parsed?.place(key).map(|at| json!({ "line": at.line, "column": at.column }));
    let entry = |key: &Key| json!({ "value": key.value(spec), "at": place(key.name) });
    let values: Map<_, _> = keys().map(|key| (key.name.to_owned(), entry(key))).collect();
    json!({
        "id": spec.id,
        "origin": origin(&spec.origin),
        "written_for": parsed.map_or(Dialect::Mainstem, |parsed| parsed.dialect).to_string(),
        "values": values,
        "prompt": spec.prompt,
    })
}

fn text(spec: &AgentSpec, parsed: Option<&Parsed>) -> String {
    let mut text = match parsed {
        Some(_) => format!("{}, from {}", spec.id, origin(&spec.origin)),
        None => format!("{}, {}", spec.id, origin(&spec.origin)),
    };
    if let Some(Parsed { dialect, .. }) = parsed
        && *dialect != Dialect::Mainstem
    {
        let _ = write!(text, ", written for {dialect}");
    }
    text.push_str("\n\n");
    let place = |key: &Key| parsed?.place(key.name);
    for key in keys() {
        let from = place(key).map_or_else(|| "default".to_owned(), |at| format!("line {}", at.line));
        let shown = shown(key, &key.value(spec));
        let mut lines = shown.lines();
        let _ = writeln!(text, "{:<17} {from:<9} {}", key.name, lines.next().unwrap_or_default());
        for line in lines {
            let _ = writeln!(text, "{:<27} {line}", "");
        }
    }
    match spec.prompt.is_empty() {
        true => text + "\nThere is no prompt.\n",
        false => format!("{text}\n{}\n", spec.prompt),
    }
}

fn shown(key: &Key, value: &Value) -> String {
    match value {
        Value::Null => absent(key).to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(rules) if key.name == "permissions" => {
            let rule =
                |rule: &Value| Some(format!("{} {}", rule["effect"].as_str()?, rule["pattern"].as_str()?));
            rules.iter().filter_map(rule).collect::<Vec<_>>().join("\n")
        }
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
