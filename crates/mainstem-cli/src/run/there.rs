//! `mainstem run --server`: what a server is asked for.

use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

use super::{SCHEMA, plan_mode, setup::prompt};
use crate::{
    args::{self, Background},
    config::read::named,
    terminal::Terminal,
};

/// The body of `POST /sessions/{id}/runs`.
pub(super) fn body(args: &args::Run, terminal: Terminal) -> anyhow::Result<Value> {
    let people = terminal.has_person() && args.prompt.as_deref() != Some("-");
    let background = match args.background {
        Background::Wait => "wait",
        Background::Detach => "detach",
        Background::Cancel => "cancel",
    };
    let mut budget = json!({});
    if let Some(tokens) = args.budget_tokens {
        budget["tokens"] = json!(tokens);
    }
    if let Some(cost) = args.budget_cost {
        budget["cost"] = json!(cost);
    }
    let mut options = json!({ "people": people, "background": background, "budget": budget });
    if let Some(plans) = plan_mode(args) {
        options["plan_mode"] = json!(plans);
    }
    if let Some(path) = &args.output_schema {
        options["output_schema"] = schema(path)?;
    }
    if let Some(depth) = args.fleet.max_depth {
        options["max_depth"] = json!(depth);
    }
    if let Some(children) = args.fleet.max_children {
        options["max_children"] = json!(children);
    }
    let mut body = json!({ "agent": args.agent, "options": options });
    if args.resume {
        body["resume"] = json!(true);
    } else {
        body["input"] = json!(prompt(args, false)?);
    }
    Ok(body)
}

fn schema(path: &Path) -> anyhow::Result<Value> {
    let read = || anyhow::Ok(serde_json::from_str(&named(path, SCHEMA)?)?);
    read().with_context(|| format!("--output-schema {}", path.display()))
}
