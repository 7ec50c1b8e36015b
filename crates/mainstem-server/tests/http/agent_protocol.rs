//! AgentScope's Agent Protocol, as its clients see it: bodies, codes, details, resuming.

use mainstem::{
    journal::SqliteJournal,
    model::{ModelError, scripted::Turn},
    prelude::{HarnessBuilder, ScriptedModel},
};
use mainstem_server::{Protocol, Tokens};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rig::{Rig, TOKEN, fleet, frames, spawn};

const ACME: &str = "the-token-of-tenant-acme";

async fn serve(harness: HarnessBuilder) -> Rig {
    Rig::start(harness, |builder| builder.with_protocol(Protocol::AgentProtocol)).await
}

async fn rig(turns: impl IntoIterator<Item = Turn>) -> Rig {
    let kid = [Turn::new().thinking("Hm.").text("The kid's.")];
    let model = ScriptedModel::new().agent("main", turns).agent("kid", kid);
    serve(fleet(model)).await
}

/// Sends a request; returns the status and the body.
async fn sent(rig: &Rig, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
    let request = rig.ask(method, path);
    let request = if let Some(body) = body { request.json(body) } else { request };
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

async fn submit(rig: &Rig, id: &str, context: Value) -> (u16, Value) {
    let body = json!({ "task_id": id, "agent_id": "default", "input": "go", "context": context });
    sent(rig, Method::POST, "/tasks", Some(&body)).await
}

/// Submits a task and returns its state once it has ended or waits.
async fn ended(rig: &Rig, id: &str, context: Value) -> Value {
    assert_eq!(submit(rig, id, context).await.0, 200);
    rig.get_json(&format!("/tasks/{id}/wait?timeout_seconds=20")).await
}

/// The events of a task behind a number: what each has besides its envelope.
async fn events(rig: &Rig, id: &str, from: u64) -> Vec<Value> {
    let response = rig.get(&format!("/tasks/{id}/events?from_seq={from}")).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    frames(&text).iter().filter(|frame| frame.starts_with("id: ")).map(|frame| event(frame)).collect()
}

/// Reads a frame, whose id and name are those of its event.
fn event(frame: &str) -> Value {
    let lines: Vec<_> = frame.lines().collect();
    let [id, name, data] = lines[..] else { panic!("{frame}") };
    let event: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(id.strip_prefix("id: ").unwrap(), event["seq"].to_string());
    assert_eq!(name.strip_prefix("event: ").unwrap(), event["type"].as_str().unwrap());
    event
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_task_has_the_bodies_and_codes_of_agentscope() {
    let rig = rig([Turn::new().text("Done.")]).await;
    let get = async |path: &str| sent(&rig, Method::GET, path, None).await;
    let post = async |path: &str, body: Value| sent(&rig, Method::POST, path, Some(&body)).await;
    // What is not a task.
    assert_eq!(
        post("/tasks", json!({ "input": "go" })).await,
        (400, json!({ "error": "task_id is required" }))
    );
    assert_eq!(post("/tasks", json!({ "task_id": " " })).await.0, 400);
    let unknown = json!({
        "task_id": "x", "status": "error", "error": "task not found", "continues_sessions": true,
    });
    assert_eq!(get("/tasks/x").await, (200, unknown));
    assert_eq!(get("/tasks/x/wait").await, (200, json!({ "status": "error", "error": "task not found" })));
    assert_eq!(get("/tasks/x/events").await, (404, json!({ "error": "task not found" })));
    assert_eq!(sent(&rig, Method::POST, "/tasks/x/cancel", None).await, (200, json!("")));
    let no_approval = json!({ "error": "task is not awaiting confirmation: x" });
    assert_eq!(post("/tasks/x/resume", json!({ "decisions": [] })).await, (409, no_approval));
    let (status, refused) = post("/tasks", json!({ "task_id": "x", "input": [] })).await;
    assert_eq!((status, refused["error"].as_str().is_some()), (422, true), "{refused}");
    // A task.
    assert_eq!(
        submit(&rig, "t/1 ü", json!({})).await,
        (200, json!({ "task_id": "t/1 ü", "status": "pending" }))
    );
    let path = "/tasks/t%2F1%20%C3%BC";
    let done = json!({ "status": "success", "result": "Done." });
    assert_eq!(get(&format!("{path}/wait")).await, (200, done));
    let done = json!({ "task_id": "t/1 ü", "status": "success", "result": "Done." });
    assert_eq!(get(path).await, (200, done));
    let again = json!({ "error": "task_id already finished: t/1 ü" });
    assert_eq!(submit(&rig, "t/1 ü", json!({})).await, (409, again));
    assert_eq!(sent(&rig, Method::POST, &format!("{path}/cancel"), None).await.0, 200);
    assert_eq!(get(path).await.1["status"], "success");
    // Without a token, in the form of the protocol.
    let stranger = rig.stranger(Method::GET, "/tasks/x").send().await.unwrap();
    assert_eq!(stranger.status(), 401);
    assert!(stranger.json::<Value>().await.unwrap()["error"].as_str().unwrap().contains("token"));
}

#[tokio::test]
async fn a_detail_decides_how_much_is_streamed() {
    let turns = || {
        [
            spawn(Turn::new().thinking("Hm.").text("I ask."), "look"),
            Turn::new().call("look", json!({})),
            Turn::new().text("Do").text("ne."),
        ]
    };
    for (detail, expected) in [
        (json!(null), "status"),
        (json!("status"), "status"),
        (json!("nonsense"), "status"),
        (json!(" "), "status"),
        (json!("full"), "full"),
        (json!("Verbose"), "verbose"),
    ] {
        let rig = rig(turns()).await;
        assert_eq!(ended(&rig, "t", json!({ "detail": detail })).await["result"], "Done.");
        let events = events(&rig, "t", 0).await;
        let seqs: Vec<_> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs[0], 1);
        assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "{seqs:?}");
        assert!(events.iter().all(|event| event["taskId"] == "t" && event["agentId"] == "default"));
        let mut kinds = kinds(&events);
        assert_eq!(
            kinds.iter().filter(|kind| **kind == "RUN_STARTED").count(),
            1,
            "the kid's is not the task's"
        );
        assert_eq!(kinds[kinds.len() - 2..], ["RUN_FINISHED", "STATUS"]);
        assert_eq!(events.last().unwrap()["status"], "success");
        let deltas: String = events.iter().filter_map(|event| event["text"].as_str()).collect();
        let has_payloads = events[..events.len() - 1].iter().all(|event| event["payload"].is_string());
        assert!(has_payloads);
        match expected {
            "status" => assert_eq!(deltas, ""),
            _ => assert_eq!(deltas, "Hm.I ask.Done.", "{detail}"),
        }
        assert_eq!(kinds.contains(&"AGENT_EVENT"), expected == "verbose");
        kinds.retain(|kind| !matches!(*kind, "TEXT_DELTA" | "THINKING_DELTA" | "AGENT_EVENT"));
        assert_eq!(
            kinds.join(" "),
            "RUN_STARTED TOOL_CALL_START TOOL_CALL_END TOOL_RESULT TOOL_CALL_START \
            TOOL_CALL_END TOOL_RESULT RUN_FINISHED STATUS"
        );
        // The kid's events are whole, and say whose they are.
        let payload = |event: &Value| serde_json::from_str::<Value>(event["payload"].as_str()?).ok();
        let of_kid: Vec<_> =
            events.iter().filter_map(payload).filter(|one| one["source"] == "t/kid").collect();
        let text =
            of_kid.iter().find(|one| one["type"] == "TEXT_BLOCK_DELTA").map(|one| one["delta"].clone());
        assert_eq!(text, (expected == "verbose").then(|| json!("The kid's.")));
    }
}

#[tokio::test]
async fn a_reader_resumes_behind_any_event_also_after_the_end() {
    let turns = [Turn::new().call("look", json!({})), Turn::new().text("Done.")];
    let rig = rig(turns).await;
    ended(&rig, "t", json!({ "detail": "verbose" })).await;
    let all = events(&rig, "t", 0).await;
    for (place, event) in all.iter().enumerate() {
        let seq = event["seq"].as_u64().unwrap();
        assert_eq!(events(&rig, "t", seq).await, all[place + 1..], "behind {seq}");
        let request = rig.ask(Method::GET, "/tasks/t/events").header("last-event-id", seq.to_string());
        let text = request.send().await.unwrap().text().await.unwrap();
        assert_eq!(
            frames(&text).iter().filter(|frame| frame.starts_with("id: ")).count(),
            all.len() - place - 1
        );
    }
    assert!(events(&rig, "t", 9_999).await.is_empty());
}

#[tokio::test]
async fn an_approval_pauses_a_task_until_it_is_resumed() {
    for (decisions, status, state) in [
        (json!([{ "toolCallId": "call-1", "approved": true }]), 200, "SUCCESS"),
        (json!([{ "tool_call_id": "call-1", "approved": "true" }]), 200, "SUCCESS"),
        (json!([{ "tool_call_id": "call-1", "approved": "false" }]), 200, "DENIED"),
        (json!([{ "toolCallId": "call-1" }]), 200, "DENIED"),
        (json!([{ "toolCallId": "other", "approved": true }]), 409, ""),
        (json!([]), 409, ""),
    ] {
        let rig = rig([Turn::new().call("write", json!({ "a": 1 })), Turn::new().text("Done.")]).await;
        let waiting = ended(&rig, "t", json!({})).await;
        let id = waiting["pending_confirms"][0]["toolCallId"].clone();
        let pending = json!([{ "toolCallId": id, "toolName": "write", "toolInputJson": "{\"a\":1}" }]);
        assert_eq!(waiting, json!({ "status": "awaiting_confirm", "pending_confirms": pending }));
        let text = decisions.to_string().replace("\"call-1\"", &id.to_string());
        let body = json!({ "decisions": serde_json::from_str::<Value>(&text).unwrap() });
        let (code, answer) = sent(&rig, Method::POST, "/tasks/t/resume", Some(&body)).await;
        assert_eq!(code, status, "{decisions}: {answer}");
        if code == 409 {
            assert_eq!(rig.get_json("/tasks/t").await["status"], "awaiting_confirm");
            continue;
        }
        assert_eq!(answer, json!({ "task_id": "t", "status": "running" }));
        assert_eq!(rig.get_json("/tasks/t/wait").await["result"], "Done.");
        let events = events(&rig, "t", 0).await;
        let asked = events.iter().find(|event| event["type"] == "REQUIRE_CONFIRM").unwrap();
        assert_eq!((&asked["pendingConfirms"], &asked["status"]), (&pending, &json!("awaiting_confirm")));
        let result = events.iter().find(|event| event["type"] == "TOOL_RESULT").unwrap();
        assert_eq!(result["status"], state, "{decisions}");
    }
}

#[tokio::test]
async fn a_task_ends_as_its_run_does() {
    let rig = rig([Turn::new().text("Half").hang()]).await;
    submit(&rig, "t", json!({})).await;
    let late = json!({ "status": "error", "error": "wait timeout after 0 ms" });
    assert_eq!(rig.get_json("/tasks/t/wait?timeout_seconds=0").await, late);
    assert_eq!(submit(&rig, "t", json!({})).await.0, 200, "it runs");
    assert_eq!(sent(&rig, Method::POST, "/tasks/t/cancel", None).await.0, 200);
    assert_eq!(rig.get_json("/tasks/t/wait").await["status"], "cancelled");
    assert_eq!(events(&rig, "t", 0).await.last().unwrap()["status"], "cancelled");

    let rig = self::rig([Turn::new().fail(ModelError::from_status(401, "out of order"))]).await;
    let failed = ended(&rig, "t", json!({})).await;
    assert!(failed["error"].as_str().unwrap().contains("out of order"), "{failed}");
    let last = events(&rig, "t", 0).await.pop().unwrap();
    assert_eq!(
        (&last["type"], &last["status"], &last["error"]),
        (&json!("RUN_ERROR"), &json!("error"), &failed["error"])
    );
}

#[tokio::test]
async fn what_is_submitted_with_a_task_outlives_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let journal = || SqliteJournal::open(dir.path().join("j.db")).unwrap();
    let model = || ScriptedModel::new().agent("main", [Turn::new().text("One."), Turn::new().text("Two.")]);
    let harness = fleet(model()).with_journal(journal());
    let first = serve(harness).await;
    let context = json!({
        "user_id": "ann", "detail": "full", "session_id": "talk",
        "attributes": { "agentId": "x", "agentprotocol.context": { "detail": "verbose" } },
    });
    assert_eq!(ended(&first, "t1", context.clone()).await["result"], "One.");
    first.end().await;
    let second = serve(fleet(model()).with_journal(journal())).await;
    assert_eq!(second.get_json("/tasks/t1").await["result"], "One.");
    assert_eq!(submit(&second, "t1", json!({})).await.0, 409);
    let events = events(&second, "t1", 0).await;
    assert_eq!(events.iter().filter_map(|event| event["text"].as_str()).collect::<String>(), "One.");
    assert!(!kinds(&events).contains(&"AGENT_EVENT"), "an attribute is not a setting");
    // A later task continues the conversation, if it says so.
    ended(&second, "t2", context).await;
    ended(&second, "t3", json!({})).await;
    let messages = async |session: &str| {
        let path = format!("/v1/sessions/{session}/agents/root/transcript");
        second.get_json(&path).await["messages"].as_array().unwrap().len()
    };
    assert_eq!((messages("talk").await, messages("t3").await), (4, 2));
    let log =
        second.get("/v1/sessions/talk/events?kind=agent_start&follow=false").await.text().await.unwrap();
    assert!(log.contains(r#""user":"ann""#) && log.contains(r#""agentId":"x""#), "{log}");
}

#[tokio::test]
async fn a_caller_names_one_of_several_agents() {
    let model = || {
        ScriptedModel::new()
            .agent("main", [Turn::new().text("Main.")])
            .agent("kid", [Turn::new().text("Kid.")])
    };
    let task = |agent: Value| json!({ "task_id": "t", "agent_id": agent, "input": "go" });
    for (agent, only, expected) in [
        (json!(null), false, "Main."),
        (json!("default"), false, "Main."),
        (json!("main"), false, "Main."),
        (json!("kid"), false, "Kid."),
        (json!("other"), true, "Main."),
    ] {
        let harness = fleet(model());
        let rig = Rig::start(harness, |builder| {
            let builder = builder.with_protocol(Protocol::AgentProtocol);
            if only { builder } else { builder.with_allowed_agent("kid") }
        })
        .await;
        assert_eq!(sent(&rig, Method::POST, "/tasks", Some(&task(agent.clone()))).await.0, 200, "{agent}");
        assert_eq!(rig.get_json("/tasks/t/wait").await["result"], expected, "{agent}");
        if !only {
            let (status, refused) = sent(
                &rig,
                Method::POST,
                "/tasks",
                Some(&json!({ "task_id": "u", "agent_id": "other", "input": "go" })),
            )
            .await;
            assert_eq!((status, &refused["code"]), (404, &json!("unknown_agent")));
            assert!(refused["error"].as_str().unwrap().contains("this server runs main, kid"), "{refused}");
        }
    }
}

#[tokio::test]
async fn rules_that_deny_hold() {
    let look = |path: &str| Turn::new().call("look", json!({ "path": path }));
    let rig = rig([look("abc"), look("bcd"), Turn::new().text("Done.")]).await;
    let rule = json!({ "tool_name": "look", "rule_content": "a*", "behavior": "DENY", "source": "parent" });
    assert_eq!(submit(&rig, "t", json!({ "deny_rules": [rule] })).await.0, 200);
    assert_eq!(rig.get_json("/tasks/t/wait").await["status"], "success");
    let events = rig.get("/v1/sessions/t/events?follow=false").await.text().await.unwrap();
    assert_eq!(events.matches("look is denied by the rule").count(), 1, "{events}");
    let (status, refused) = submit(&rig, "u", json!({ "deny_rules": [{ "tool_name": "look(" }] })).await;
    assert_eq!((status, rig.get_json("/tasks/u").await["error"].as_str()), (422, Some("task not found")));
    assert!(refused["error"].as_str().unwrap().starts_with("deny_rules: "), "{refused}");
}

#[tokio::test]
async fn tasks_of_tenants_do_not_meet() {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("Done.")]);
    let harness = fleet(model);
    let rig = Rig::start(harness, |builder| {
        let tokens = Tokens::new().with_token(TOKEN, None).unwrap();
        let tokens = tokens.with_token(ACME, Some("acme")).unwrap();
        builder.with_tokens(tokens).with_protocol(Protocol::AgentProtocol)
    })
    .await;
    ended(&rig, "t", json!({})).await;
    let acme = async |method, path: &str, body: Value| {
        let request = rig.stranger(method, path).bearer_auth(ACME).json(&body);
        request.send().await.unwrap().json::<Value>().await.unwrap()
    };
    assert_eq!(acme(Method::GET, "/tasks/t", json!({})).await["error"], "task not found");
    // The same id is another task.
    let begun = acme(Method::POST, "/tasks", json!({ "task_id": "t", "input": "go" })).await;
    assert_eq!(begun, json!({ "task_id": "t", "status": "pending" }));
    assert_eq!(acme(Method::GET, "/tasks/t/wait", json!({})).await["result"], "Done.");
}
