//! What the rows have to have.

use std::{collections::BTreeSet, path::Path};

use super::*;
use crate::parse;

#[test]
fn each_row_is_whole_and_each_name_is_one_key() {
    let mut names = BTreeSet::new();
    for key in Key::all() {
        assert!(key.names().all(|name| names.insert(name)), "{key:?}");
        assert!(!key.form.is_empty() && key.about.ends_with('.'), "{}", key.name);
        let is_of_it = |name: &&str| key.names().any(|own| own == *name) || *name == SECTION;
        assert!(key.only_ours.iter().all(is_of_it), "{}", key.name);
    }
    assert!(!names.contains(SECTION));
}

#[test]
fn a_default_is_what_a_new_spec_has() {
    let spec = AgentSpec::new("a", "Does it");
    for key in Key::all().filter(|key| !["name", "description"].contains(&key.name)) {
        match key.value(&spec) {
            Value::Null => {
                assert!(
                    ["", "the parent's", "all of the parent's", "the settings'"].contains(&key.default),
                    "{}",
                    key.name
                )
            }
            Value::Array(none) => assert!(none.is_empty() && key.default == "none", "{}", key.name),
            Value::String(text) => assert_eq!(text, key.default, "{}", key.name),
            value => assert_eq!(value.to_string(), key.default, "{}", key.name),
        }
    }
}

/// Files with every key, each with another value than its default.
const FILES: [&str; 2] = [
    "description: Reviews\nmodel: m\nsteps: 7\ntemperature: 0.2\ntop_p: 0.9\ncompact_at: 60\neffort: low\nthinking_budget: 5\nmax_output_tokens: 6\nserver_tools: web_search\ntools: read\n\
     disallowed_tools: write\nskills: review\nmcp_servers: docs\nhidden: true\nmode: subagent\n\
     workspace: { mode: shared, path: a }\npermissions: { shell: ask }\npersist_session: true\non_lost: resume\n\
     timeout_seconds: 9\nmax_tokens_total: 9\noutput_schema: { type: object }\n",
    "name: a\ndescription: Is far away\nurl: https://host.example\nprotocol: a2a\nheaders: { x-team: red }\n",
];

/// A row without `read` compiles.
#[test]
fn each_key_of_a_file_reaches_the_spec() {
    let [here, away] = FILES.map(|lines| {
        let text = format!("---\n{lines}---\n");
        parse("a", &text, Path::new("subagents/a.md")).expect(lines).spec
    });
    let new = AgentSpec::new("b", "Does it");
    let is_unset = |key: &&Key| [&here, &away].iter().all(|spec| key.value(spec) == key.value(&new));
    let unset: Vec<_> = Key::all().filter(is_unset).map(|key| key.name).collect();
    assert!(unset.is_empty(), "no file above sets {unset:?}, or its row does not read it");
}

/// Names the fields of a spec; one that is not listed does not compile.
macro_rules! fields {
    ($($field:ident)*) => {{
        let AgentSpec { $($field: _,)* } = AgentSpec::new("a", "Does it");
        [$(stringify!($field)),*]
    }};
}

/// `mainstem agents show` has the values of the rows.
#[test]
fn each_field_of_a_spec_is_the_value_of_a_row() {
    let fields = fields![
        id description prompt model steps temperature top_p compact_at effort thinking_budget max_output_tokens server_tools tools disallowed_tools skills mcp_servers hidden
        mode workspace url protocol headers permissions persist_session on_lost timeout max_tokens_total output_schema origin
    ];
    let others: Vec<_> = fields.into_iter().filter(|field| Key::named(field).is_none()).collect();
    // The rows of three have other names; the prompt and the origin have none.
    assert_eq!(others, ["id", "prompt", "workspace", "timeout", "origin"]);
}

#[test]
fn the_table_is_the_one_in_the_documentation() {
    assert_eq!(Key::table(), include_str!("../../KEYS.md"), "run `cargo xtask schema`");
}

#[test]
fn secrets_are_not_among_the_values() {
    let spec = AgentSpec::new("a", "Does it")
        .with_url("https://me:secret@host.example/a?key=k")
        .with_header("authorization", "secret");
    let shown = Key::all().map(|key| key.value(&spec).to_string()).collect::<String>();
    assert!(!shown.contains("secret") && shown.contains("authorization"), "{shown}");
}
