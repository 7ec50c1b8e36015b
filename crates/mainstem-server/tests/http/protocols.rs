//! What holds for each protocol of others: a refused request has no effect, a stop cuts no run, and
//! a request's size costs its own tenant.

use mainstem::{model::scripted::Turn, prelude::ScriptedModel};
use mainstem_server::{Protocol, Tokens};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rig::{Rig, fleet, ms};

async fn rig(protocol: Protocol) -> Rig {
    let model = ScriptedModel::new().agent_on("main", "hang", [Turn::new().text("I hang").hang()]).agent_on(
        "main",
        "slow",
        [Turn::new().text("I am").wait(ms(1500)).text(" slow.")],
    );
    Rig::start(fleet(model), |builder| builder.with_protocol(protocol)).await
}

/// An endpoint of each protocol. A build without `mcp` does not know its name.
const ENDPOINTS: [(&str, &str); 6] = [
    ("agui", "/ag-ui"),
    ("a2a", "/a2a"),
    ("agent-protocol", "/tasks"),
    ("langgraph", "/lg/threads/search"),
    ("fleet", "/v1/orchestrate"),
    ("mcp", "/mcp"),
];

#[tokio::test]
async fn a_protocol_is_off_unless_enabled_and_refuses_strangers() {
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } },
    });
    let known = ENDPOINTS.iter().filter_map(|(name, path)| Some((name.parse::<Protocol>().ok()?, path)));
    for (protocol, path) in known {
        let on = rig(protocol).await;
        let off = rig(if protocol == Protocol::AgUi { Protocol::Fleet } else { Protocol::AgUi }).await;
        let ask = async |request: reqwest::RequestBuilder| {
            let request = request.header("accept", "application/json, text/event-stream");
            request.json(&initialize).send().await.unwrap().status().as_u16()
        };
        let known = ask(on.ask(Method::POST, path)).await;
        assert!(![401, 403, 404, 405].contains(&known), "{protocol}: {known}");
        assert_eq!(ask(off.ask(Method::POST, path)).await, 404, "{protocol}");
        assert_eq!(ask(on.stranger(Method::POST, path)).await, 401, "{protocol}");
        assert_eq!(ask(on.stranger(Method::POST, path).bearer_auth("wrong")).await, 401, "{protocol}");
        // As pages of other sites would send it.
        let foreign = on.ask(Method::POST, path).header("origin", "https://evil.example");
        assert_eq!(ask(foreign).await, 403, "{protocol}");
        assert_eq!(on.live_runs(), 0, "{protocol}");
    }
}

/// Says something in the conversation `talk`, in a protocol.
type Say = fn(&str) -> Value;

/// The protocols whose conversations callers name; those with tests of their own are left out.
const CONVERSATIONS: [(&str, &str, Say); 3] = [
    ("agui", "/ag-ui", |text| {
        let message = json!({ "id": "m", "role": "user", "content": text });
        json!({ "threadId": "talk", "runId": "r", "messages": [message] })
    }),
    ("fleet", "/v1/orchestrate", |text| json!({ "conversation_id": "talk", "message": text })),
    ("mcp", "/mcp", |text| {
        let call = json!({ "name": "main", "arguments": { "task": text, "session": "talk" } });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call })
    }),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_belongs_to_its_tenant() {
    let tenants = [("acme", "the-token-of-acme-here"), ("globex", "the-token-of-globex-here")];
    for (name, path, say) in CONVERSATIONS {
        let Ok(protocol) = name.parse::<Protocol>() else { continue };
        let turns = (0..2).map(|_| Turn::new().text("Hello."));
        let dir = tempfile::tempdir().unwrap();
        let harness = fleet(ScriptedModel::new().agent("main", turns)).with_workspace(dir.path());
        let rig = Rig::start(harness, |builder| {
            let with = |tokens: Tokens, (tenant, token)| tokens.with_token(token, Some(tenant)).unwrap();
            builder.with_protocol(protocol).with_tokens(tenants.into_iter().fold(Tokens::new(), with))
        })
        .await;
        for (tenant, token) in tenants {
            let request = rig.stranger(Method::POST, path).bearer_auth(token);
            let request = request.header("accept", "application/json, text/event-stream");
            let response = request.json(&say(&format!("of {tenant}"))).send().await.unwrap();
            assert_eq!(response.status(), 200, "{name}");
            let answer = response.text().await.unwrap();
            assert!(answer.contains("Hello."), "{name}: {answer}");
        }
        for (tenant, token) in tenants {
            let path = "/v1/sessions/talk/agents/root/transcript";
            let transcript = rig.stranger(Method::GET, path).bearer_auth(token).send().await.unwrap();
            let transcript = transcript.text().await.unwrap();
            let told = tenants.map(|(tenant, _)| transcript.contains(&format!("of {tenant}")));
            assert_eq!(told, tenants.map(|(other, _)| other == tenant), "{name}: {transcript}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_mcp_that_leaves_cancels_its_call() {
    let Ok(protocol) = "mcp".parse::<Protocol>() else { return };
    let rig = rig(protocol).await;
    let (_, path, say) = CONVERSATIONS[2];
    let request = rig.ask(Method::POST, path).header("accept", "application/json, text/event-stream");
    let call = request.json(&say("hang")).send();
    let begun = async {
        while rig.live_runs() == 0 {
            tokio::time::sleep(ms(10)).await;
        }
    };
    tokio::select! {
        answer = async { call.await.unwrap().text().await } => panic!("{answer:?}"),
        () = begun => {}
    }
    for _ in 0..200 {
        if rig.live_runs() == 0 {
            return;
        }
        tokio::time::sleep(ms(10)).await;
    }
    panic!("the run goes on");
}

/// A client of MCP over HTTP has no way to ask its user.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_needs_approval_is_denied_to_a_client_of_mcp() {
    let Ok(protocol) = "mcp".parse::<Protocol>() else { return };
    let turns = [Turn::new().call("write", json!({})), Turn::new().text("So.")];
    let model = ScriptedModel::new().agent("main", turns);
    let rig = Rig::start(fleet(model), |builder| builder.with_protocol(protocol)).await;
    let (_, path, say) = CONVERSATIONS[2];
    let request = rig.ask(Method::POST, path).header("accept", "application/json, text/event-stream");
    let answer = request.json(&say("write")).send().await.unwrap().text().await.unwrap();
    assert!(answer.contains("So."), "{answer}");
    let transcript = rig.get_json("/v1/sessions/talk/agents/root/transcript").await.to_string();
    assert!(transcript.contains("needs approval, and the run is unattended"), "{transcript}");
}

async fn status(rig: &Rig, run: &str) -> Value {
    rig.get_json(&format!("/v1/runs/{run}")).await["status"].take()
}

#[tokio::test]
async fn a_run_is_interrupted_only_by_one_that_begins() {
    let rig = rig(Protocol::LangGraph).await;
    let body = json!({ "input": "hang", "multitask_strategy": "interrupt" });
    let begin = async |body: &Value, key: &str| {
        let request = rig.ask(Method::POST, "/lg/threads/talk/runs").header("idempotency-key", key);
        let response = request.json(body).send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json::<Value>().await.unwrap()["run_id"].as_str().unwrap_or_default().to_owned())
    };
    let (_, first) = begin(&body, "1").await;
    let mut unknown = body.clone();
    unknown["assistant_id"] = json!("no-such-agent");
    assert_eq!(begin(&unknown, "2").await.0, 404);
    assert_eq!(begin(&body, "1").await, (200, first.clone()), "a request that is sent again");
    assert_eq!(status(&rig, &first).await, "running");
    let (code, second) = begin(&body, "3").await;
    assert_eq!(code, 200);
    assert_ne!(first, second);
    while status(&rig, &first).await == "running" {
        tokio::time::sleep(ms(10)).await;
    }
    assert_eq!(status(&rig, &first).await, "cancelled");
}

#[tokio::test]
async fn a_frontend_has_a_bounded_number_of_tools() {
    let rig = rig(Protocol::AgUi).await;
    let run = async |count: usize, parameters: Value| {
        let tool =
            |number| json!({ "name": format!("t{number}"), "description": "", "parameters": parameters });
        let tools: Vec<_> = (0..count).map(tool).collect();
        let message = json!({ "id": "m", "role": "user", "content": "hang" });
        let body = json!({ "threadId": "talk", "runId": "r", "messages": [message], "tools": tools });
        let response = rig.post("/ag-ui", body).await;
        (response.status().as_u16(), response)
    };
    let (code, refused) = run(129, json!({})).await;
    let refused: Value = refused.json().await.unwrap();
    assert_eq!((code, &refused["errors"][0]["pointer"]), (422, &json!("/tools")), "{refused}");
    let (code, refused) = run(2, json!({ "type": "nonsense" })).await;
    let refused: Value = refused.json().await.unwrap();
    assert_eq!((code, &refused["errors"][0]["pointer"]), (422, &json!("/tools/0")), "{refused}");
    assert_eq!(run(128, json!({ "type": "object" })).await.0, 200);
}

#[tokio::test]
async fn a_run_whose_reader_is_cut_by_a_stop_goes_on() {
    let rig = rig(Protocol::AgUi).await;
    let message = json!({ "id": "m", "role": "user", "content": "slow" });
    let body = json!({ "threadId": "talk", "runId": "r", "messages": [message] });
    let mut response = rig.post("/ag-ui", body).await;
    assert_eq!(response.status(), 200);
    while !String::from_utf8_lossy(&response.chunk().await.unwrap().unwrap()).contains("I am") {}
    assert_eq!(rig.live_runs(), 1);
    rig.stop.cancel();
    while response.chunk().await.is_ok_and(|chunk| chunk.is_some()) {}
    tokio::time::sleep(ms(300)).await;
    assert_eq!(rig.live_runs(), 1, "the run goes on without its reader");
}

#[tokio::test]
async fn a_refusal_has_its_text_however_large_the_body_is() {
    for (protocol, path, text) in [
        (Protocol::LangGraph, "/lg/threads/talk/runs", "detail"),
        (Protocol::AgentProtocol, "/tasks", "error"),
    ] {
        let rig = rig(protocol).await;
        let large = "y".repeat(200_000);
        let body = json!({ "context": large, "metadata": large, "task_id": large, "config": large });
        for body in [body, json!([large])] {
            let response = rig.post(path, body).await;
            assert_eq!(response.status(), 422, "{path}");
            let answer: Value = response.json().await.unwrap();
            assert!(answer[text].as_str().unwrap_or_default().contains("does not fit"), "{path}: {answer}");
            assert!(answer.to_string().len() < 4_000, "{path}");
        }
    }
}
