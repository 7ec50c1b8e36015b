//! Each key, well and badly written, and what is said about it.

use std::time::Duration;

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Key;
use crate::{Effort, Header, Mode, OnLost, Permission, Protocol, WorkspaceMode};

fn read(text: &str) -> Result<Parsed, Vec<SpecError>> {
    parse("reviewer", text, Path::new("subagents/reviewer.md"))
}

/// The spec of a file with these lines in its front matter, which must be fine.
#[track_caller]
fn spec(lines: &str) -> AgentSpec {
    let parsed = read(&format!("---\ndescription: Reviews\n{lines}\n---\nBe brief.")).expect(lines);
    assert_eq!(parsed.warnings, [], "{lines}");
    parsed.spec
}

fn expected() -> AgentSpec {
    AgentSpec::new("reviewer", "Reviews")
        .with_prompt("Be brief.")
        .with_origin(Origin::File("subagents/reviewer.md".into()))
}

#[test]
fn every_key_reaches_the_spec() {
    let check = |lines: &str, expected: AgentSpec| assert_eq!(spec(lines), expected, "{lines}");
    check("", expected());
    check("name: reviewer", expected());
    check("model: openai:gpt-4o", expected().with_model("openai:gpt-4o"));
    for steps in ["steps: 7", "max_iters: 7", "maxTurns: 7"] {
        check(steps, expected().with_steps(7));
    }
    check("effort: none", expected().with_effort(Effort::None));
    check(
        "thinking_budget: 1024\nmax_output_tokens: 1025",
        expected().with_thinking_budget(1024).with_max_output_tokens(1025),
    );
    check("temperature: 0.2\ntop_p: 1", expected().with_temperature(0.2).with_top_p(1.0));
    check("compact_at: 60", expected().with_compact_at(60));
    check("compact_at: 0", expected().with_compact_at(0));
    for list in ["read, grep", "[read, grep]", "\n  - read\n  - grep", "' read ,, grep, '"] {
        check(&format!("tools: {list}"), expected().with_tools(["read", "grep"]));
        check(&format!("disallowed_tools: {list}"), expected().with_disallowed_tools(["read", "grep"]));
        check(&format!("skills: {list}"), expected().with_skills(["read", "grep"]));
    }
    check("tools: []\nskills: ''", expected().with_tools([""; 0]).with_skills([""; 0]));
    check("hidden: true\npersist_session: True", expected().with_hidden(true).with_persist_session(true));
    check("hidden: false\npersist_session: false", expected());
    check("on_lost: resume", expected().with_on_lost(OnLost::Resume));
    check("on_lost: close", expected());
    check("mode: primary", expected().with_mode(Mode::Primary));
    check("mode: subagent", expected().with_mode(Mode::Subagent));
    check("mode: all", expected());
    check("workspace:\n  mode: shared", expected().with_workspace_mode(WorkspaceMode::Shared));
    check("workspace.mode: shared", expected().with_workspace_mode(WorkspaceMode::Shared));
    check("workspace: {mode: isolated}", expected());
    check("timeout_seconds: 0", expected().with_timeout(Duration::ZERO));
    check("timeout_seconds: 90", expected().with_timeout(Duration::from_secs(90)));
    check("max_tokens_total: 100000", expected().with_max_tokens_total(100_000));
}

#[test]
fn permissions_keep_their_order() {
    let flat = "permissions:\n  \"shell(git diff*)\": allow\n  shell: ask\n  write_*: deny";
    let rules = expected()
        .with_permission("shell(git diff*)", Permission::Allow)
        .with_permission("shell", Permission::Ask)
        .with_permission("write_*", Permission::Deny);
    assert_eq!(spec(flat), rules);

    let grouped = "permissions:\n  deny: [write_*, shell]\n  allow:\n    - read_*\n  shell(ls): ask";
    let rules = expected()
        .with_permission("write_*", Permission::Deny)
        .with_permission("shell", Permission::Deny)
        .with_permission("read_*", Permission::Allow)
        .with_permission("shell(ls)", Permission::Ask);
    assert_eq!(spec(grouped), rules);
}

#[test]
fn an_output_schema_is_json() {
    let schema = "output_schema:\n  type: object\n  required: [score]\n  properties:\n    score: {type: integer, minimum: 0}\n    no: {type: [string, 'null'], default: ~, pattern: 0755, maximum: 0.5}\n  additionalProperties: false";
    assert_eq!(
        spec(schema).output_schema.unwrap(),
        json!({
            "type": "object",
            "required": ["score"],
            "properties": {
                "score": {"type": "integer", "minimum": 0},
                "no": {"type": ["string", "null"], "default": null, "pattern": "0755", "maximum": 0.5},
            },
            "additionalProperties": false,
        })
    );
}

#[test]
fn a_remote_agent_has_headers_that_debug_does_not_show() {
    let text = "---\ndescription: Far away\nurl: https://agents.example/reviewer\nprotocol: langgraph\nheaders:\n  Authorization: Bearer ${TOKEN}\n  x-team: 'red'\n---\n";
    let spec = read(text).unwrap().spec;
    assert_eq!(spec.url.as_deref(), Some("https://agents.example/reviewer"));
    assert_eq!(spec.protocol, Some(Protocol::LangGraph));
    assert_eq!(spec.headers, [Header::new("Authorization", "Bearer ${TOKEN}"), Header::new("x-team", "red")]);
    assert!(!format!("{spec:?}").contains("Bearer"));
}

#[test]
fn prompt_and_description_are_trimmed_and_otherwise_kept() {
    let check = |text: &str, description: &str, prompt: &str| {
        let spec = read(text).unwrap().spec;
        assert_eq!((spec.description.as_str(), spec.prompt.as_str()), (description, prompt), "{text:?}");
    };
    check("---\ndescription: a\n---\n\n    code\n\n---\n- b\n\n", "a", "    code\n\n---\n- b");
    check("\u{feff}---\r\ndescription: a\r\n---\r\nb\r\n\r\nc\r\n", "a", "b\n\nc");
    check("---\ndescription: >\n  two\n  lines\n---", "two lines", "");
    check("---\ndescription: a --- b\n---\n", "a --- b", "");
    check("---\ndescription: \"é: #1\" # comment\n---\n🦀", "é: #1", "🦀");
}

/// Everything found about a file with these lines from line 2 on.
fn report(lines: &str) -> String {
    report_file(&format!("---\n{lines}\n---\nBe brief.\n"))
}

fn report_file(text: &str) -> String {
    let found = match read(text) {
        Ok(parsed) => parsed.warnings,
        Err(found) => found,
    };
    found.iter().map(|error| format!("{error}\n")).collect()
}

#[test]
fn a_file_that_cannot_be_split_says_what_is_missing() {
    assert_snapshot!(report_file("You review code."), @r#"subagents/reviewer.md:1:1: error: the front matter is missing: the file starts with a "---" line, keys, and a "---" line"#);
    assert_snapshot!(report_file("---\ndescription: a\nBe brief.\n"), @r#"subagents/reviewer.md:1:1: error: the front matter is not closed: put a "---" line between keys and prompt"#);
    assert_snapshot!(report_file(""), @r#"subagents/reviewer.md:1:1: error: the front matter is missing: the file starts with a "---" line, keys, and a "---" line"#);
}

#[test]
fn a_description_is_required() {
    assert_snapshot!(report(""), @"subagents/reviewer.md:1:1: error: the description is missing: say what the agent is for, the model chooses by it");
    assert_snapshot!(report("# only a comment"), @"subagents/reviewer.md:1:1: error: the description is missing: say what the agent is for, the model chooses by it");
    assert_snapshot!(report("model: openai:gpt-4o"), @"subagents/reviewer.md:1:1: error: the description is missing: say what the agent is for, the model chooses by it");
    assert_snapshot!(report("description: '  '"), @"subagents/reviewer.md:2:14: error: the description is empty: say what the agent is for, the model chooses by it");
    assert_snapshot!(report("model: m\ndescription:"), @"subagents/reviewer.md:3:1: error: expected text, got nothing: give it a value or remove the key");
    assert_snapshot!(report("description:\n  - a"), @"subagents/reviewer.md:3:3: error: expected text, got a list");
}

#[test]
fn a_malformed_value_is_an_error_at_its_place() {
    assert_snapshot!(report("description: a\nmodel: m\ntemperature: hot"), @r#"subagents/reviewer.md:4:14: error: expected a number, got "hot""#);
    assert_snapshot!(report("description: a\nsteps: 0"), @"subagents/reviewer.md:3:8: error: steps must be at least 1");
    assert_snapshot!(report("description: a\nsteps: 2.5"), @"subagents/reviewer.md:3:8: error: expected a whole number, got the number 2.5");
    assert_snapshot!(report("description: a\nmaxTurns: '20'"), @r#"subagents/reviewer.md:3:11: error: expected a whole number, got "20": remove the quotes"#);
    assert_snapshot!(report("description: a\nsteps: 1_000"), @r#"subagents/reviewer.md:3:8: error: expected a whole number, got "1_000""#);
    assert_snapshot!(report("description: a\nsteps: 99999999999"), @"subagents/reviewer.md:3:8: error: the number 99999999999 is out of range");
    assert_snapshot!(report("description: a\neffort: hihg\nmax_output_tokens: 0\nthinking_budget: -1"), @r#"
    subagents/reviewer.md:3:9: error: expected "none" or "minimal" or "low" or "medium" or "high" or "xhigh" or "max", got "hihg"; did you mean "high"?
    subagents/reviewer.md:4:20: error: max_output_tokens must be at least 1
    subagents/reviewer.md:5:18: error: the number -1 is out of range
    "#);
    assert_snapshot!(report("description: a\nmax_output_tokens: 9\nthinking_budget: 9"), @"subagents/reviewer.md:4:1: error: thinking_budget must be below max_output_tokens, which counts thinking: 9 is not below 9");
    assert_snapshot!(report("description: a\ntemperature: 3\ntop_p: -0.1"), @r#"
    subagents/reviewer.md:3:14: error: temperature must be in 0 to 2, not 3
    subagents/reviewer.md:4:8: error: top_p must be in 0 to 1, not -0.1
    "#);
    assert_snapshot!(report("description: a\ncompact_at: 9"), @"subagents/reviewer.md:3:13: error: compact_at must be in 10 to 100, or 0 for never, not 9");
    assert_snapshot!(report("description: a\ntemperature: .nan"), @r#"subagents/reviewer.md:3:14: error: expected a number, got ".nan""#);
    assert_snapshot!(report("description: a\nhidden: yes\npersist_session: 1"), @r#"
    subagents/reviewer.md:3:9: error: expected true or false, got "yes"; did you mean "true"?
    subagents/reviewer.md:4:18: error: expected true or false, got the number 1
    "#);
    assert_snapshot!(report("description: a\nmode: sub-agent"), @r#"subagents/reviewer.md:3:7: error: expected "primary" or "subagent" or "all", got "sub-agent"; did you mean "subagent"?"#);
    assert_snapshot!(report("description: a\nmode: [all]"), @r#"subagents/reviewer.md:3:7: error: expected "primary" or "subagent" or "all", got a list"#);
    assert_snapshot!(report("description: 5\nmodel: true"), @r#"
    subagents/reviewer.md:2:14: error: expected text, got the number 5: put it in quotes
    subagents/reviewer.md:3:8: error: expected text, got true: put it in quotes
    "#);
    assert_snapshot!(report("description: a\nmodel: ''"), @"subagents/reviewer.md:3:8: error: the value is empty");
    assert_snapshot!(report("description: a\nskills: {read: true}"), @"subagents/reviewer.md:3:9: error: expected a list, or names with commas in between, got a mapping");
    assert_snapshot!(report("description: a\ntools:\n  - read\n  - 5"), @"subagents/reviewer.md:5:5: error: expected text, got the number 5: put it in quotes");
    assert_snapshot!(report("description: a\ntools:"), @"subagents/reviewer.md:3:1: error: expected a list, or names with commas in between, got nothing: give it a value or remove the key");
    assert_snapshot!(report("description: a\ntimeout_seconds: -1\nmax_tokens_total: 0"), @r#"
    subagents/reviewer.md:3:18: error: the number -1 is out of range
    subagents/reviewer.md:4:19: error: max_tokens_total must be at least 1
    "#);
    assert_snapshot!(report("description: a\noutput_schema: object"), @"subagents/reviewer.md:3:16: error: output_schema must be a mapping, such as `type: object`");
}

#[test]
fn sections_report_each_of_their_entries() {
    assert_snapshot!(report("description: a\nworkspace:\n  mode: share\n  path: ../other\n  root: x"), @r#"
    subagents/reviewer.md:4:9: error: expected "isolated" or "shared", got "share"; did you mean "shared"?
    subagents/reviewer.md:5:9: error: the path "../other" leaves the workspace: write a relative path without ".."
    subagents/reviewer.md:6:3: warning: unknown key "workspace.root"
    "#);
    assert_snapshot!(report("description: a\nworkspace: shared"), @r#"subagents/reviewer.md:3:12: error: expected a mapping of `key: value` lines, got "shared""#);
    assert_snapshot!(report("description: a\nworkspace.path: /etc"), @r#"subagents/reviewer.md:3:17: error: the path "/etc" leaves the workspace: write a relative path without "..""#);
    assert_snapshot!(report("description: a\npermissions:\n  shell: alow\n  read:\n  forbid: [x]\n  deny: [1]"), @r#"
    subagents/reviewer.md:4:10: error: expected "allow" or "ask" or "deny", got "alow"; did you mean "allow"?
    subagents/reviewer.md:5:3: error: expected "allow" or "ask" or "deny", got nothing: give it a value or remove the key
    subagents/reviewer.md:6:3: error: expected "allow" or "ask" or "deny", got "forbid"
    subagents/reviewer.md:7:10: error: expected text, got the number 1: put it in quotes
    "#);
    assert_snapshot!(report("description: a\npermissions: deny"), @r#"subagents/reviewer.md:3:14: error: expected a mapping of `key: value` lines, got "deny""#);
}

#[test]
fn no_header_value_is_repeated() {
    let lines = "description: a\nurl: ftp://user:secret@host\nheaders:\n  a b: secret\n  c: 5e3c\n  d: 1234\n  e: \"sec\\nret\"\n  f:";
    assert_snapshot!(report(lines), @r#"
    subagents/reviewer.md:3:6: error: the url is not an address: it starts with https:// or http:// and a host
    subagents/reviewer.md:5:8: error: "a b" is not a header name
    subagents/reviewer.md:7:6: error: the value of header "d" is no text: put it in quotes
    subagents/reviewer.md:8:6: error: the value of header "e" has a control character
    subagents/reviewer.md:9:3: error: the value of header "f" is no text: put it in quotes
    "#);
    assert_snapshot!(report("description: a\nheaders: 'x: secret'"), @r#"
    subagents/reviewer.md:3:1: warning: headers are ignored without a url
    subagents/reviewer.md:3:10: error: expected header names, each with its value
    "#);
    assert_snapshot!(report("description: a\nheaders: [secret]"), @r#"
    subagents/reviewer.md:3:1: warning: headers are ignored without a url
    subagents/reviewer.md:3:10: error: expected header names, each with its value
    "#);
}

#[test]
fn unknown_keys_are_warnings() {
    assert_snapshot!(report("desciption: a\ndescription: a\ncolour: red\ntopP: 1\nmaxIters: 3\nworkspace: {mod: shared}"), @r#"
    subagents/reviewer.md:2:1: warning: unknown key "desciption"; did you mean "description"?
    subagents/reviewer.md:4:1: warning: unknown key "colour"
    subagents/reviewer.md:5:1: warning: unknown key "topP"; did you mean "top_p"?
    subagents/reviewer.md:6:1: warning: unknown key "maxIters"; did you mean "max_iters"?
    subagents/reviewer.md:7:13: warning: unknown key "workspace.mod"; did you mean "workspace.mode"?
    "#);
    assert_snapshot!(report("description: a\n\"\\e[31m\": x"), @r#"subagents/reviewer.md:3:1: warning: unknown key "\u{1b}[31m""#);
}

#[test]
fn every_key_that_is_suggested_exists() {
    for key in Key::vocabulary() {
        let report = report(&format!("{key}: {{}}"));
        assert!(!report.contains("unknown key"), "{report}");
    }
}

#[test]
fn what_is_ignored_is_a_warning() {
    assert_snapshot!(report("name: critic\ndescription: a"), @r#"subagents/reviewer.md:2:7: warning: the agent is called "reviewer" after its file, not "critic""#);
    assert_snapshot!(report("description: a\nmaxTurns: 3\nsteps: 5\nmax_iters: 4"), @r#"
    subagents/reviewer.md:3:1: warning: "maxTurns" is ignored, because "steps" is given too
    subagents/reviewer.md:5:1: warning: "max_iters" is ignored, because "steps" is given too
    "#);
    assert_snapshot!(report("description: a\nurl: https://x.example"), @"subagents/reviewer.md:3:1: warning: the prompt below is ignored, because url brings its own");
    assert_snapshot!(report("description: a\nprotocol: a2a"), @"subagents/reviewer.md:3:1: warning: a protocol is ignored without a url");
    assert_snapshot!(report("description: a\nheaders: {a: b}"), @"subagents/reviewer.md:3:1: warning: headers are ignored without a url");
}

#[test]
fn what_is_ignored_is_not_in_the_spec() {
    let text = "---\ndescription: a\nmaxTurns: 3\nsteps: 5\nurl: https://x.example\nname: y\n---\nBe brief.";
    let spec = read(text).unwrap().spec;
    assert_eq!((spec.steps, spec.prompt.as_str(), spec.id.as_str()), (5, "", "reviewer"));
    assert_eq!(spec.validate(), Ok(()));
}

#[test]
fn a_body_beside_a_directory_is_the_prompt() {
    let parsed = read("---\ndescription: a\nworkspace: {path: ./x}\n---\nBe brief.").unwrap();
    assert_eq!((parsed.spec.prompt.as_str(), parsed.warnings), ("Be brief.", vec![]));
}

#[test]
fn everything_can_be_listed_beside_more() {
    let tools = |list: &str| read(&format!("---\ndescription: a\ntools: {list}\n---\n")).unwrap().spec.tools;
    assert_eq!(tools("'*'"), None);
    assert_eq!(tools("['*']"), None);
    let both = Some(vec!["*".to_owned(), "agent_spawn".to_owned()]);
    assert_eq!(tools("['*', agent_spawn]"), both);
    assert_eq!(tools("'*, agent_spawn'"), both);
    assert_eq!(tools("[]"), Some(vec![]));
}

#[test]
fn a_listed_name_has_its_place() {
    let text = "---\ndescription: a\nmodel: x:y\ntools:\n  - read\n  - fly\nmcp_servers: {git: {command: git}}\nskills: a, b\n---\n";
    let parsed = read(text).unwrap();
    let at = |key: &str, name: &str| parsed.place_of(key, Some(name)).map(|at| (at.line, at.column));
    assert_eq!(at("model", "x:y"), Some((3, 8)));
    assert_eq!(at("tools", "fly"), Some((6, 5)));
    assert_eq!(at("mcp_servers", "git"), Some((7, 15)));
    assert_eq!(at("skills", "b"), Some((8, 9)));
    // What is not listed so, such as a name of another product, is somewhere under its key.
    assert_eq!(at("tools", "read_file"), Some((4, 1)));
    assert_eq!(at("url", "x"), None);
}

#[test]
fn contradictions_are_errors() {
    assert_snapshot!(report("description: a\nurl: https://x.example\nworkspace.path: x"), @r#"
    subagents/reviewer.md:3:1: error: url and workspace.path exclude one another: keep one of them
    subagents/reviewer.md:3:1: warning: the prompt below is ignored, because url brings its own
    "#);
    assert_snapshot!(report("description: a\nmodel: m\ndescription: b"), @r#"subagents/reviewer.md:4:1: error: "description" is given twice, before on line 2"#);
    assert_snapshot!(report("description: a\noutput_schema:\n  type: object\n  properties: {a: {}, b: {}, a: {}}"), @r#"subagents/reviewer.md:5:30: error: "a" is given twice, before on line 5"#);
    assert_snapshot!(report("description: a\nworkspace.mode: shared\nworkspace: {mode: isolated}"), @r#"subagents/reviewer.md:4:13: error: "workspace.mode" is given twice, before on line 3"#);
}

#[test]
fn a_line_that_can_be_repaired_hides_no_other_error() {
    // The first line is repaired, so the error is about the other one.
    assert_snapshot!(report("description: Use: one\ntools: a: b\n  - read_file"), @r#"subagents/reviewer.md:3:9: error: write each value of "tools" as an item of the list below it: mapping values are not allowed in this context"#);
    assert_snapshot!(report("description: Reviews: code\ntools: [read_file,\n  grep_files"), @"subagents/reviewer.md:3:8: error: close the bracket of line 3: unclosed bracket '['");
    assert_snapshot!(report("description: d\ntools: read_file: x\n  - grep_files"), @r#"subagents/reviewer.md:3:17: error: write each value of "tools" as an item of the list below it: mapping values are not allowed in this context"#);
}

#[test]
fn yaml_errors_keep_their_place() {
    assert_snapshot!(report("description: a\nurl: x: y"), @r#"subagents/reviewer.md:3:7: error: put the value of "url" in quotes: mapping values are not allowed in this context"#);
    assert_snapshot!(report("description: a\npermissions:\n  shell: *"), @r#"subagents/reviewer.md:4:10: error: put the value of "shell" in quotes: while scanning an anchor or alias, did not find expected alphabetic or numeric character"#);
    assert_snapshot!(report("description: a\nmode: @home"), @r#"subagents/reviewer.md:3:7: error: put the value of "mode" in quotes: unexpected character: `@'"#);
    assert_snapshot!(report("description: a\nmode: *a"), @r#"subagents/reviewer.md:3:7: error: put the value of "mode" in quotes: reference to unknown value"#);
    assert_snapshot!(report("description: 'a\nmodel: b"), @"subagents/reviewer.md:3:1: error: close the quote of line 2: invalid indentation in multiline quoted scalar");
    assert_snapshot!(report("description: a\ntools: [read"), @"subagents/reviewer.md:3:8: error: close the bracket of line 3: unclosed bracket '['");
    assert_snapshot!(report("description: a\rpermissions: [a\r- \nsteps: 0"), @"subagents/reviewer.md:5:6: error: close the bracket of line 3: illegal placement of ':' indicator");
    assert_snapshot!(report("description: a\n\tmodel: b"), @"subagents/reviewer.md:2:14: error: indent with spaces, not with tabs: while scanning a plain scalar, found a tab");
    assert_snapshot!(report("- description: a"), @"subagents/reviewer.md:2:1: error: expected a mapping of `key: value` lines, got a list");
    assert_snapshot!(report("just text"), @r#"subagents/reviewer.md:2:1: error: expected a mapping of `key: value` lines, got "just text""#);
    assert_snapshot!(report("description: a\n...\nmodel: b"), @"subagents/reviewer.md:4:1: error: only single YAML document expected but multiple found");
    assert_snapshot!(report_file("\u{feff}\r\n---\r\ndescription: a\r\ntemperature: hot\r\n---\r\n"), @r#"subagents/reviewer.md:4:14: error: expected a number, got "hot""#);
}

#[test]
fn an_invalid_id_is_an_error() {
    let check = |id: &str| {
        parse(id, "---\ndescription: a\n---\n", Path::new("x.md")).map_err(|found| found[0].to_string())
    };
    for valid in ["a", "0", "code-reviewer", "a_b-c9"] {
        assert!(check(valid).is_ok(), "{valid}");
    }
    assert_snapshot!(check("README").unwrap_err(), @r#"x.md: error: invalid agent id "README": use a-z, 0-9, _ and -, starting with a letter or digit; did you mean "readme"?"#);
    assert_snapshot!(check("my agent").unwrap_err(), @r#"x.md: error: invalid agent id "my agent": use a-z, 0-9, _ and -, starting with a letter or digit; did you mean "my-agent"?"#);
    assert_snapshot!(check("-x").unwrap_err(), @r#"x.md: error: invalid agent id "-x": use a-z, 0-9, _ and -, starting with a letter or digit; did you mean "x"?"#);
    assert_snapshot!(check("../up").unwrap_err(), @r#"x.md: error: invalid agent id "../up": use a-z, 0-9, _ and -, starting with a letter or digit; did you mean "up"?"#);
    assert_snapshot!(check("").unwrap_err(), @r#"x.md: error: invalid agent id "": use a-z, 0-9, _ and -, starting with a letter or digit"#);
    assert_snapshot!(check("é").unwrap_err(), @r#"x.md: error: invalid agent id "é": use a-z, 0-9, _ and -, starting with a letter or digit"#);
}

#[test]
fn bombs_are_errors_not_hangs() {
    let examples = "description: <example>\n".repeat(2_500) + "model: @x";
    assert!(report(&examples).contains("\"description\" is given twice, before on line 2"));
    assert_snapshot!(report(&format!("description: {}", "[".repeat(30_000))), @"subagents/reviewer.md:2:46: error: close the bracket of line 2: recursion limit exceeded");
    let deep: String = (0..200).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert_snapshot!(report(&deep), @"subagents/reviewer.md:34:33: error: the front matter is too deep or too large, or its aliases multiply");
    let level = |n: usize| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(","));
    let laughs: String = (1..10).map(level).collect();
    assert_snapshot!(report(&format!("a0: &a0 ha\n{laughs}")), @"subagents/reviewer.md:5:38: error: the front matter is too deep or too large, or its aliases multiply");
    assert_snapshot!(report("a: &a [*a]"), @"subagents/reviewer.md:2:8: error: Recursive reference not allowed here");
    assert_snapshot!(report(&"a: b\n".repeat(10_000)), @"subagents/reviewer.md:5001:4: error: the front matter is too deep or too large, or its aliases multiply");
    assert_snapshot!(report(&format!("description: {}", "x".repeat(70_000))), @"subagents/reviewer.md:1:1: error: the front matter has 70018 bytes, at most 65536 are read");
    assert_snapshot!(report(&format!("a: [{}]", "1,".repeat(20_000))), @"subagents/reviewer.md:2:19999: error: the front matter is too deep or too large, or its aliases multiply");
}

/// A valid file that uses everything, to be broken in a thousand ways.
const FULL: &str = "---\nname: reviewer\ndescription: >-\n  Reviews\nmodel: openai:gpt-4o\nsteps: 20\ntemperature: 0.2\ntop_p: 0.9\ntools: [read, \"grep\"]\ndisallowed_tools: shell, web\nskills:\n  - a\nhidden: false\nmode: subagent\nworkspace:\n  mode: shared\npermissions:\n  'shell(git *)': allow\n  deny: [shell]\npersist_session: true\ntimeout_seconds: 60\nmax_tokens_total: 1000\noutput_schema: &s\n  type: object\n  properties: {a: {type: string}}\n---\nBe brief. é🦀\n";

#[test]
fn the_full_file_is_fine() {
    assert_eq!(read(FULL).unwrap().warnings, []);
}

/// Whatever happens, an error has a place in the file, and only errors refuse it.
fn check_any(text: &str) -> Result<(), TestCaseError> {
    let (found, refused) = match read(text) {
        Ok(parsed) => (parsed.warnings, false),
        Err(found) => (found, true),
    };
    prop_assert_eq!(found.iter().any(SpecError::is_error), refused);
    for error in found {
        let position = error.position.expect("a finding has a place");
        prop_assert!(position.line >= 1 && position.column >= 1, "{}", error);
        prop_assert!(position.line as usize <= text.matches(['\n', '\r']).count() + 2, "{}", error);
        prop_assert!(!error.to_string().contains(char::is_control), "{:?}", error);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn random_text_never_panics(
        text in prop_oneof!["\\PC{0,60}", "[-a-z:&*!|>{}\\[\\]'\"%@`#,.0-9 \n\t\r]{0,60}"],
        frame in prop::sample::select(&["{}", "---\n{}\n---\n", "---\ndescription: {}\n---\n"][..]),
    ) {
        check_any(&frame.replace("{}", &text))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn mutations_of_a_valid_file_never_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..8, "[-\\PC\n\t:*&\\[{'\"]{0,3}"), 1..6),
    ) {
        let mut chars: Vec<char> = FULL.chars().collect();
        for (at, removed, inserted) in edits {
            let start = at.index(chars.len() + 1);
            let end = chars.len().min(start + removed);
            chars.splice(start..end, inserted.chars());
        }
        check_any(&chars.into_iter().collect::<String>())?;
    }
}
