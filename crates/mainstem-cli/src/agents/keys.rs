//! `mainstem agents keys`

use mainstem::spec::Key;
use serde_json::{Value, json};

use super::value::absent;
use crate::{
    args::{Form, Keys},
    exit::{Exit, Fault},
    print::{json, print},
    table,
};

pub(super) fn keys(args: &Keys) -> Result<Exit, Fault> {
    match args.output {
        Form::Json => json(&Key::all().map(object).collect())?,
        Form::Text => print(&table::text(["KEY", "VALUE", "DEFAULT", "FOR"], Key::all().map(row)))?,
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
    [names.join(", "), plain(key.form), absent(key).to_owned(), plain(key.about)]
}

/// Returns the text without Markdown.
fn plain(markdown: &str) -> String {
    markdown.replace('`', "")
}
