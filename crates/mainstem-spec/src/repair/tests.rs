//! What is read although it isn't YAML, what isn't, and what is said.

use super::*;
use crate::node::Value;

/// The value of the first key, and what was said.
fn first(yaml: &str) -> Result<(String, Vec<String>), String> {
    let (root, found) = read(yaml).map_err(|error| error.message)?;
    let value = match &root.entries().unwrap()[0].node.value {
        Value::Text(text) => text.clone(),
        other => format!("{other:?}"),
    };
    Ok((value, found.iter().map(ToString::to_string).collect()))
}

#[track_caller]
fn check(yaml: &str, expected: &str) {
    let (value, found) = first(yaml).unwrap_or_else(|error| panic!("{yaml:?}: {error}"));
    assert_eq!(value, expected, "{yaml:?}");
    assert_eq!(found.len(), 1, "{yaml:?}: {found:?}");
}

#[test]
fn plain_text_is_read_as_text() {
    check("description: Use this: always", "Use this: always");
    check("description: Use this when:", "Use this when:");
    check("description: @home", "@home");
    check("description: *urgent* work", "*urgent* work");
    check("description: **bold**: x", "**bold**: x");
    check("description: %d files", "%d files");
    check("description: `cargo test` runs", "`cargo test` runs");
    check("description: [Beta] Reviews", "[Beta] Reviews");
    check("description: [x]", "[x]");
    check("description: {{name}} reviews", "{{name}} reviews");
    check("description: & more: x", "& more: x");
    check("description: ! note: x", "! note: x");
    check("description: - one", "- one");
    check("description: > 5 files: stop", "> 5 files: stop");
    check("description: Fixes issue #12 and C#", "Fixes issue #12 and C#");
    check("description: a\\nb", "a\nb");
    check(
        "description: a: b\\n\\n<example>\\nuser: \\\"x\\\"\\n</example>",
        "a: b\n\n<example>\nuser: \"x\"\n</example>",
    );
    check("description: back\\slash\\nx", "back\\slash\nx");
    check("description: 'it's fine'", "it's fine");
    check("description: 'it''s' and more", "'it''s' and more");
    check("description: \"Say \"yes\" now\"", "Say \"yes\" now");
    check("description: \"Expert\" in code", "\"Expert\" in code");
    check("description: a: é🦀\u{7f}", "a: é🦀\u{7f}");
    check("name: a: b", "a: b");
    check("model: @cf/meta", "@cf/meta");
    check("tools: *", "*");
    check("tools: Bash(git: *), Read # few", "Bash(git: *), Read");
    check("argument-hint: <a: b>", "<a: b>");
    check("description: a: b\r\nmodel: c\r\n", "a: b");
}

#[test]
fn a_description_may_go_on_below() {
    check(
        "description: Use it. Examples:\n\n<example>\nContext: x\nuser: \"y\"\n</example>\nmodel: m",
        "Use it. Examples:\n\n<example>\nContext: x\nuser: \"y\"\n</example>",
    );
    check("description: Use it when:\n- a\n- b: c\nmodel: m", "Use it when:\n- a\n- b: c");
    check("description: Use it when: a\n  or b\nmodel: m", "Use it when: a or b");
    check("description: |\nUse it.\nOften: yes\nmodel: m", "Use it.\nOften: yes");
    // In an example a key is text.
    check("description: x\n<example>\nmodel: y\n</example>\nmodel: m", "x\n<example>\nmodel: y\n</example>");
    check("description: x: <example>a: b\nmodel: m", "x: <example>a: b");
}

#[test]
fn keys_below_a_description_stay_keys() {
    let yaml = "description: x: y\nmore text\n\ntools: Read\ndisallowedTools: Bash\nmodel: m\n";
    let (root, _) = read(yaml).unwrap();
    let keys: Vec<_> =
        root.entries().unwrap().iter().map(|entry| (entry.key.as_str(), entry.at.line)).collect();
    assert_eq!(keys, [("description", 1), ("tools", 4), ("disallowedTools", 5), ("model", 6)]);
    for yaml in [
        // A mistyped key, or one that is indented by mistake: the text does not tell which.
        "description: x: y\nmore\ntoools Read\n tool: Bash",
        "description: a\n\tmodel: b",
        "description: <example>\nx\ntools: Read\n",
        "description: x\n...\ntools: Read",
    ] {
        let text = first(yaml).map(|(text, _)| text);
        assert!(
            !text.as_ref().is_ok_and(|text| text.contains("tool") || text.contains("model")),
            "{yaml:?}: {text:?}"
        );
    }
}

#[test]
fn tabs_are_read_as_spaces() {
    let (root, found) = read("description: a\nworkspace:\n\tmode: shared\n\tpath: x\n").unwrap();
    let Value::Map(inner) = &root.entries().unwrap()[1].node.value else { panic!("{root:?}") };
    assert_eq!(
        inner.iter().map(|entry| (entry.key.as_str(), entry.at.column)).collect::<Vec<_>>(),
        [("mode", 2), ("path", 2)]
    );
    assert_eq!(found[0].to_string(), "3:1: warning: invalid YAML; interpreted as: mode: shared");
}

#[test]
fn what_is_yaml_stays_as_it_is() {
    for (yaml, expected) in [
        ("description: a # comment", "a"),
        ("description: 'a: b #1 \\n'", "a: b #1 \\n"),
        ("description: \"a: b\\nc\" # x", "a: b\nc"),
        ("description: >-\n  a: b\n  c \\n #1", "a: b c \\n #1"),
        ("description: |\n  a\n\n  b: c\n", "a\n\nb: c\n"),
        ("description: a\n  b c", "a b c"),
        ("description: C# and F#", "C# and F#"),
        ("description: \"a\n  b\"", "a b"),
        ("x: [a, b]\ntools: [Read, Grep]", "List"),
    ] {
        let (value, found) = first(yaml).unwrap();
        assert!(value.starts_with(expected) && found.is_empty(), "{yaml:?}: {value:?} {found:?}");
    }
}

#[test]
fn what_is_not_plain_stays_an_error() {
    for yaml in [
        "description: [Beta",
        "description: \"a",
        "description: 'a\nmodel: b",
        "url: a: b",
        "permissions:\n  shell: *",
        "tools: [Read, Grep] x: y\ntools2: [",
        "description: a: b\n- c: [",
        "headers:\n  x: @secret",
    ] {
        // The last line is never text of a description.
        let text = format!("{yaml}\nsteps: [");
        assert!(read(&text).is_err(), "{text:?}");
    }
}

#[test]
fn the_line_that_was_meant_is_shown_in_part_if_it_is_long() {
    let (_, found) = first(&format!("description: a: {}", "x".repeat(500))).unwrap();
    assert_eq!(found[0].chars().count(), "1:14: warning: invalid YAML; interpreted as: ".len() + 201);
    let (_, found) = first("description: a: b\nc\n\nd\u{1b}\nmodel: x").unwrap();
    assert_eq!(
        found,
        [r#"1:14: warning: invalid YAML in 4 lines; interpreted as: description: "a: b\nc\n\nd\u001b""#]
    );
}
