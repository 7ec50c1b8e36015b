//! `mainstem agents keys`

use mainstem::spec::Key;
use serde_json::{Value, json};

use super::value::absent;
use crate::{
    args::{Form, Keys},
    exit::{Exit, Fault},
    print::{json, print},
    table,
    terminal::Terminal,
};

pub(super) fn keys(args: &Keys, terminal: Terminal) -> Result<Exit, Fault> {
    match args.output {
        Form::Json => json(&Key::all().map(object).collect())?,
        Form::Text => {
            let heads = ["KEY", "VALUE", "DEFAULT", "FOR"];
            print(&table::wrapped(heads, Key::all().map(row), terminal.columns()))?;
        }
    }
    Ok(Exit::Reply)
}

fn object(key: &Key) -> Value {
    json!({
        "name": key.name,
        "aliases": key.aliases,
        "value": plain(key.form),
        "default": absent(key),
        "about": plain(key.about),
    })
}

fn row(key: &Key) -> [String; 4] {
    let names: Vec<_> = key.names().collect();
    [names.join(", "), plain(key.form), default(key).to_owned(), plain(key.about)]
}

/// Returns what an absent key means.
fn default(key: &Key) -> &'static str {
    match key.default {
        "" if key.form.ends_with("required") => "required",
        "" => "none",
        default => default,
    }
}

/// Returns the text without Markdown.
fn plain(markdown: &str) -> String {
    markdown.replace('`', "")
}
