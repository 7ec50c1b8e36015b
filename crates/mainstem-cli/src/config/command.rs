//! `mainstem config`: what is set, and where.

use serde_json::json;

use crate::{
    args::{ConfigArgs, ConfigCommand, Form, Source},
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
        Form::Json => json(&json!(all))?,
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
