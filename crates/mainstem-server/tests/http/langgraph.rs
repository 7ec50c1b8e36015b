//! LangGraph's API: tenants see only their own threads, and bodies are bounded.

use mainstem::{model::scripted::Turn, prelude::ScriptedModel};
use mainstem_server::{Builder, Protocol, Tokens};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rig::{Rig, TOKEN, fleet, ms};

const ACME: &str = "the-token-of-tenant-acme";

#[tokio::test]
async fn a_thread_of_another_tenant_is_as_if_there_were_none() {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("Hello."), Turn::new().text("Hello.")]);
    let dir = tempfile::TempDir::new().unwrap();
    let harness = fleet(model).with_workspace(dir.path());
    let tokens = Tokens::new().with_token(TOKEN, None).unwrap().with_token(ACME, Some("acme")).unwrap();
    let build = |builder: Builder| builder.with_tokens(tokens.clone()).with_protocol(Protocol::LangGraph);
    let rig = Rig::start(harness, build).await;
    let run = rig.run("mine", "Hi").await["id"].as_str().unwrap().to_owned();
    let asked = async |method: &Method, path: &str, token: Option<&str>, body: &Value| -> (u16, Value) {
        let mut request = rig.stranger(method.clone(), path);
        if let Some(token) = token {
            request = request.header("x-api-key", token);
        }
        if *method == Method::POST {
            request = request.json(body);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json().await.unwrap_or_default())
    };
    let (get, post, delete) = (Method::GET, Method::POST, Method::DELETE);
    let resume = json!({ "command": { "resume": true } });
    let rows = [
        (&get, "", json!({})),
        (&delete, "", json!({})),
        (&get, "/state", json!({})),
        (&get, "/history", json!({})),
        (&post, "/history", json!({})),
        (&get, "/runs", json!({})),
        (&get, "/runs/RUN", json!({})),
        (&get, "/runs/RUN/stream", json!({})),
        (&get, "/runs/RUN/join", json!({})),
        (&post, "/runs/RUN/cancel", json!({})),
        (&post, "/runs", resume.clone()),
        (&post, "/runs/stream", resume.clone()),
        (&post, "/runs/wait", resume),
    ];
    for (method, path, body) in rows {
        let path = |thread: &str, run: &str| format!("/lg/threads/{thread}{}", path.replace("RUN", run));
        let foreign = asked(method, &path("mine", &run), Some(ACME), &body).await;
        let unknown = asked(method, &path("none", "run-0"), Some(ACME), &body).await;
        let named = |(status, answer): &(u16, Value)| {
            (*status, answer.to_string().replace(&run, "run-0").replace("mine", "none"))
        };
        assert_eq!(named(&foreign), named(&unknown), "{method} {}", path("mine", "RUN"));
        assert_eq!(foreign.0, 404, "{foreign:?}");
        let stranger = asked(method, &path("mine", &run), None, &body).await;
        assert!(stranger.0 == 401 && stranger.1["detail"].is_string(), "{stranger:?}");
    }
    // A thread of the same id is another one, and a list has only a tenant's own.
    let input = json!({ "input": "Hi" });
    let theirs = asked(&post, "/lg/threads/mine/runs/wait", Some(ACME), &input).await;
    assert_eq!(theirs.1["messages"].as_array().unwrap().len(), 2, "{theirs:?}");
    assert_eq!(rig.get(&format!("/lg/threads/mine/runs/{run}")).await.status(), 200);
    for token in [TOKEN, ACME] {
        let found = asked(&post, "/lg/threads/search", Some(token), &json!({})).await;
        assert_eq!(found.1.as_array().unwrap().len(), 1, "{found:?}");
    }
    let large = json!({ "input": "x".repeat(1 << 20) });
    let refused = asked(&post, "/lg/threads/mine/runs", Some(TOKEN), &large).await;
    assert!(refused.0 == 413 && refused.1["detail"].is_string(), "{refused:?}");
    assert_eq!(asked(&get, "/lg/threads/mine/runs/RUN/stream", Some(TOKEN), &json!({})).await.0, 404);
}

async fn rig() -> Rig {
    let model = ScriptedModel::new().agent_on("main", "greet", [Turn::new().text("Hello.")]).agent_on(
        "main",
        "hang",
        [Turn::new().text("I hang").hang()],
    );
    Rig::start(fleet(model), |builder| builder.with_protocol(Protocol::LangGraph)).await
}

/// Waits until a run has this status.
async fn until(rig: &Rig, run: &str, status: &str) {
    for _ in 0..200 {
        if rig.get_json(run).await["status"] == status {
            return;
        }
        tokio::time::sleep(ms(10)).await;
    }
    panic!("{}", rig.get_json(run).await);
}

#[tokio::test]
async fn a_run_without_a_thread_has_a_new_one_that_can_be_deleted() {
    let rig = rig().await;
    let input = json!({ "assistant_id": "main", "input": "greet" });
    let run: Value = rig.post("/lg/runs", input.clone()).await.json().await.unwrap();
    let thread = format!("/lg/threads/{}", run["thread_id"].as_str().unwrap());
    let run = format!("{thread}/runs/{}", run["run_id"].as_str().unwrap());
    let values = rig.get_json(&format!("{run}/join")).await;
    assert_eq!(values["messages"][1]["content"], "Hello.", "{values}");
    until(&rig, &run, "success").await;
    let other: Value = rig.post("/lg/runs", input).await.json().await.unwrap();
    assert!(!thread.ends_with(other["thread_id"].as_str().unwrap()));
    let deleted = rig.ask(Method::DELETE, &thread).send().await.unwrap();
    assert_eq!((deleted.status().as_u16(), deleted.text().await.unwrap().as_str()), (204, ""));
    assert_eq!(rig.get(&thread).await.status(), 404);
    assert_eq!(rig.ask(Method::DELETE, &thread).send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn a_run_is_cancelled_with_its_reader_only_if_that_is_asked() {
    let rig = rig().await;
    let begin = async |thread: &str, more: Value| {
        let mut body = json!({ "assistant_id": "main", "input": "hang", "stream_mode": "messages-tuple" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut response = rig.post(&format!("/lg/threads/{thread}/runs/stream"), body).await;
        let place = response.headers()["content-location"].to_str().unwrap().to_owned();
        while !String::from_utf8_lossy(&response.chunk().await.unwrap().unwrap()).contains("I hang") {}
        (format!("/lg{place}"), response)
    };
    let (tied, reader) = begin("a", json!({ "on_disconnect": "cancel" })).await;
    drop(reader);
    until(&rig, &tied, "interrupted").await;
    let (free, reader) = begin("b", json!({})).await;
    drop(reader);
    let mut reader = rig.get(&format!("{free}/stream?cancel_on_disconnect=1")).await;
    reader.chunk().await.unwrap();
    assert_eq!(rig.get_json(&free).await["status"], "running", "it outlived its first reader");
    drop(reader);
    until(&rig, &free, "interrupted").await;

    let (third, _reader) = begin("c", json!({})).await;
    let refused = rig.post(&format!("{third}/cancel?action=rollback"), json!({})).await;
    let (status, refused) = (refused.status().as_u16(), refused.text().await.unwrap());
    assert!(status == 422 && refused.contains("use \\\"interrupt\\\""), "{status} {refused}");
    assert_eq!(rig.get_json(&third).await["status"], "running");
    assert_eq!(rig.post(&format!("{third}/cancel?action=interrupt"), json!({})).await.status(), 202);
    until(&rig, &third, "interrupted").await;
}
