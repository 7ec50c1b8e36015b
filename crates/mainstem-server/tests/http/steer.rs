//! Runs and how they are steered: waiting, cancelling, answering, talking, tasks, leaving.

use mainstem::{
    model::scripted::Turn,
    prelude::{AgentSpec, ModelRegistry, ScriptedModel},
    spec::Mode,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rig::{Rig, fleet, ms, spawn};

fn main_says(turns: impl IntoIterator<Item = Turn>) -> ScriptedModel {
    ScriptedModel::new().agent("main", turns)
}

async fn until(rig: &Rig, path: &str, is_there: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..400 {
        let value = rig.get_json(path).await;
        if is_there(&value) {
            return value;
        }
        tokio::time::sleep(ms(10)).await;
    }
    panic!("it did not come about: {}", rig.get_json(path).await);
}

#[tokio::test]
async fn a_run_is_led_by_whom_the_caller_chooses() {
    let model = main_says([Turn::new().text("I am first."), Turn::new().text("I am main.")])
        .agent("kid", [Turn::new().text("I am the kid.")]);
    let helper = AgentSpec::new("helper", "Helps").with_mode(Mode::Subagent);
    let spare = AgentSpec::new("spare", "Is not to be chosen");
    let harness = fleet(model).with_system_prompt("You are main.").with_subagent(helper).with_subagent(spare);
    let rig =
        Rig::start(harness, |builder| builder.with_allowed_agent("kid").with_allowed_agent("helper")).await;
    let ask = async |agent: &str| {
        let request = rig.ask(Method::POST, "/v1/sessions/s/runs").header("prefer", "wait=30");
        let response = request.json(&json!({ "input": "Who?", "agent": agent })).send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json::<Value>().await.unwrap())
    };
    let (status, led) = ask("kid").await;
    assert_eq!((status, &led["reply"]), (200, &json!("I am the kid.")), "{led}");
    // Only this run; the conversation is one.
    assert_eq!(rig.run("s", "And you?").await["reply"], "I am main.");
    let said = rig.get_json("/v1/sessions/s/agents/root/transcript").await;
    assert_eq!(said["messages"].as_array().unwrap().len(), 4, "{said}");
    let events = rig.get("/v1/sessions/s/events?kind=agent_start&follow=false").await.text().await.unwrap();
    assert!(events.contains(r#""name":"kid""#) && events.contains(r#""name":"main""#), "{events}");
    for (agent, status, code) in
        [("unknown", 404, "unknown_agent"), ("spare", 404, "unknown_agent"), ("helper", 422, "only_spawned")]
    {
        let (refused, problem) = ask(agent).await;
        assert_eq!((refused, &problem["code"]), (status, &json!(code)), "{problem}");
    }
    let agents = rig.get_json("/v1/agents").await;
    let runnable: Vec<_> =
        agents["items"].as_array().unwrap().iter().map(|one| (&one["id"], &one["runnable"])).collect();
    assert!(runnable.contains(&(&json!("kid"), &json!(true))), "{agents}");
    for other in ["helper", "spare", "general-purpose"] {
        assert!(runnable.contains(&(&json!(other), &json!(false))), "{agents}");
    }
}

#[tokio::test]
async fn a_run_has_the_model_that_the_caller_chooses() {
    let model = main_says([Turn::new().text("I am the house.")]);
    let asked = ScriptedModel::named("asked").agent("main", [Turn::new().text("I was asked.")]);
    let spare = ScriptedModel::named("spare").agent("main", [Turn::new().text("I was not.")]);
    let registry = ModelRegistry::new().with_model("asked", asked).with_model("spare", spare);
    let rig =
        Rig::start(fleet(model).with_registry(registry), |builder| builder.with_allowed_model("asked")).await;
    let ask = async |model: &str| {
        let request = rig.ask(Method::POST, "/v1/sessions/s/runs").header("prefer", "wait=30");
        let response = request.json(&json!({ "input": "Who?", "model": model })).send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json::<Value>().await.unwrap())
    };
    let (status, run) = ask("asked").await;
    assert_eq!((status, &run["reply"]), (200, &json!("I was asked.")), "{run}");
    assert_eq!(rig.run("t", "And you?").await["reply"], "I am the house.");
    for model in ["spare", "unknown"] {
        let (status, problem) = ask(model).await;
        assert_eq!((status, &problem["code"]), (422, &json!("unknown_model")), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("lets callers choose asked"), "{problem}");
    }
    let models = rig.get_json("/v1/models").await;
    let listed: Vec<_> =
        models["items"].as_array().unwrap().iter().map(|one| (&one["id"], &one["selectable"])).collect();
    assert!(listed.contains(&(&json!("asked"), &json!(true))) && listed.len() == 2, "{models}");
    assert!(listed.iter().filter(|(_, selectable)| **selectable == json!(true)).count() == 1, "{models}");
}

#[tokio::test]
async fn a_run_is_begun_and_looked_at() {
    let rig = Rig::of(main_says([Turn::new().text("Hello.").wait(ms(50)), Turn::new().text("Again.")])).await;
    let response = rig.post("/v1/sessions/s/runs", json!({ "input": "Hi" })).await;
    assert_eq!(response.status(), 202);
    let place = response.headers()["location"].to_str().unwrap().to_owned();
    let begun: Value = response.json().await.unwrap();
    assert_eq!((&begun["status"], &begun["session_id"]), (&json!("running"), &json!("s")));
    let run = until(&rig, &place, |run| run["status"] == "success").await;
    assert_eq!(run["reply"], "Hello.");
    // The next turn knows what was said.
    let second = rig.run("s", "And again").await;
    assert_eq!(second["reply"], "Again.");
    let runs = rig.get_json("/v1/sessions/s/runs").await;
    assert_eq!(runs["items"].as_array().unwrap().len(), 2);
    let sessions = rig.get_json("/v1/sessions").await;
    assert_eq!((&sessions["items"][0]["id"], &sessions["items"][0]["runs"]), (&json!("s"), &json!(2)));
    assert_eq!(rig.get_json("/v1/sessions/s").await["active_run"], json!(null));
}

#[tokio::test]
async fn a_run_that_fails_says_why() {
    let rig =
        Rig::of(main_says([Turn::new().fail(mainstem::model::ModelError::from_status(401, "no such key"))]))
            .await;
    let run = rig.run("s", "Hi").await;
    assert_eq!((&run["status"], &run["error"]["code"]), (&json!("error"), &json!("auth")));
    assert!(run["error"]["message"].as_str().unwrap().contains("no such key"), "{run}");
}

#[tokio::test]
async fn an_answer_has_the_form_that_was_asked_for() {
    let rig = Rig::of(main_says([Turn::new().text(r#"{"score": 4}"#)])).await;
    let schema =
        json!({"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]});
    let request = rig.ask(Method::POST, "/v1/sessions/s/runs").header("prefer", "wait=10");
    let body = json!({ "input": "Rate it", "options": { "output_schema": schema } });
    let run: Value = request.json(&body).send().await.unwrap().json().await.unwrap();
    assert_eq!(run["reply"], r#"{"score": 4}"#);
}

#[tokio::test]
async fn a_run_may_narrow_the_servers_limits_and_is_told_where_they_are() {
    let script = main_says([spawn(Turn::new(), "go"), Turn::new().text("Alone, then.")]);
    let rig = Rig::of(script).await;
    let request = rig.ask(Method::POST, "/v1/sessions/s/runs").header("prefer", "wait=10");
    let body = json!({ "input": "go", "options": { "max_depth": 0, "max_children": 1 } });
    let run: Value = request.json(&body).send().await.unwrap().json().await.unwrap();
    assert_eq!(run["reply"], "Alone, then.", "{run}");
    let events = rig.get("/v1/sessions/s/events?follow=false").await.text().await.unwrap();
    assert!(events.contains("an agent at depth 0 can't spawn: agents exist down to depth 0"), "{events}");
    let problem =
        rig.post("/v1/sessions/s/runs", json!({ "input": "go", "options": { "max_children": 17 } })).await;
    let problem: Value = problem.json().await.unwrap();
    assert_eq!(problem["errors"][0]["pointer"], "/options/max_children", "{problem}");
    assert_eq!(problem["detail"], "`max_children` must be from 1 to 16, the limit of this server");
}

#[tokio::test]
async fn a_run_is_cancelled_and_a_child_alone() {
    let script = ScriptedModel::new()
        .agent("main", [spawn(Turn::new(), "hang"), Turn::new().text("It was stopped.")])
        .agent("kid", [Turn::new().text("I hang").hang()]);
    let rig = Rig::of(script).await;
    let begin = async |session: &str| {
        let path = format!("/v1/sessions/{session}/runs");
        let begun: Value = rig.post(&path, json!({ "input": "go" })).await.json().await.unwrap();
        until(&rig, &format!("/v1/sessions/{session}/agents"), |agents| {
            agents["items"][0]["status"] == "running"
        })
        .await;
        format!("/v1/runs/{}", begun["id"].as_str().unwrap())
    };
    let one = begin("one").await;
    assert_eq!(rig.post(&format!("{one}/cancel"), json!({})).await.status(), 202);
    let run = until(&rig, &one, |run| run["status"] == "cancelled").await;
    assert_eq!(run["error"]["message"], "cancelled by the user (over HTTP)", "{run}");
    // A second time changes nothing.
    assert_eq!(rig.post(&format!("{one}/cancel"), json!({})).await.status(), 202);

    let two = begin("two").await;
    let stopped =
        rig.post(&format!("/v1/sessions/two/agents/{}/cancel", rig.kid("two").await), json!({})).await;
    assert_eq!(stopped.json::<Value>().await.unwrap()["was_running"], true);
    assert_eq!(until(&rig, &two, |run| run["status"] == "success").await["reply"], "It was stopped.");
    assert_eq!(rig.post("/v1/sessions/two/agents/agent:kid:9/cancel", json!({})).await.status(), 404);
    let kid = rig.get_json(&format!("/v1/sessions/two/agents/{}", rig.kid("two").await)).await;
    assert_eq!(kid["source"]["agentId"], "kid", "{kid}");
}

#[tokio::test]
async fn a_person_is_asked_and_answers() {
    for (answer, expected) in [
        (json!({"decision": "allow"}), "TOOL_RESULT_END"),
        (json!({"decision": "deny", "reason": "not today"}), "not today"),
    ] {
        let write = Turn::new().call("write", json!({ "path": "a" }));
        let rig = Rig::of(main_says([write, Turn::new().text("Asked.")])).await;
        rig.post("/v1/sessions/s/runs", json!({ "input": "go" })).await;
        let asked = until(&rig, "/v1/sessions/s/fleet", |fleet| fleet.to_string().contains("confirm")).await;
        let events = rig
            .get("/v1/sessions/s/events?follow=false&kind=REQUIRE_USER_CONFIRM")
            .await
            .text()
            .await
            .unwrap();
        let id = events
            .split("\"confirmId\":\"")
            .nth(1)
            .unwrap_or_else(|| panic!("{events} {asked}"))
            .split('"')
            .next()
            .unwrap();
        let path = format!("/v1/sessions/s/confirmations/{id}");
        assert_eq!(rig.post(&path, json!({"decision": "perhaps"})).await.status(), 422);
        assert_eq!(rig.post(&path, answer.clone()).await.status(), 200);
        let again = rig.post(&path, answer).await;
        assert_eq!(
            (again.status().as_u16(), again.json::<Value>().await.unwrap()["code"].clone()),
            (409, json!("not_asked"))
        );
        until(&rig, "/v1/sessions/s", |session| session["active_run"].is_null()).await;
        let events = rig.get("/v1/sessions/s/events?follow=false").await.text().await.unwrap();
        assert!(events.contains(expected) && events.contains("Asked."), "{events}");
    }
}

#[tokio::test]
async fn a_child_is_told_something() {
    let script = ScriptedModel::new()
        .agent("main", [spawn(Turn::new(), "first"), Turn::new().text("Done.")])
        .agent("kid", [Turn::new().text("First."), Turn::new().text("Second.")]);
    let rig = Rig::of(script).await;
    rig.run("s", "go").await;
    let path = &*format!("/v1/sessions/s/agents/{}/messages", rig.kid("s").await);
    assert_eq!(rig.post(path, json!({ "content": "And now?" })).await.status(), 202);
    until(&rig, "/v1/tasks?session=s", |tasks| tasks["items"][0]["status"] == "completed").await;
    let task = rig.get_json("/v1/tasks").await["items"][0]["id"].as_str().unwrap().to_owned();
    let waited = rig.get_json(&format!("/v1/tasks/{task}/wait?timeout=5")).await;
    assert_eq!(waited["result"], "Second.");
    let unknown = rig.post("/v1/sessions/s/agents/agent:kid:7/messages", json!({ "content": "?" })).await;
    assert_eq!(unknown.status(), 404);
    assert_eq!(rig.post(path, json!({ "content": "x", "mode": "shout" })).await.status(), 422);
}

#[tokio::test]
async fn the_leading_agent_is_told_something_while_a_run_is_active() {
    let rig =
        Rig::of(main_says([Turn::new().text("Slow").wait(ms(600)).text("ly."), Turn::new().text("Faster.")]))
            .await;
    let path = "/v1/sessions/s/agents/root/messages";
    let refused = async |body: Value| {
        let response = rig.post(path, body).await;
        (response.status().as_u16(), response.json::<Value>().await.unwrap()["code"].clone())
    };
    let run = rig.post("/v1/sessions/s/runs", json!({ "input": "go" })).await;
    let place = run.headers()["location"].to_str().unwrap().to_owned();
    until(&rig, "/v1/sessions/s", |session| session["active_run"].is_string()).await;
    assert_eq!(
        refused(json!({ "content": "?" })).await,
        (409, json!("only_within_turn")),
        "the mode is queue"
    );
    assert_eq!(rig.post(path, json!({ "content": "Hurry", "mode": "steer" })).await.status(), 202);
    let over = until(&rig, &place, |run| run["status"] == "success").await;
    assert_eq!(over["reply"], "Faster.");
    let body = json!({ "content": "Hurry", "mode": "steer" });
    assert_eq!(refused(body).await, (409, json!("only_within_turn")), "no run is active");
}

#[tokio::test]
async fn a_run_ends_with_its_reader_only_if_that_was_wanted() {
    for (wish, expected) in [(json!("cancel"), "cancelled"), (json!("continue"), "success")] {
        let rig = Rig::of(main_says([Turn::new().text("Slow").wait(ms(400)).text("ly.")])).await;
        let request = rig.ask(Method::POST, "/v1/sessions/s/runs").header("accept", "text/event-stream");
        let body = json!({ "input": "go", "options": { "on_disconnect": wish } });
        let response = request.json(&body).send().await.unwrap();
        let place = response.headers()["location"].to_str().unwrap().to_owned();
        drop(response);
        until(&rig, &place, |run| run["status"] == expected).await;
    }
}

#[tokio::test]
async fn a_server_that_stops_sends_readers_away_and_takes_no_more_runs() {
    let rig = Rig::of(main_says([Turn::new().text("I hang").hang()])).await;
    rig.post("/v1/sessions/s/runs", json!({ "input": "go" })).await;
    let mut reader = rig.get("/v1/sessions/s/events").await;
    assert_eq!((rig.live_runs(), rig.get("/readyz").await.status().as_u16()), (1, 200));
    while !String::from_utf8_lossy(&reader.chunk().await.unwrap().unwrap()).contains("I hang") {}
    rig.stop.cancel();
    let text = tokio::time::timeout(ms(2000), reader.text()).await.unwrap().unwrap();
    assert!(!text.contains("event: end"), "it is not over: {text}");
}

#[tokio::test]
async fn a_server_that_drains_serves_the_runs_that_it_has() {
    let rig = Rig::of(main_says([Turn::new().text("I hang").hang()])).await;
    let begun: Value = rig.post("/v1/sessions/s/runs", json!({ "input": "go" })).await.json().await.unwrap();
    let mut reader = rig.get("/v1/sessions/s/events").await;
    while !String::from_utf8_lossy(&reader.chunk().await.unwrap().unwrap()).contains("I hang") {}
    let cancelled = async {
        until_status(&rig, "/readyz", 503).await;
        let refused = rig.post("/v1/sessions/t/runs", json!({ "input": "go" })).await;
        assert_eq!(
            (refused.status().as_u16(), refused.headers()["retry-after"].to_str().unwrap()),
            (503, "5")
        );
        assert_eq!(refused.json::<Value>().await.unwrap()["code"], "shutting_down");
        // People see how a run ends, and end it.
        assert_eq!(rig.get_json("/v1/sessions/s/fleet").await["agents"][0]["phase"], "speaking");
        let cancel = format!("/v1/runs/{}/cancel", begun["id"].as_str().unwrap());
        assert_eq!(rig.post(&cancel, json!({})).await.status(), 202);
    };
    let drained = tokio::time::timeout(ms(5000), async { tokio::join!(rig.drain(), cancelled) });
    drained.await.expect("the cancelled run is over");
    let mut text = String::new();
    while !text.contains("\"outcome\":\"cancelled\"") {
        text += &String::from_utf8_lossy(&reader.chunk().await.unwrap().expect("the stream goes on"));
    }
    rig.stop.cancel();
}

async fn until_status(rig: &Rig, path: &str, status: u16) {
    while rig.get(path).await.status() != status {
        tokio::time::sleep(ms(5)).await;
    }
}
