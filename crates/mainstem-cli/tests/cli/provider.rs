//! Against a server that speaks OpenAI's language: what it is asked, and what is shown while it
//! answers.

use mainstem_event::{AgentEvent, EventKind};
use mainstem_testing::laws;
use serde_json::{Value, json};

use crate::{
    server::{Server, Step},
    support::{Cli, example, mainstem},
};

/// The root calls two reviewers at once; they do what is given; the root sums up.
fn fleet(child: Vec<Step>) -> Server {
    Server::start(move |request| match role(request) {
        "child" => child.clone(),
        "first" => {
            let spawn = |task: &str| ("agent_spawn", json!({ "agent_id": "reviewer", "task": task }));
            vec![Step::Text("Two at once."), Step::Call(vec![spawn("correctness"), spawn("security")])]
        }
        _ => vec![Step::Text("Merge"), Step::Text(" it.")],
    })
}

fn role(request: &Value) -> &'static str {
    let messages = request["messages"].as_array().unwrap();
    match messages.iter().any(|message| message["role"] == "assistant") {
        _ if messages[0]["content"].as_str().unwrap().contains("You are a subagent") => "child",
        true => "last",
        false => "first",
    }
}

/// The example's workspace, with that server.
fn review(server: &Server, arguments: &str) -> Cli {
    let cli = mainstem(&format!("run {arguments} -w")).arg(example()).arg("review this");
    cli.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456")
}

#[test]
fn the_example_works_with_any_model() {
    let server = fleet(vec![Step::Text("Fine.")]);
    let done = review(&server, "--progress plain").run();
    assert_eq!((done.code, &*done.stdout), (Some(0), "Merge it.\n"), "{done:?}");
    assert!(!done.stderr.contains("warning") && !done.stderr.contains("sk-secret"), "{done:?}");

    let requests = server.requests();
    let roles: Vec<_> = requests.iter().map(role).collect();
    assert_eq!(roles, ["first", "child", "child", "last"], "one request for each turn");
    let prompt = requests[0]["messages"][0]["content"].as_str().unwrap();
    assert!(prompt.starts_with("You lead the review of a change."), "{prompt}");
    assert!(prompt.contains("\n- `tester`: ") && !prompt.contains("\n- `main`: "), "{prompt}");
}

fn said(event: &AgentEvent) -> Option<(String, &str)> {
    match &event.kind {
        EventKind::TextBlockDelta { delta, .. } => Some((event.agent_key()?.to_string(), delta)),
        _ => None,
    }
}

#[test]
fn children_are_seen_while_they_run() {
    let server = fleet(vec![Step::Text("one "), Step::Gate, Step::Text("two")]);
    let mut running = review(&server, "--output ndjson --progress quiet").start();
    let mut events = Vec::new();
    // Both have spoken, and neither's answer is complete: the server holds it back.
    while events.iter().filter_map(said).count() < 2 {
        events.push(running.event());
    }
    let first: Vec<_> = events.iter().filter_map(said).collect();
    assert_ne!(first[0].0, first[1].0);
    assert_eq!((first[0].1, first[1].1), ("one ", "one "));
    server.open_gate();
    while !events.last().is_some_and(AgentEvent::is_run_end) {
        events.push(running.event());
    }
    laws(&events).unwrap();
    assert_eq!(running.done().code, Some(0));
}

#[test]
fn twins_are_told_apart() {
    let server = fleet(vec![Step::Text("Fine.")]);
    let done = review(&server, "--output ndjson --only-agent reviewer --progress quiet").run();
    let events = crate::support::events(&done.stdout);
    let starts: Vec<_> = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::AgentStart { .. }))
        .map(|event| event.source().unwrap())
        .collect();
    let [a, b] = starts[..] else { panic!("{starts:?}") };
    assert_eq!(
        (a.path == b.path, a.agent_key == b.agent_key, a.stream_id == b.stream_id),
        (true, false, false)
    );
    assert_ne!(a.parent_tool_call_id, b.parent_tool_call_id);
}
