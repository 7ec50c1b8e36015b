//! `mainstem models --online`: the models that providers list.

use std::io::{self, Write as _};

use anyhow::anyhow;
use futures_util::future::join_all;
use mainstem::{
    http::ListedModel,
    model::ModelError,
    provider::{PROVIDERS, Provider, provider},
    spec::closest,
};
use serde_json::{Value, json};

use crate::{
    args::Form,
    config::{Settings, var},
    exit::{Exit, Fault, OrExit},
    model,
    print::{json, print},
    sanitize, table,
};

const HEADS: [&str; 3] = ["MODEL", "CONTEXT", "OUTPUT"];

type Listed = Result<Vec<ListedModel>, ModelError>;

/// Lists the models of a provider, or with an empty name those of all that are set up. A provider
/// that fails is a line of stderr, and decides about the exit code.
pub(super) fn run(name: &str, form: Form, settings: &Settings) -> Result<Exit, Fault> {
    let providers = chosen(name, settings)?;
    let configured = providers.iter().map(|provider| model::configured(provider, settings, var));
    let configured = configured.collect::<anyhow::Result<Vec<_>>>().or_exit(Exit::Config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    let lists = runtime.block_on(join_all(configured.iter().map(model::Configured::models)));
    let found: Vec<_> = providers.into_iter().zip(lists).collect();
    match form {
        Form::Json => json(&found.iter().map(object).collect())?,
        Form::Text => print(&table::text(HEADS, found.iter().flat_map(rows)))?,
    }
    let failed: Vec<_> = found.iter().filter_map(|(it, list)| Some((it, list.as_ref().err()?))).collect();
    for (provider, error) in &failed {
        // stderr may be closed.
        let _ = writeln!(io::stderr(), "error: {}: {}", provider.name, sanitize::clean(&error.to_string()));
    }
    Ok(if failed.is_empty() { Exit::Reply } else { Exit::Refused })
}

fn chosen(name: &str, settings: &Settings) -> Result<Vec<&'static Provider>, Fault> {
    if let Some(provider) = provider(name) {
        return Ok(vec![provider]);
    }
    if !name.is_empty() {
        let near = closest(name, PROVIDERS.iter().map(|provider| provider.name));
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
        return Err(anyhow!("--online: unknown provider {name:?}{near}")).or_exit(Exit::Usage);
    }
    let is_set_up = |it: &&Provider| model::set_up_by(it, settings, var).is_some();
    let set_up: Vec<_> = PROVIDERS.iter().filter(is_set_up).collect();
    match set_up.is_empty() {
        true => Err(anyhow!("no provider is set up\n{}", model::ADVICE)).or_exit(Exit::Config),
        false => Ok(set_up),
    }
}

fn rows((provider, list): &(&Provider, Listed)) -> Vec<[String; 3]> {
    let shown = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let row = |model: &ListedModel| {
        let name = format!("{}:{}", provider.name, model.id);
        [name, shown(model.context_window), shown(model.max_output_tokens)]
    };
    list.iter().flatten().map(row).collect()
}

fn object((provider, list): &(&Provider, Listed)) -> Value {
    let model = |model: &ListedModel| {
        json!({
            "id": model.id,
            "context_window": model.context_window,
            "max_output_tokens": model.max_output_tokens,
        })
    };
    json!({
        "provider": provider.name,
        "models": list.iter().flatten().map(model).collect::<Vec<_>>(),
        "error": list.as_ref().err().map(ToString::to_string),
    })
}
