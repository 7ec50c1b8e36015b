//! `mainstem models`: the providers of models.

use mainstem::{
    policy::known_models::DATE,
    provider::{PROVIDERS, Provider},
};
use serde_json::{Value, json};

use crate::{
    args::{Form, Models, Source},
    config::{Settings, var},
    exit::{Exit, Fault, OrExit},
    model,
    print::{json, print},
    table,
    terminal::Terminal,
    trust::{self, Reads},
};

mod online;

const HEADS: [&str; 4] = ["MODEL", "SET UP BY", "KEY", "SERVER"];

const NOTE: &str = "\n\
openai: is OpenAI's Chat Completions API, which many other servers have, too;\n\
responses: is its Responses API, which keeps a model's reasoning between the calls of a turn\n";

pub(crate) fn run(args: &Models, source: &Source, terminal: Terminal) -> Result<Exit, Fault> {
    let flags = Settings::default();
    let config = trust::look_and_warn(flags, source, Reads::NoAgents, terminal).or_exit(Exit::Config)?;
    let settings = &config.settings;
    if let Some(name) = &args.online {
        return online::run(name, args.output, settings);
    }
    match args.output {
        Form::Json => json(&PROVIDERS.iter().map(|provider| object(provider, settings)).collect())?,
        Form::Text => {
            let table = table::text(HEADS, PROVIDERS.iter().map(|provider| row(provider, settings)));
            let prices = format!(
                "prices and context windows are those of {DATE}; `[prices]` and `[context_windows]` in\n\
                 mainstem.toml have others\n"
            );
            print(&format!("{table}{NOTE}{prices}"))?;
        }
    }
    Ok(Exit::Reply)
}

fn row(provider: &Provider, settings: &Settings) -> [String; 4] {
    let set_up = model::set_up_by(provider, settings, var).unwrap_or_else(|| "not set up".to_owned());
    [provider.example(), set_up, provider.key.to_owned(), provider.base_url.to_owned()]
}

fn object(provider: &Provider, settings: &Settings) -> Value {
    json!({
        "provider": provider.name,
        "default_model": provider.default_name(),
        "set_up_by": model::set_up_by(provider, settings, var),
        "key_variable": provider.key,
        "server_variable": provider.base_url,
    })
}
