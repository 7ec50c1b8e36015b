//! `mainstem config`: what is set, and where.

use serde_json::{Value, json};

use crate::{
    args::{ConfigArgs, ConfigCommand, Form, Source},
    config::listed::Listed,
    exit::{Exit, Fault, OrExit},
    print::{json, print_table},
    sanitize::visible,
    terminal::Terminal,
    trust::{self, Reads},
};

const HEADS: [&str; 2] = ["KEY", "VALUE"];

const HEADS_WITH_ORIGIN: [&str; 3] = ["KEY", "VALUE", "FROM"];

pub(crate) fn run(args: &ConfigArgs, source: &Source, terminal: Terminal) -> Result<Exit, Fault> {
    let ConfigCommand::Show { settings, origin, output } = &args.command;
    let config = trust::look_and_warn((**settings).clone(), source, Reads::NoAgents, terminal);
    let all = config.or_exit(Exit::Config)?.settings.listed();
    match output {
        Form::Json => json(&all.iter().map(typed).collect())?,
        Form::Text if *origin => {
            let rows = all.iter().map(|one| [one.key.clone(), visible(&one.value), visible(&one.origin)]);
            print_table(HEADS_WITH_ORIGIN, rows, "settings")?;
        }
        Form::Text => {
            let rows = all.iter().map(|one| [one.key.clone(), visible(&one.value)]);
            print_table(HEADS, rows, "settings")?;
        }
    }
    Ok(Exit::Reply)
}

/// Returns a setting for programs: its value is that of the key, and `null` if it is long or may be
/// secret.
fn typed(Listed { key, value, origin }: &Listed) -> Value {
    // What a file has is JSON, too.
    let value = serde_json::from_str(value).unwrap_or(Value::Null);
    json!({ "key": key, "value": value, "origin": origin })
}
