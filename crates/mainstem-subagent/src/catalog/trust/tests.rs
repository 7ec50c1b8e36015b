//! Which parts of a file need trust, and what changes them.

use std::path::Path;

use mainstem_spec::{AgentSpec, Key, Permission, WorkspaceMode, parse};
use serde_json::json;

use super::*;

fn spec(front: &str, prompt: &str) -> AgentSpec {
    let text = format!("---\ndescription: Works\n{front}---\n{prompt}\n");
    parse("kid", &text, Path::new("ws/subagents/kid.md")).unwrap().spec
}

fn shown(front: &str) -> Vec<String> {
    parts(&spec(front, ""), Path::new("ws")).iter().map(ToString::to_string).collect()
}

const SERVERS: &str = "mcp_servers:\n  - known\n  - files:\n      command: npx\n      args: [-y, files]\n      env: {TOKEN: \"${MY_TOKEN}\"}\n  - docs:\n      url: https://me:pw@docs.example/mcp?key=1\n";

/// A new key of a file is in effect without trust unless [`parts`] returns it.
#[test]
fn each_key_needs_trust_or_only_narrows() {
    let guarded = ["mcp_servers", "url", "headers", "server_tools"];
    let narrowing = [
        "name",
        "description",
        "model",
        "steps",
        "temperature",
        "top_p",
        "compact_at",
        "effort",
        "thinking_budget",
        "max_output_tokens",
        "tools",
        "disallowed_tools",
        "skills",
        "hidden",
        "mode",
        "workspace.mode",
        "workspace.path",
        "permissions",
        "protocol",
        "persist_session",
        "on_lost",
        "timeout_seconds",
        "max_tokens_total",
        "output_schema",
    ];
    let decided = |key: &&Key| guarded.contains(&key.name) || narrowing.contains(&key.name);
    let undecided: Vec<_> = Key::all().filter(|key| !decided(key)).map(|key| key.name).collect();
    assert!(undecided.is_empty(), "{undecided:?}: does it need trust?");
}

#[test]
fn what_starts_reads_or_sends_is_a_part_each() {
    assert_eq!(
        shown(SERVERS),
        [
            "subagents/kid.md: starts `npx -y files`, as MCP server \"files\", with MY_TOKEN of the environment, starts MCP server \"files\" with `TOKEN=${MY_TOKEN}`",
            "subagents/kid.md: sends tool calls to https://docs.example/mcp, as MCP server \"docs\"",
        ]
    );
    assert_eq!(
        shown("url: https://agents.example/x\nheaders: {X-Key: \"${GITHUB_TOKEN}\", X-Team: blue}\n"),
        [
            "subagents/kid.md: sends tasks to the agent at https://agents.example/x, with GITHUB_TOKEN of the environment"
        ]
    );
}

#[test]
fn tools_of_the_vendor_are_a_part() {
    let part = "subagents/kid.md: lets a model search the web and run code at its vendor";
    assert_eq!(shown("server_tools: web_search, code_execution\n"), [part]);
    assert!(shown("server_tools: []\n").is_empty());
}

#[test]
fn all_that_decides_what_a_server_does_is_told() {
    #[track_caller]
    fn check(declaration: Value, expected: &[&str]) {
        assert_eq!(server_does("x", &declaration), expected, "{declaration}");
    }
    let env = json!({ "PATH": "./bin:/usr/bin", "NODE_OPTIONS": "--require ./e.js", "A B": "${TOKEN}" });
    check(
        json!({ "command": "npx", "args": ["-y", "good"], "cwd": "x", "env": env, "trusted": true, "timeout_seconds": 5 }),
        &[
            "starts `npx -y good`, as MCP server \"x\", with TOKEN of the environment",
            "starts MCP server \"x\" in the directory `x`",
            "starts MCP server \"x\" with `\"A B\"=${TOKEN}`",
            "starts MCP server \"x\" with `NODE_OPTIONS=\"--require ./e.js\"`",
            "starts MCP server \"x\" with `PATH=./bin:/usr/bin`",
            "believes MCP server \"x\" about which of its tools change nothing and run in plan mode",
        ],
    );
    check(
        json!({ "command": "sh", "args": ["-c", "good`, as MCP server \"y\"", "", "\u{202e}\n"], "cwd": "a\nb", "trusted": false }),
        &[
            "starts `sh -c \"good`, as MCP server \\\"y\\\"\" \"\" \"\\u{202e}\\n\"`, as MCP server \"x\"",
            "starts MCP server \"x\" in the directory `\"a\\nb\"`",
        ],
    );
    check(
        json!({ "url": "https://x.example/?k=1", "headers": { "Authorization": "Bearer ${T}", "X-A": "b" }, "trusted": true }),
        &[
            "sends tool calls to https://x.example/, as MCP server \"x\", with T of the environment",
            "sends headers to MCP server \"x\" (Authorization, X-A)",
            "believes MCP server \"x\" about which of its tools change nothing and run in plan mode",
        ],
    );
}

#[test]
fn what_only_narrows_is_none() {
    for front in [
        "",
        "model: openai:gpt-4o\nsteps: 50\n",
        "tools: [shell, agent_spawn, \"mcp__*\"]\n",
        "permissions: {\"*\": allow}\n",
        "mcp_servers: [docs]\n",
        "workspace.mode: shared\n",
        "workspace.path: team\n",
        "skills: [pdf]\nhidden: true\nmode: primary\n",
    ] {
        assert_eq!(shown(front), [""; 0], "{front}");
    }
}

#[test]
fn a_part_changes_with_what_it_says_and_with_nothing_else() {
    let hashes = |front: &str, prompt: &str| {
        parts(&spec(front, prompt), Path::new("ws")).iter().map(Part::hash).collect::<Vec<_>>()
    };
    let before = hashes(SERVERS, "Be brief.");
    assert_eq!(before, hashes(&format!("{SERVERS}steps: 3\n# a comment\n"), "Be long."));
    let changed = hashes(&SERVERS.replace("-y, files", "-y, evil"), "Be brief.");
    assert!(changed[0] != before[0] && changed[1] == before[1], "the other is as it was");
    for (from, to) in
        [("npx", "npm"), ("MY_TOKEN", "AWS_SECRET_ACCESS_KEY"), ("env:", "tools: [a]\n      env:")]
    {
        assert_ne!(hashes(&SERVERS.replace(from, to), "")[0], before[0], "{to}");
    }
}

#[test]
fn code_needs_no_trust() {
    let mut spec = AgentSpec::new("kid", "Works")
        .with_url("https://agents.example")
        .with_permission("*", Permission::Allow)
        .with_workspace_mode(WorkspaceMode::Shared);
    spec.mcp_servers = Some(vec![McpServer::declared("x", json!({ "command": "y" }))]);
    assert_eq!(parts(&spec, Path::new("ws")), []);
}
