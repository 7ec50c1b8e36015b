//! `mainstem mcp`: agents as tools, over stdin and stdout.

use std::{env, io::Write, path::Path, process::Command, process::Stdio};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Running, mainstem};

/// Starts the demo as a server, and introduces a client to it.
fn serve(more: &str) -> Running {
    let line = format!("mcp -m demo {more}");
    let mut running = mainstem(&line).stdin(Stdio::piped()).start();
    let me = json!({ "name": "test", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": me });
    write(&mut running, json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello }));
    assert_eq!(read(&mut running)["result"]["serverInfo"]["name"], "mainstem");
    write(&mut running, json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    running
}

fn write(running: &mut Running, message: Value) {
    writeln!(running.child.stdin.as_mut().unwrap(), "{message}").unwrap();
}

fn read(running: &mut Running) -> Value {
    let line = running.line();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

fn call(running: &mut Running, agent: &str) {
    let params = json!({ "name": agent, "arguments": { "task": "Review it" } });
    write(running, json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
}

#[test]
fn a_client_calls_an_agent_and_leaves() {
    let mut running = serve("--demo-pace 0");
    call(&mut running, "main");
    let result = read(&mut running);
    let text = result["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("Don't merge"), "{result}");
    drop(running.child.stdin.take());
    let done = running.done();
    assert_eq!((done.code, &*done.stdout, &*done.stderr), (Some(0), "", ""));
}

#[test]
fn a_signal_ends_it_while_an_agent_works() {
    let mut running = serve("--demo-pace 5");
    call(&mut running, "main");
    running.signal("INT");
    let done = running.done();
    assert_eq!((done.code, &*done.stdout, &*done.stderr), (Some(130), "", ""));
}

#[test]
fn only_the_named_agents_are_offered() {
    let mut running = serve("--only reviewer");
    write(&mut running, json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} }));
    let list = read(&mut running);
    let names: Vec<_> =
        list["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["reviewer"]);

    let said = |arguments: &str| mainstem(arguments).run();
    let wrong = said("mcp -m demo --only reviewr");
    assert_eq!((wrong.code, &*wrong.stdout), (Some(2), ""));
    assert_snapshot!(wrong.stderr, @"error: --only reviewr: no agent of this id can lead a run; known: main, general-purpose, reviewer, tester; did you mean reviewer?");
    let none = said("mcp");
    assert_eq!((none.code, &*none.stdout), (Some(3), ""));
    assert!(none.stderr.contains("no model is configured"), "{none:?}");
}

/// The official client starts the binary itself.
#[test]
fn the_official_client_speaks_to_it() {
    let Some(packages) = env::var_os("MAINSTEM_PROTOCOLS") else {
        assert!(env::var_os("CI").is_none(), "MAINSTEM_PROTOCOLS is not set");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/protocols/mcp/check.py");
    let mut python = Command::new(Path::new(&packages).join("mcp/python/bin/python"));
    let binary = env!("CARGO_BIN_EXE_mainstem");
    let output = python.arg(script).args(["stdio", binary, "mcp", "-m", "demo", "--demo-pace", "0"]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_snapshot!(String::from_utf8_lossy(&output.stdout), @r#"
    server: mainstem
    tools: main, general-purpose, reviewer, tester
    progress: True True
    reply: Don't merge: the total can panic, and an empty code is accepted. False
    again: That was the demo. To talk with a model, set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or OLLAMA_HOST. True
    error: there is no agent "stranger"; known: main, general-purpose, reviewer, tester
    "#);
}
