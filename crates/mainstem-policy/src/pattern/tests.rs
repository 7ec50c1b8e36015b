//! Parsing of patterns, and the calls that they match.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Pattern;

fn pattern(text: &str) -> Pattern {
    text.parse().unwrap()
}

#[test]
fn reads_and_displays() {
    let check = |text: &str, displayed: &str| {
        assert_eq!(pattern(text).to_string(), displayed);
        assert_eq!(pattern(displayed), pattern(text));
    };
    check("write_file", "write_file");
    check("*", "*");
    check("mcp__*", "mcp__*");
    check("mcp:server/tool.x-y", "mcp:server/tool.x-y");
    check("shell(git *)", "shell(git *)");
    check("shell( git * )", "shell(git *)");
    check("shell(*)", "shell");
    check("shell(**)", "shell");
    check("shell(command: *)", "shell(command: *)");
    check("shell(echo (a))", "shell(echo (a))");
    check("shell(npm run test:*)", "shell(npm run test:*)");
    check("shell(command: git: x)", "shell(command: git: x)");
    check("write_file(path: src/**)", "write_file(path: src/**)");
    check("write_file(path:   src/**)", "write_file(path: src/**)");
    check("agent_spawn(agent_id: reviewer)", "agent_spawn(agent_id: reviewer)");
    check("agent_fanout(/spawns/*/agent_id: reviewer)", "agent_fanout(/spawns/*/agent_id: reviewer)");
    check("t(/a~1b~0c: x)", "t(/a~1b~0c: x)");
    check("fetch(https://docs.rs/*)", "fetch(https://docs.rs/*)");
    check("fetch(url: https://docs.rs/*)", "fetch(url: https://docs.rs/*)");
    check(r#"any({"a":1*})"#, r#"any({"a":1*})"#);
    check("suche(größe: 1?)", "suche(größe: 1?)");
}

#[test]
fn says_where_and_what_would_be_right() {
    let check =
        |text: &str, expected: &str| assert_eq!(text.parse::<Pattern>().unwrap_err().to_string(), expected);
    check(
        "",
        r#"pattern "", column 1: the tool is missing; write its name or a glob, such as write_file or mcp__*"#,
    );
    check(
        "(x)",
        r#"pattern "(x)", column 1: the tool is missing; write its name or a glob, such as write_file or mcp__*"#,
    );
    check("a b", r#"pattern "a b", column 2: ' ' can't be in a tool's name; write tool or tool(arguments)"#);
    check(" a", r#"pattern " a", column 1: ' ' can't be in a tool's name; write tool or tool(arguments)"#);
    check(
        "shell (x)",
        r#"pattern "shell (x)", column 6: ' ' can't be in a tool's name; write tool or tool(arguments)"#,
    );
    check(
        "shell)",
        r#"pattern "shell)", column 6: ')' can't be in a tool's name; write tool or tool(arguments)"#,
    );
    check("shell(git *", r#"pattern "shell(git *", column 12: expected ")" for the "(" in column 6"#);
    check("ö(ü", r#"pattern "ö(ü", column 4: expected ")" for the "(" in column 2"#);
    check("shell(a) b", r#"pattern "shell(a) b", column 9: nothing may follow the ")""#);
    check(
        "shell()",
        r#"pattern "shell()", column 7: nothing between the parentheses; leave them out to mean any arguments"#,
    );
    check(
        "shell(  )",
        r#"pattern "shell(  )", column 7: nothing between the parentheses; leave them out to mean any arguments"#,
    );
    check(
        "w(path:)",
        r#"pattern "w(path:)", column 8: the glob for path is missing; write path: * for any value"#,
    );
    check(
        "w( path: )",
        r#"pattern "w( path: )", column 9: the glob for path is missing; write path: * for any value"#,
    );
    check(
        "w(path:src/**)",
        r#"pattern "w(path:src/**)", column 8: write "path: src/**" if path is an argument's name; if not, name the argument: "command: path:src/**""#,
    );
    check(
        "Bash(git:*)",
        r#"pattern "Bash(git:*)", column 10: write "git: *" if git is an argument's name; if not, name the argument: "command: git:*""#,
    );
    check(
        "t(/a~2: x)",
        r#"pattern "t(/a~2: x)", column 5: in a JSON pointer ~ is written ~0, and / in a name ~1"#,
    );
    check("a\nb", "pattern \"a\\nb\", column 2: a control character; a pattern is one line of text");
}

#[test]
fn covers_and_touches() {
    let check = |text: &str, tool: &str, arguments: Value, covers: bool, touches: bool| {
        let actual = (pattern(text).covers(tool, &arguments), pattern(text).touches(tool, &arguments));
        assert_eq!(actual, (covers, touches), "{text} | {tool} {arguments}");
    };
    check("write_file", "write_file", json!({}), true, true);
    check("write_file", "read_file", json!({}), false, false);
    check("*", "anything", json!(null), true, true);
    check("mcp__*", "mcp__a__b", json!({}), true, true);
    check("shell(git *)", "shell", json!({"command": "git status"}), true, true);
    check("shell(git *)", "shell", json!({"command": "git status | sh"}), false, true);
    check("shell(git *)", "shell", json!({"command": "ls"}), false, false);
    check("shell(git *)", "bash", json!({"command": "git status"}), false, false);
    check("shell(git *)", "shell", json!({"command": ["git", "status"]}), true, true);
    check("shell(git *)", "shell", json!({"command": ["git", "status", ";", "rm"]}), false, true);
    check("shell(git *)", "shell", json!({"cmd": "git status"}), true, true);
    check("shell(git *)", "shell", json!({"command": "rm x", "cmd": "git status"}), false, true);
    check("shell(command: git *)", "shell", json!({"command": "git x", "cmd": "rm x"}), true, true);
    check("shell(git *)", "shell", json!({}), false, false);
    check("write_file(path: src/**)", "write_file", json!({"path": "src/a.rs"}), true, true);
    check("write_file(path: src/**)", "write_file", json!({"path": "src/../x"}), false, false);
    check("write_file(path: src/**)", "write_file", json!({"path": "/work/src/x"}), false, true);
    check("write_file(path: src/**)", "write_file", json!({"content": "src/a.rs"}), false, false);
    check("write_file(src/**)", "write_file", json!({"path": "src/a.rs", "content": "x"}), true, true);
    check("write_file(src/**)", "write_file", json!({"path": "/etc/x", "command": "src/a"}), false, true);
    check("edit(paths: src/**)", "edit", json!({"paths": ["src/a", "src/b"]}), true, true);
    check("edit(paths: src/**)", "edit", json!({"paths": ["src/a", "lib/b"]}), false, true);
    check("edit(paths: src/**)", "edit", json!({"paths": []}), false, false);
    check("grep(src/**)", "grep", json!({"pattern": "fn main", "path": "src"}), true, true);
    check("grep(*secret*)", "grep", json!({"pattern": "my secret", "path": "src"}), false, true);
    check("agent_spawn(reviewer)", "agent_spawn", json!({"agent_id": "reviewer", "task": "x"}), true, true);
    check("agent_spawn(agent_id: reviewer)", "agent_spawn", json!({"agent_id": "tester"}), false, false);
    check("f(/s/*/id: a)", "f", json!({"s": [{"id": "a"}, {"id": "a"}]}), true, true);
    check("f(/s/*/id: a)", "f", json!({"s": [{"id": "a"}, {}]}), false, true);
    check("write(secrets/**)", "write", json!({"filename": "secrets/x"}), false, true);
    check(
        "agent_fanout(/spawns/*/agent_id: a)",
        "agent_fanout",
        json!({"spawns": [{"agent_id": "a"}, {"agent_id": "b"}]}),
        false,
        true,
    );
    check("fetch(https://docs.rs/*)", "fetch", json!({"url": "https://docs.rs/x"}), true, true);
    check("fetch(https://docs.rs/*)", "fetch", json!({"url": "https://docs.rs@evil.com/"}), false, false);
    check(r#"set({"key":"a"*})"#, "set", json!({"value": 1, "key": "a"}), true, true);
}

#[test]
fn whole_tools_are_known() {
    assert!(pattern("mcp__*").is_about_all_of("mcp__x") && pattern("shell(*)").is_about_all_of("shell"));
    assert!(!pattern("shell(git *)").is_about_all_of("shell"));
}

#[test]
fn is_text_in_a_file() {
    assert_eq!(serde_json::from_value::<Pattern>(json!("shell(git *)")).unwrap(), pattern("shell(git *)"));
    assert_eq!(serde_json::to_value(pattern("shell( git * )")).unwrap(), json!("shell(git *)"));
    assert!(serde_json::from_value::<Pattern>(json!("shell(")).unwrap_err().to_string().contains("column 7"));
    assert_eq!(schemars::schema_for!(Pattern).get("type"), Some(&json!("string")));
}

proptest! {
    #[test]
    fn any_text_reads_or_says_where(text in ".{0,30}") {
        match text.parse::<Pattern>() {
            Ok(pattern) => prop_assert_eq!(pattern.to_string().parse::<Pattern>().unwrap(), pattern),
            Err(error) => prop_assert!((1..=text.chars().count() + 1).contains(&error.column)),
        }
    }

    #[test]
    fn patterns_round_trip(text in r"[a-z_*]{1,6}(\(([a-z]{1,4}: |/[a-z*]{1,3}(/[a-z0-9]{1,3})?: )?[ a-z*?:/;(){}\[\]]{1,10}\))?") {
        if let Ok(pattern) = text.parse::<Pattern>() {
            prop_assert_eq!(pattern.to_string().parse::<Pattern>().unwrap(), pattern);
        }
    }
}

#[test]
fn a_pattern_names_what_its_glob_begins_with() {
    let check = |text: &str, path: &str, expected: bool| {
        assert_eq!(pattern(text).names("write_file", &json!({ "path": path })), expected, "{text} {path}");
    };
    check("write_file(path: subagents/**)", "subagents/a.md", true);
    check("write_file(subagents/**)", "subagents/a.md", true);
    check("*_file(.git/hooks/*)", ".git/hooks/pre-commit", true);
    check("write_file(mainstem.toml)", "mainstem.toml", true);
    check("write_file(path: subagents/**)", "skills/a/SKILL.md", false);
    check("edit_file(path: subagents/**)", "subagents/a.md", false);
    for everything in [
        "*",
        "write_file",
        "write_file(**)",
        "write_file(path: *.md)",
        "write_file(./**)",
        "write_file(**/a.md)",
    ] {
        check(everything, "a.md", false);
    }
}

#[test]
fn a_path_is_opened_by_its_name_alone() {
    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(pattern(text).named_path("shell"), expected, "{text}");
    }
    check("shell(path: .git/**)", Some(".git"));
    check("shell(path: ./vendor/new/)", Some("vendor/new"));
    check("*(path: docs)", Some("docs"));
    for other in [
        "shell",
        "shell(git *)",
        "shell(command: .git/**)",
        "write_file(path: .git/**)",
        "shell(path: **)",
        "shell(path: */x/**)",
        "shell(path: a/*)",
        "shell(path: ../x)",
        "shell(path: a/../.git)",
        "shell(path: /etc)",
        "shell(path: ~/x)",
    ] {
        check(other, None);
    }
}
