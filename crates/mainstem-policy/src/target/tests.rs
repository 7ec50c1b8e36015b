//! The arguments that a rule applies to.

use serde_json::{Value, json};

use super::{Target, at, possible, principal};

fn shown(targets: &[Target<'_>]) -> String {
    targets
        .iter()
        .map(|target| format!("{:?} {}", target.reading, target.text))
        .collect::<Vec<_>>()
        .join(", ")
}

#[test]
fn a_field_is_found_and_read_as_its_name_says() {
    let check = |field: &str, arguments: Value, expected: &str| {
        assert_eq!(shown(&at(field, &arguments)), expected, "{field} {arguments}")
    };
    check("path", json!({"path": "a/b"}), "Path a/b");
    check("file_path", json!({"file_path": "a"}), "Path a");
    check("filePath", json!({"filePath": "a"}), "Path a");
    check("paths", json!({"paths": ["a", "b"]}), "Path a, Path b");
    check("command", json!({"command": "ls"}), "Command ls");
    check("command", json!({"command": ["git", "status", 1]}), "Command git status 1");
    check("base_url", json!({"base_url": "https://a"}), "Url https://a");
    check("agent_id", json!({"agent_id": "reviewer"}), "Text reviewer");
    check("baseURL", json!({"baseURL": "https://a"}), "Url https://a");
    check("profile", json!({"profile": "a"}), "Text a");
    check("mode", json!({"mode": true}), "Text true");
    check("n", json!({"n": 1.5}), "Text 1.5");
    check("n", json!({"n": null}), "Absent ");
    check("n", json!({}), "Absent ");
    check("n", json!("text"), "Absent ");
    check("o", json!({"o": {"b": 1, "a": {"d": 1, "c": 2}}}), r#"Text {"a":{"c":2,"d":1},"b":1}"#);
    check("/a/path", json!({"a": {"path": "x"}}), "Path x");
    check(
        "/spawns/*/agent_id",
        json!({"spawns": [{"agent_id": "x"}, {"agent_id": "y"}, {}]}),
        "Text x, Text y, Absent ",
    );
    check("/paths/1", json!({"paths": ["a", "b"]}), "Path b");
    check("/paths/*", json!({"paths": ["a", "b"]}), "Path a, Path b");
    check("/a~1b/m~0n", json!({"a/b": {"m~n": 1}}), "Text 1");
    check("/o/*", json!({"o": {"a": 1, "b": 2}}), "Text 1, Text 2");
    check("/a/9", json!({"a": [1]}), "Absent ");
    check("/a/*/b", json!({"a": []}), "");
    check("/", json!({"": "x"}), "Text x");
}

#[test]
fn without_a_field_it_is_what_the_call_acts_on() {
    let check = |arguments: Value, all: &str, any: &str| {
        assert_eq!(shown(&principal(&arguments)), all, "{arguments}");
        assert_eq!(shown(&possible(&arguments)), any, "{arguments}");
    };
    check(json!({"command": "ls", "timeout": 3}), "Command ls", "Command ls");
    check(json!({"pattern": "fn", "path": "src"}), "Path src", "Text fn, Path src");
    check(json!({"query": "rust", "limit": 3}), "Text rust", "Text rust");
    check(
        json!({"path": "/etc/passwd", "command": "git x"}),
        "Command git x, Path /etc/passwd",
        "Path /etc/passwd, Command git x",
    );
    check(json!({"path": null, "query": "x"}), "Text x", "Text x");
    check(json!({"filename": "x", "n": 1}), r#"Text {"filename":"x","n":1}"#, "Path x");
    check(json!({"command": "ls", "cwd": "/x"}), "Command ls", "Command ls, Path /x");
    check(json!({"b": 1, "a": [2]}), r#"Text {"a":[2],"b":1}"#, r#"Text {"a":[2],"b":1}"#);
    check(json!({}), "Text {}", "Text {}");
    check(json!(null), "Text null", "Text null");
}
