//! What the rows have to have.

use std::collections::BTreeSet;

use super::*;

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
                assert!(["", "the parent's", "all of the parent's"].contains(&key.default), "{}", key.name)
            }
            Value::Array(none) => assert!(none.is_empty() && key.default == "none", "{}", key.name),
            Value::String(text) => assert_eq!(text, key.default, "{}", key.name),
            value => assert_eq!(value.to_string(), key.default, "{}", key.name),
        }
    }
}

/// A new field has to be in the spec's own JSON, in a row, or both: what `mainstem agents show`
/// shows would lack it otherwise.
#[test]
fn each_field_of_a_spec_is_the_value_of_a_row() {
    let AgentSpec {
        id: _,
        description: _,
        prompt: _,
        model: _,
        steps: _,
        temperature: _,
        top_p: _,
        tools: _,
        disallowed_tools: _,
        skills: _,
        mcp_servers: _,
        hidden: _,
        mode: _,
        workspace: _,
        url: _,
        headers: _,
        permissions: _,
        persist_session: _,
        timeout: _,
        max_tokens_total: _,
        output_schema: _,
        origin: _,
    } = AgentSpec::new("a", "Does it");
    // All but the prompt and the origin; the workspace has two.
    assert_eq!(Key::all().count(), 22 - 2 + 1);
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
