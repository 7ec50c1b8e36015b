//! Agents as the tools of an MCP server: what a client reads, line by line.

use std::time::Duration;

use mainstem::{HarnessAgents, mcp::AgentServer, model::scripted::Turn, prelude::*};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, split},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::support::{Spawns, ms};

/// A client that writes and reads messages itself.
struct Client {
    to: WriteHalf<DuplexStream>,
    from: Lines<BufReader<ReadHalf<DuplexStream>>>,
    serving: JoinHandle<()>,
    last: u64,
}

impl Client {
    /// Introduces itself with these capabilities.
    async fn start(harness: &Harness, capabilities: Value) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let server = AgentServer::new(HarnessAgents::new(harness.clone()));
        let (input, output) = split(theirs);
        #[expect(clippy::disallowed_methods, reason = "awaited by the test")]
        let serving = tokio::spawn(async move {
            server.serve(input, output, CancellationToken::new()).await.unwrap();
        });
        let (from, to) = split(ours);
        let mut client = Self { to, from: BufReader::new(from).lines(), serving, last: 0 };
        let me = json!({ "name": "test", "version": "1" });
        let hello =
            json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": me });
        client.request("initialize", hello).await;
        client.next().await;
        client.write(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    async fn write(&mut self, message: Value) {
        self.to.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.write(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    /// Calls an agent, and asks for progress.
    async fn call(&mut self, agent: &str, arguments: Value) -> u64 {
        let token = json!({ "progressToken": format!("p{}", self.last + 1) });
        self.request("tools/call", json!({ "name": agent, "arguments": arguments, "_meta": token })).await
    }

    async fn next(&mut self) -> Value {
        let line = timeout(Duration::from_secs(10), self.from.next_line()).await.unwrap().unwrap();
        serde_json::from_str(&line.expect("the server is there")).unwrap()
    }

    /// Reads up to the response to a request, and what came before.
    async fn response(&mut self, id: u64) -> (Value, Vec<Value>) {
        let mut before = Vec::new();
        loop {
            let message = self.next().await;
            if message["id"] == id && message.get("method").is_none() {
                return (message, before);
            }
            before.push(message);
        }
    }

    async fn ask(&mut self, agent: &str, arguments: Value) -> Value {
        let id = self.call(agent, arguments).await;
        self.response(id).await.0
    }
}

fn harness(model: ScriptedModel) -> Harness {
    let poke = tool_fn("poke", "Pokes", |_, _: serde_json::Map<String, Value>| async {
        Ok::<_, ToolError>("poked")
    });
    Harness::builder("main", model)
        .with_tool(poke)
        .with_permissions(RuleSet::default().with_pattern(Effect::Ask, "poke").unwrap())
        .with_subagent(AgentSpec::new("kid", "A kid").with_tools(["poke"]))
        .with_subagent(AgentSpec::new("secret", "Hidden").with_hidden(true))
        .build()
        .unwrap()
}

/// Returns the text of a result, its session, and whether it is an error.
fn shown(response: &Value) -> (&str, &str, bool) {
    let result = &response["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{response}"));
    (text, result["structuredContent"]["session"].as_str().unwrap_or_default(), result["isError"] == true)
}

#[tokio::test]
async fn agents_are_tools_whose_conversations_continue() {
    let turns = ["First.", "Second.", "Other."].map(|text| Turn::new().text(text));
    let harness = harness(ScriptedModel::new().agent("main", turns).agent("kid", [Turn::new().text("Hi.")]));
    let mut client = Client::start(&harness, json!({})).await;
    let list = client.request("tools/list", json!({})).await;
    let (tools, _) = client.response(list).await;
    let names: Vec<_> =
        tools["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["main", "general-purpose", "kid"], "hidden agents are not offered");

    let first = client.ask("main", json!({ "task": "go" })).await;
    let (text, session, is_error) = shown(&first);
    assert_eq!((text, is_error), ("First.", false));
    let second = client.ask("main", json!({ "task": "on", "session": session })).await;
    assert_eq!(shown(&second), ("Second.", session, false));
    let kid = client.ask("kid", json!({ "task": "go" })).await;
    assert_eq!(shown(&kid).0, "Hi.");
    assert_ne!(shown(&kid).1, session);
}

#[tokio::test]
async fn progress_arrives_while_a_child_works() {
    let kid = Turn::new().pace(ms(600)).say("one two three four five");
    let main = [Turn::new().spawn("kid", "count"), Turn::new().text("Done.")];
    let harness = harness(ScriptedModel::new().agent("main", main).agent("kid", [kid]));
    let mut client = Client::start(&harness, json!({})).await;
    let call = client.call("main", json!({ "task": "go" })).await;
    let (response, before) = client.response(call).await;
    assert_eq!(shown(&response).0, "Done.");
    let numbers: Vec<_> = before.iter().map(|one| one["params"]["progress"].as_f64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert!(before.iter().all(|one| one["params"]["progressToken"] == "p2"), "{before:?}");
    let said: Vec<_> = before.iter().map(|one| one["params"]["message"].as_str().unwrap()).collect();
    assert!(said[1].starts_with("kid begins: count"), "{said:?}");
    assert!(said.iter().any(|said| said.starts_with("kid: one two")), "{said:?}");
    assert_eq!(said.last(), Some(&"kid has ended: success"));
}

#[tokio::test]
async fn the_clients_user_approves() {
    let turns = || [Turn::new().call("poke", json!({ "at": "me" })), Turn::new().text("Done.")];
    let model = || {
        ScriptedModel::new()
            .agent("main", [Turn::new().spawn("kid", "go"), Turn::new().text("All.")])
            .agent("kid", turns())
    };
    let check = async |capabilities: Value, answer: Option<Value>, expected: &str| {
        let harness = harness(model());
        let mut client = Client::start(&harness, capabilities).await;
        let call = client.call("main", json!({ "task": "go" })).await;
        if let Some(answer) = answer {
            let question = loop {
                let message = client.next().await;
                if message["method"] == "elicitation/create" {
                    break message;
                }
            };
            let text = question["params"]["message"].as_str().unwrap();
            assert_eq!(text, "kid asks to run:\npoke {\"at\":\"me\"}");
            assert_eq!(question["params"]["requestedSchema"]["properties"]["allow"]["type"], "boolean");
            client.write(json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer })).await;
        }
        let (response, _) = client.response(call).await;
        let (_, session, _) = shown(&response);
        let session = harness.open_session(session).await.unwrap();
        let mut events = session.subscribe_from(1);
        let results: Vec<_> = std::iter::from_fn(|| events.try_next())
            .filter(|event| event.agent_id() == "kid")
            .filter_map(|event| match &event.kind {
                EventKind::ToolResultTextDelta { delta, .. } => Some(delta.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(results, [expected]);
    };
    let elicitation = json!({ "elicitation": {} });
    let accept = |allow: bool| Some(json!({ "action": "accept", "content": { "allow": allow } }));
    check(elicitation.clone(), accept(true), "poked").await;
    check(elicitation.clone(), accept(false), "poke was denied: the user denied it").await;
    check(elicitation.clone(), Some(json!({ "action": "decline" })), "poke was denied: the user denied it")
        .await;
    check(elicitation, Some(json!({ "action": "cancel" })), "poke was denied: the question was dismissed")
        .await;
    check(json!({}), None, "poke was denied: it needs approval, and the run is unattended").await;
}

#[tokio::test]
async fn a_call_that_is_cancelled_and_a_client_that_leaves_end_their_runs() {
    let hangs = || {
        ScriptedModel::new()
            .agent("main", [Turn::new().spawn("kid", "go")])
            .agent("kid", [Turn::new().text("Half").hang()])
    };
    for leaves in [false, true] {
        let harness = harness(hangs());
        let mut client = Client::start(&harness, json!({})).await;
        let call = client.call("main", json!({ "task": "go" })).await;
        loop {
            if client.next().await["params"]["message"].as_str().unwrap().starts_with("kid begins") {
                break;
            }
        }
        let session = harness.sessions().opened().pop().unwrap();
        if leaves {
            client.to.shutdown().await.unwrap();
            timeout(Duration::from_secs(10), client.serving).await.unwrap().unwrap();
        } else {
            let params = json!({ "requestId": call, "reason": "a test" });
            client
                .write(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
                .await;
        }
        let is_active = || session.active().is_some();
        for _ in 0..200 {
            if !is_active() {
                break;
            }
            tokio::time::sleep(ms(10)).await;
        }
        assert!(!is_active(), "leaves: {leaves}");
        let mut events = session.subscribe_from(1);
        let events: Vec<_> = std::iter::from_fn(|| events.try_next()).collect();
        mainstem_testing::laws(&events).unwrap();
        let ends = events
            .iter()
            .filter(|event| matches!(event.kind, EventKind::AgentEnd { outcome: Outcome::Cancelled, .. }));
        assert_eq!(ends.count(), 2, "{}", mainstem_testing::render(&events));
    }
}

#[tokio::test]
async fn failures_are_results_and_wrong_calls_are_errors() {
    let harness = harness(ScriptedModel::new());
    let mut client = Client::start(&harness, json!({})).await;
    let failed = client.ask("main", json!({ "task": "go" })).await;
    let (text, session, is_error) = shown(&failed);
    assert!(is_error && text.starts_with("error: ") && session.starts_with("mcp-"), "{failed}");
    let mut check = async |agent: &str, arguments: Value, expected: &str| {
        let response = client.ask(agent, arguments).await;
        let message = response["error"]["message"]
            .as_str()
            .or_else(|| response["result"]["content"][0]["text"].as_str());
        assert!(message.unwrap().contains(expected), "{response}");
    };
    check("mian", json!({ "task": "go" }), "there is no agent \"mian\"; known: main, general-purpose, kid")
        .await;
    check("secret", json!({ "task": "go" }), "there is no agent \"secret\"").await;
    check("main", json!({}), "missing field `task`").await;
    check("main", json!({ "task": " " }), "`task` is empty").await;
    check("main", json!({ "task": "go", "sesion": "s" }), "unknown field `sesion`").await;
    check("main", json!({ "task": "go", "session": "a/b" }), "a/b").await;
}
