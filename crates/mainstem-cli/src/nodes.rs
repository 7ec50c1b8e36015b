//! `mainstem nodes`: the servers that share a database.

use std::time::Duration;

use anyhow::ensure;
use serde_json::json;

use crate::{
    args::{Form, Nodes, NodesCommand},
    exit::{Exit, Fault, OrExit},
    print::{json as print_json, print, print_table},
    store::{self, NodeRow},
};

const HEADS: [&str; 7] = ["NODE", "NAME", "PROGRAM", "UP", "SESSIONS", "RUNS", "STATE"];

pub(crate) fn run(args: &Nodes) -> Result<Exit, Fault> {
    match &args.command {
        NodesCommand::List { journal, output } => {
            let nodes = store::nodes(journal).or_exit(Exit::Failed)?;
            match output {
                Form::Json => print_json(&nodes.iter().map(value).collect())?,
                Form::Text => print_table(HEADS, nodes.iter().map(row), "nodes")?,
            }
        }
        NodesCommand::Drain { name, journal } => {
            let asked = store::drain(journal, name).or_exit(Exit::Failed)?;
            let known = || {
                ensure!(asked > 0, "no node {name:?} is alive; `mainstem nodes list` shows those that are");
                anyhow::Ok(())
            };
            known().or_exit(Exit::Failed)?;
            print(&format!("asked {asked} to stop\n"))?;
        }
    }
    Ok(Exit::Reply)
}

fn state(node: &NodeRow) -> &'static str {
    match (node.lease, node.is_draining) {
        (None, _) => "ended",
        (Some(_), true) => "draining",
        (Some(_), false) => "alive",
    }
}

fn row(node: &NodeRow) -> [String; 7] {
    let up = humantime::format_duration(Duration::from_secs(node.joined.as_secs())).to_string();
    let (no, sessions, runs) = (node.no.to_string(), node.sessions.to_string(), node.runs.to_string());
    [no, node.name.clone(), node.program.clone(), up, sessions, runs, state(node).to_owned()]
}

fn value(node: &NodeRow) -> serde_json::Value {
    json!({
        "node": node.no, "name": node.name, "program": node.program, "upSeconds": node.joined.as_secs(),
        "leaseMs": node.lease.map(|lease| u64::try_from(lease.as_millis()).unwrap_or(u64::MAX)),
        "sessions": node.sessions, "runs": node.runs, "state": state(node),
    })
}
