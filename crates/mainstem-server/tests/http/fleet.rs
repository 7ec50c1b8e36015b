//! The streams of Arbiter.

use mainstem::{model::scripted::Turn, prelude::ScriptedModel};
use mainstem_server::Protocol;
use serde_json::{Value, json};

use crate::rig::{Rig, fleet, ms};

async fn rig(model: ScriptedModel) -> Rig {
    Rig::start(fleet(model), |builder| builder.with_protocol(Protocol::Fleet)).await
}

fn spawn() -> Turn {
    let call = json!({ "agent_id": "kid", "task": "look" });
    Turn::new().text("I ask a kid.").call("agent_spawn", call)
}

/// Returns the events of a stream: their kinds and data.
fn events(text: &str) -> Vec<(String, Value)> {
    let field = |frame: &str, name: &str| {
        frame.lines().find_map(|line| Some(line.strip_prefix(name)?.to_owned())).unwrap_or_default()
    };
    let frames = text.split_terminator("\n\n").filter(|frame| frame.contains("event: "));
    frames
        .map(|frame| (field(frame, "event: "), serde_json::from_str(&field(frame, "data: ")).unwrap()))
        .collect()
}

/// Returns a line for each event, without ids and times.
fn shown(text: &str) -> String {
    let line = |(kind, mut data): (String, Value)| {
        for varying in ["request_id", "agent_key", "tool_call_id", "id", "duration_ms", "confirm_id"] {
            if let Some(value) = data.as_object_mut().unwrap().get_mut(varying) {
                *value = "…".into();
            }
        }
        format!("{kind} {data}\n")
    };
    events(text).into_iter().map(line).collect()
}

#[tokio::test]
async fn a_request_streams_its_fleet_in_slots() {
    let kid = Turn::new().text("Seen.");
    let model =
        ScriptedModel::new().agent("main", [spawn(), Turn::new().text("All done.")]).agent("kid", [kid]);
    let rig = rig(model).await;
    let body = json!({ "message": "go", "conversation_id": "c" });
    let response = rig.post("/v1/orchestrate", body).await;
    assert_eq!(
        (response.status(), &response.headers()["content-type"]),
        (200.try_into().unwrap(), &"text/event-stream".parse().unwrap())
    );
    let text = response.text().await.unwrap();
    insta::assert_snapshot!(shown(&text), @r#"
    request_received {"request_id":"…","conversation_id":"c","agent":"main","message":"go"}
    stream_start {"agent":"main","stream_id":0,"depth":0}
    text {"delta":"→ delegating: agent_spawn\n","withheld":"I ask a kid.","agent":"main","stream_id":0,"depth":0}
    token_usage {"model":"scripted","input_tokens":1,"output_tokens":11,"cache_read_tokens":0,"cache_create_tokens":0,"agent":"main","stream_id":0,"depth":0}
    stream_start {"agent_key":"…","label":null,"title":"look","tool_call_id":"…","agent":"kid","stream_id":1,"depth":1}
    agent_start {"agent":"kid","stream_id":1,"depth":1}
    text {"delta":"Seen.","agent":"kid","stream_id":1,"depth":1}
    token_usage {"model":"scripted","input_tokens":1,"output_tokens":2,"cache_read_tokens":0,"cache_create_tokens":0,"agent":"kid","stream_id":1,"depth":1}
    sub_agent_response {"content":"Seen.","agent":"kid","stream_id":1,"depth":1}
    stream_end {"ok":true,"outcome":"success","error":null,"agent":"kid","stream_id":1,"depth":1}
    tool_call {"tool":"agent_spawn","ok":true,"id":"…","state":"success","duration_ms":"…","agent":"main","stream_id":0,"depth":0}
    text {"delta":"All done.","agent":"main","stream_id":0,"depth":0}
    token_usage {"model":"scripted","input_tokens":4,"output_tokens":3,"cache_read_tokens":0,"cache_create_tokens":0,"agent":"main","stream_id":0,"depth":0}
    stream_end {"ok":true,"outcome":"success","error":null,"agent":"main","stream_id":0,"depth":0}
    done {"ok":true,"content":"All done.","input_tokens":6,"output_tokens":16,"request_id":"…","conversation_id":"c","duration_ms":"…","error":null,"error_code":null}
    "#);

    // Its record is the same stream, and a reader continues behind any event.
    let id = events(&text)[0].1["request_id"].as_str().unwrap().to_owned();
    let again = rig.get(&format!("/v1/requests/{id}/events")).await.text().await.unwrap();
    assert_eq!(again, text);
    let of_session = rig.get("/v1/sessions/c/events?format=fleet&follow=false").await.text().await.unwrap();
    assert_eq!(of_session, text);
    let last = text.rsplit("id: ").next().unwrap().lines().next().unwrap();
    let rest = rig.get(&format!("/v1/requests/{id}/events?since_seq={last}")).await;
    assert_eq!(rest.status(), 204, "nothing is left");
    let before: u64 = last.parse::<u64>().unwrap() - 1;
    let rest = rig.get(&format!("/v1/requests/{id}/events?since_seq={before}")).await.text().await.unwrap();
    assert_eq!(events(&rest).last().unwrap().0, "done");
}

#[tokio::test]
async fn a_request_is_cancelled_and_repeated_by_its_key() {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("x".repeat(300)).hang()]);
    let rig = rig(model).await;
    let ask = || {
        let request = rig.ask(reqwest::Method::POST, "/v1/orchestrate").header("idempotency-key", "k");
        request.json(&json!({ "message": "go" })).send()
    };
    let (mut first, second) = (ask().await.unwrap(), ask().await.unwrap());
    let mut text = String::new();
    while !text.contains("event: text") {
        text += std::str::from_utf8(&first.chunk().await.unwrap().unwrap()).unwrap();
    }
    let id = events(&text)[0].1["request_id"].as_str().unwrap().to_owned();
    let cancelled: Value =
        rig.post(&format!("/v1/requests/{id}/cancel"), json!({})).await.json().await.unwrap();
    assert_eq!(cancelled, json!({ "request_id": id, "cancelled": true }));
    let second = second.text().await.unwrap();
    let done = events(&second).pop().unwrap();
    assert_eq!(
        (&*done.0, &done.1["error_code"], &done.1["request_id"]),
        ("done", &json!("cancelled"), &json!(id))
    );
    tokio::time::sleep(ms(50)).await;
    let again: Value = rig.post(&format!("/v1/requests/{id}/cancel"), json!({})).await.json().await.unwrap();
    assert_eq!(again["cancelled"], false);
}

#[tokio::test]
async fn it_is_served_only_where_it_is_enabled_and_only_to_callers() {
    let off = Rig::of(ScriptedModel::new()).await;
    assert_eq!(off.post("/v1/orchestrate", json!({ "message": "go" })).await.status(), 404);
    off.run("s", "go").await;
    let refused: Value = off.get("/v1/sessions/s/events?format=fleet").await.json().await.unwrap();
    assert!(refused["detail"].as_str().unwrap().contains("serve --protocol fleet"), "{refused}");

    let on = rig(ScriptedModel::new()).await;
    let check = async |body: Value, status: u16, code: &str| {
        let response = on.post("/v1/orchestrate", body).await;
        assert_eq!(response.status(), status);
        assert_eq!(response.json::<Value>().await.unwrap()["code"], code);
    };
    check(json!({}), 422, "bad_body").await;
    check(json!({ "message": " " }), 422, "bad_body").await;
    check(json!({ "message": "go", "agent": "stranger" }), 404, "unknown_agent").await;
    check(json!({ "message": "go", "conversation_id": "a/b" }), 400, "bad_id").await;
    let stranger = on.stranger(reqwest::Method::POST, "/v1/orchestrate").json(&json!({ "message": "go" }));
    assert_eq!(stranger.send().await.unwrap().status(), 401);
    assert_eq!(on.get("/v1/requests/run-unknown/events").await.status(), 404);
}
