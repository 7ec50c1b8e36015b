//! `mainstem models`: the vendors of models.

use mainstem::vendor::{VENDORS, Vendor};
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

const HEADS: [&str; 4] = ["MODEL", "SET UP BY", "KEY", "SERVER"];

const NOTE: &str = "\n\
openai: is OpenAI's Chat Completions API, which many other servers have, too;\n\
responses: is its Responses API, which keeps a model's reasoning between the calls of a turn\n";

pub(crate) fn run(args: &Models, source: &Source, terminal: Terminal) -> Result<Exit, Fault> {
    let flags = Settings::default();
    let config = trust::look_and_warn(flags, source, Reads::NoAgents, terminal).or_exit(Exit::Config)?;
    let settings = &config.settings;
    match args.output {
        Form::Json => json(&VENDORS.iter().map(|vendor| object(vendor, settings)).collect())?,
        Form::Text => {
            let table = table::text(HEADS, VENDORS.iter().map(|vendor| row(vendor, settings)));
            print(&format!("{table}{NOTE}"))?;
        }
    }
    Ok(Exit::Reply)
}

fn row(vendor: &Vendor, settings: &Settings) -> [String; 4] {
    let set_up = model::set_up_by(vendor, settings, var).unwrap_or_else(|| "not set up".to_owned());
    [vendor.example(), set_up, vendor.key.to_owned(), vendor.base_url.to_owned()]
}

fn object(vendor: &Vendor, settings: &Settings) -> Value {
    json!({
        "vendor": vendor.name,
        "default_model": vendor.example(),
        "set_up_by": model::set_up_by(vendor, settings, var),
        "key_variable": vendor.key,
        "server_variable": vendor.base_url,
    })
}
