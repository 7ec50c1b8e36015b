//! An agent's file with a `url`: the agent runs on another server, and its fleet is in the stream.

use mainstem::prelude::{AgentEvent, EventKind};
use mainstem_testing::{laws, render};
use serde_json::json;

use crate::{
    kills::{lines, read},
    server::{Server, Step},
    support::{Cli, Running, events, mainstem},
};

const TOKEN: &str = "the-token-of-the-test";

/// A server of the demo, and its address.
fn serve(more: &str) -> (Running, String) {
    serve_with(more, |serve| serve)
}

pub(crate) fn serve_with(more: &str, with: impl FnOnce(Cli) -> Cli) -> (Running, String) {
    let line = format!("serve -m demo --bind 127.0.0.1:0 --log off --token-file tokens {more}");
    start(with(mainstem(&line)))
}

fn start(serve: Cli) -> (Running, String) {
    let mut running = serve.file("tokens", &format!("{TOKEN}\n")).start();
    let url = running.line().trim().to_owned();
    (running, url)
}

/// A model that spawns `far`, then says what it was told.
pub(crate) fn model() -> Server {
    Server::start(|request| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["role"].as_str() {
            Some("tool") => vec![Step::Text("Done.")],
            _ => vec![Step::Call(vec![("agent_spawn", json!({ "agent_id": "far", "task": "compare" }))])],
        }
    })
}

pub(crate) fn run(model: &Server, url: &str, more: &str) -> Cli {
    let line = format!("run go -m openai:m --no-files --output ndjson --progress quiet {more}");
    run_at(model, url, &line)
}

/// A command whose agents are those of this folder, with `far` among them.
fn run_at(model: &Server, url: &str, line: &str) -> Cli {
    let far = format!(
        "---\ndescription: Compares\nurl: {url}\nheaders:\n  Authorization: Bearer ${{FAR_TOKEN}}\n---\n"
    );
    mainstem(line)
        .env("OPENAI_BASE_URL", &model.url())
        .env("OPENAI_API_KEY", "sk-secret-123456")
        .env("FAR_TOKEN", TOKEN)
        .file("subagents/far.md", &far)
}

fn end_of<'a>(events: &'a [AgentEvent], agent: &str) -> &'a EventKind {
    &events.iter().rfind(|event| event.agent_id() == agent).unwrap().kind
}

#[test]
fn the_fleet_of_another_process_is_in_the_stream() {
    let (model, (_serving, url)) = (model(), serve("--demo-pace 0"));
    let done = run(&model, &url, "--trust --remote-host 127.0.0.1").run();
    assert_eq!(done.code, Some(0), "{done:?}");
    let events = events(&done.stdout);
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    let deepest = events.iter().map(AgentEvent::depth).max();
    assert!(deepest >= Some(2), "the demo has agents below its own:\n{}", render(&events));
    assert!(end_of(&events, "far").to_string().starts_with("AGENT_END success"), "{}", render(&events));
    assert!(!done.stdout.contains(TOKEN) && !done.stderr.contains(TOKEN), "{done:?}");
}

#[test]
fn three_processes_are_one_stream_and_a_cancel_stops_the_last_within_a_second() {
    let (model, (_third, third)) = (model(), serve("--demo-pace 0.3"));
    let line = "serve -m openai:m --no-files --bind 127.0.0.1:0 --log off --token-file tokens --trust";
    let (_second, second) = start(run_at(&model, &third, &format!("{line} --remote-host 127.0.0.1")));
    let mut first = run(&model, &second, "--trust --remote-host 127.0.0.1").start();
    let mut seen = Vec::new();
    while !seen.iter().any(|event: &AgentEvent| event.depth() == 3) {
        seen.push(first.event());
    }
    let active = || -> usize {
        let address = third.trim_start_matches("http://");
        let sessions: String = lines(address, "GET /v1/sessions", "").collect();
        sessions.matches("\"state\":\"running\"").count()
    };
    assert_eq!(active(), 1, "the demo leads there");
    first.signal("INT");
    let began = std::time::Instant::now();
    while active() > 0 {
        assert!(began.elapsed().as_secs_f64() < 1.0, "the third goes on");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let done = first.done();
    seen.extend(events(&done.stdout));
    laws(&seen).unwrap_or_else(|error| panic!("{error}\n{}", render(&seen)));
    let ends = seen.iter().filter(|event| matches!(event.kind, EventKind::AgentEnd { .. })).count();
    let starts = seen.iter().filter(|event| matches!(event.kind, EventKind::AgentStart { .. })).count();
    assert_eq!((ends, done.code), (starts, Some(130)), "{}", render(&seen));
}

#[test]
fn no_log_shows_a_secret_however_much_it_logs() {
    let far = serve("--demo-pace 0");
    for (secret, outcome) in [(TOKEN, "success"), ("a-wrong-token-of-mine", "error")] {
        let model = model();
        let line = "serve -m openai:m --no-files --bind 127.0.0.1:0 --log text --token-file own --trust";
        let serve = run_at(&model, &far.1, &format!("{line} --remote-host 127.0.0.1"));
        let own = "the-token-of-this-server";
        let serve = serve.env("FAR_TOKEN", secret).env("MAINSTEM_LOG", "trace").file("own", own);
        let (serving, url) = start(serve);
        let ask = mainstem("run go --output ndjson --progress quiet --server").arg(&url);
        let done = ask.env("MAINSTEM_TOKEN", own).run();
        let events = events(&done.stdout);
        let end = end_of(&events, "far").to_string();
        assert!(end.starts_with(&format!("AGENT_END {outcome}")), "{}", render(&events));
        serving.signal("INT");
        let log = serving.done().stderr;
        assert!(log.contains("TRACE") && log.contains("/v1/sessions"), "{log}");
        for secret in [secret, own, "sk-secret-123456"] {
            let line = log.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{secret}");
        }
    }
}

#[test]
fn an_address_needs_trust_and_a_private_one_permission() {
    let (model, (_serving, url)) = (model(), serve("--demo-pace 0"));
    let done = run(&model, &url, "--remote-host 127.0.0.1").run();
    assert!(done.stderr.contains("far.md: sends tasks to the agent at http://127.0.0.1:"), "{done:?}");
    assert!(done.stderr.contains("with FAR_TOKEN of the environment"), "{done:?}");
    assert!(!events(&done.stdout).iter().any(|event| event.agent_id() == "far"), "{done:?}");
    let done = run(&model, &url, "--trust").run();
    assert!(done.stderr.contains("127.0.0.1 is not a public address"), "{done:?}");
    assert!(!events(&done.stdout).iter().any(|event| event.agent_id() == "far"), "{done:?}");
}

#[test]
fn a_server_that_is_killed_ends_its_child_and_no_more() {
    let (model, (serving, url)) = (model(), serve("--demo-pace 1"));
    let mut running = run(&model, &url, "--trust --remote-host 127.0.0.1").start();
    let mut seen = Vec::new();
    while !seen.iter().any(|event: &AgentEvent| event.depth() > 1) {
        seen.push(running.event());
    }
    serving.signal("KILL");
    let done = running.done();
    seen.extend(events(&done.stdout));
    laws(&seen).unwrap_or_else(|error| panic!("{error}\n{}", render(&seen)));
    let end = end_of(&seen, "far").to_string();
    assert!(end.starts_with("AGENT_END error") && end.contains("remote_unreachable"), "{end}");
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn a_server_that_is_killed_and_comes_back_ends_its_child_once() {
    let model = model();
    let is_slow = std::env::var_os("RUN_SLOW_TESTS").is_some();
    let (mut answered, mut restarted) = (0, 0);
    for index in (1..90).step_by(if is_slow { 1 } else { 19 }) {
        let dir = tempfile::tempdir().unwrap();
        let journal = dir.path().join("j.db");
        let serve = |bind: &str, pace: &str| {
            let line = format!(
                "serve -m demo --bind {bind} --log off --token-file tokens --demo-pace {pace} --journal"
            );
            start(mainstem(&line).arg(&journal))
        };
        let (first, url) = serve("127.0.0.1:0", "0.05");
        let mut running = run(&model, &url, "--trust --remote-host 127.0.0.1").start();
        let mut seen = Vec::new();
        while seen.iter().filter(|event: &&AgentEvent| event.depth() > 0).count() < index {
            seen.push(running.event());
        }
        first.signal("KILL");
        drop(first);
        let (_second, _) = serve(url.trim_start_matches("http://"), "0");
        let done = running.done();
        seen.extend(events(&done.stdout));
        laws(&seen).unwrap_or_else(|error| panic!("after {index}: {error}\n{}", render(&seen)));
        let end = end_of(&seen, "far").to_string();
        match end.contains("restarted") {
            true => restarted += 1,
            false if end.starts_with("AGENT_END success") => answered += 1,
            false => panic!("after {index}: {end}"),
        }
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    assert!(restarted > 2, "{restarted} were cut, {answered} had their answer");
}

#[test]
fn a_task_at_a_remote_goes_on_when_its_server_is_killed_or_replaced() {
    let model = Server::start(|request| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let spawn = json!({ "agent_id": "far", "task": "compare", "timeout_seconds": 0 });
        match last["role"].as_str() {
            Some("tool") => vec![Step::Text("Begun.")],
            _ => vec![Step::Call(vec![("agent_spawn", spawn)])],
        }
    });
    for signal in ["KILL", "TERM"] {
        let (_far, far_url) = serve("--demo-pace 0.15");
        let dir = tempfile::tempdir().unwrap();
        let far = format!(
            "---\ndescription: Compares\nurl: {far_url}\nheaders:\n  Authorization: Bearer ${{FAR_TOKEN}}\n---\n"
        );
        std::fs::create_dir(dir.path().join("subagents")).unwrap();
        std::fs::write(dir.path().join("subagents/far.md"), far).unwrap();
        std::fs::write(dir.path().join("tokens"), TOKEN).unwrap();
        let near = || {
            let line = "serve -m openai:m --bind 127.0.0.1:0 --log off --token-file tokens --no-files --trust \
                        --remote-host 127.0.0.1 --journal j.db --grace 0s";
            let cli = mainstem(line).within(dir.path()).env("FAR_TOKEN", TOKEN);
            let cli = cli.env("OPENAI_BASE_URL", &model.url()).env("OPENAI_API_KEY", "sk-secret-123456");
            let mut running = cli.start();
            let url = running.line();
            (running, url.trim().trim_start_matches("http://").to_owned())
        };
        let (first, address) = near();
        read(
            &address,
            "POST /v1/sessions/s/runs",
            r#"{"input": "go", "options": {"background": "detach"}}"#,
            usize::MAX,
        );
        let before = read(&address, "GET /v1/sessions/s/events", "", 40);
        assert!(before.iter().any(|event| event.agent_id() == "far"), "{}", render(&before));
        first.signal(signal);
        let done = first.done();
        let said = "leaving 1 task at remote agents to the next server";
        assert_eq!(done.stderr.contains(said), signal == "TERM", "{done:?}");
        let (next, address) = near();
        let is_over = |event: &AgentEvent| match &event.kind {
            EventKind::TaskUpdated { to, .. } => to.is_terminal(),
            _ => false,
        };
        let mut events = Vec::new();
        while !events.iter().any(is_over) {
            std::thread::sleep(std::time::Duration::from_millis(50));
            events = read(&address, "GET /v1/sessions/s/events?follow=false", "", usize::MAX);
        }
        laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
        assert_eq!(events[..before.len()], before, "{}", render(&events));
        let end = end_of(&events, "far").to_string();
        assert!(end.starts_with("AGENT_END success"), "{signal}: {end}\n{}", render(&events));
        let starts = events.iter().filter(|event| matches!(event.kind, EventKind::AgentStart { .. }));
        let agents: Vec<_> = starts.map(|event| (event.agent_id().to_owned(), event.depth())).collect();
        assert_eq!(agents.iter().filter(|(agent, _)| agent == "far").count(), 1, "{agents:?}");
        assert!(agents.iter().any(|(_, depth)| *depth > 1), "{agents:?}");
        next.signal("INT");
        assert_eq!(next.done().code, Some(0));
    }
}

#[test]
fn a_server_is_asked_what_it_says_of_an_agent() {
    let (_serving, url) = serve("--demo-pace 0 --protocol a2a,langgraph,agent-protocol --allow-agent tester");
    let with_token = |token: &str, command: &str, url: &str, more: &str| {
        let far = format!(
            "---\ndescription: Compares\nurl: {url}\n{more}headers:\n  Authorization: Bearer ${{FAR_TOKEN}}\n---\n"
        );
        let cli = mainstem(&format!("{command} --trust")).env("FAR_TOKEN", token);
        let is_in_file = !command.contains("--remote-host");
        let settings = if is_in_file { "remote_hosts = ['127.0.0.1']\n" } else { "" };
        let done = cli.file("mainstem.toml", settings).file("subagents/far.md", &far).run();
        assert!(!format!("{done:?}").contains(TOKEN), "{done:?}");
        done
    };
    let ask = |command: &str, url: &str, more: &str| with_token(TOKEN, command, url, more);
    let check = |url: &str, more: &str, expected: &str| {
        let done = ask("doctor --online -m demo", url, more);
        let line = done.stdout.lines().find(|line| line.contains("agent far: "));
        let line = line.unwrap_or_else(|| panic!("{done:?}"));
        assert!(line.contains(expected), "{line}");
    };
    check(&url, "", "speaks mainstem: main");
    check(&format!("{url}/v1/agents/tester"), "", "speaks mainstem: tester: ");
    check(
        &format!("{url}/v1/agents/runner"),
        "",
        "✘ agent far: its operator does not let callers run the agent \"runner\"",
    );
    check(&format!("{url}/v1/agents/nemo"), "", "✘ agent far: the server has no agent \"nemo\"");
    check(&url, "protocol: a2a\n", "speaks a2a: ");
    check(&url, "protocol: langgraph\n", "the server does not speak langgraph");
    check(
        &format!("{url}/lg/assistants/main"),
        "protocol: langgraph\n",
        "speaks langgraph: main, at a LangGraph",
    );
    check(&url, "protocol: agentscope\n", "speaks agentscope: its tasks are for far");
    check("http://127.0.0.1:1", "protocol: mainstem\n", "can't be reached");
    let report = ask("doctor --online -m demo --output json", &url, "");
    let report: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    assert!(report.to_string().contains("speaks mainstem: main"), "{report}");
    let shown = ask("agents show far --online", &url, "");
    assert!(shown.stdout.contains("\nThe server speaks mainstem: main"), "{shown:?}");
    let shown = ask("agents show far --online --remote-host 127.0.0.1", &url, "");
    assert!(shown.stdout.contains("\nThe server speaks mainstem: main"), "{shown:?}");
    let silent = ask("agents show far --online", "http://127.0.0.1:1", "");
    assert_eq!((silent.code, silent.stdout.as_str()), (Some(1), ""), "{silent:?}");
    let denied = with_token("another-token-than-theirs", "agents show far --online", &url, "");
    assert!(denied.code == Some(1) && denied.stderr.ends_with("invalid token\n"), "{denied:?}");
    let unset = with_token("", "agents show far --online", &url, "");
    assert!(unset.code == Some(2) && unset.stderr.contains("FAR_TOKEN"), "{unset:?}");
}

/// `docs/examples/two-machines` as it is.
#[test]
fn the_example_runs_on_two_servers() {
    let model = Server::start(|request| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["role"].as_str() {
            Some("tool") => vec![Step::Text("It was audited.")],
            _ => vec![Step::Call(vec![("agent_spawn", json!({ "agent_id": "auditor", "task": "audit" }))])],
        }
    });
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/two-machines");
    let dir = tempfile::tempdir().unwrap();
    let mut script = std::process::Command::new(example.join("run.sh"));
    let script = script.env("MAINSTEM", env!("CARGO_BIN_EXE_mainstem")).env("HOME", dir.path());
    let script = script.args(["--output", "ndjson", "--progress", "quiet"]);
    let output = script
        .env("MAINSTEM_MODEL", "openai:m")
        .env("OPENAI_BASE_URL", model.url())
        .env("OPENAI_API_KEY", "sk-secret-123456")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let events = events(&String::from_utf8(output.stdout).unwrap());
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    assert!(end_of(&events, "auditor").to_string().starts_with("AGENT_END success"), "{}", render(&events));
    assert!(events.iter().any(|event| event.depth() == 3), "the demo's deepest agent:\n{}", render(&events));
}
