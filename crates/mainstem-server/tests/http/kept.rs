//! What outlives a server: sessions in a journal, their runs, and the keys of requests that are
//! repeated.

use std::path::Path;

use futures_util::future::join_all;
use mainstem::{
    journal::{Journal, SqliteJournal},
    model::scripted::Turn,
    prelude::{AgentSpec, ModelRegistry, ScriptedModel},
};
use mainstem_server::Tokens;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    rig::{Rig, TOKEN, events, fleet, ms, spawn},
    servers::journal,
};

pub(crate) fn script() -> ScriptedModel {
    script_after(ScriptedModel::new())
}

pub(crate) fn script_after(model: ScriptedModel) -> ScriptedModel {
    let main = [spawn(Turn::new(), "one"), Turn::new().text("It did it."), Turn::new().text("And more.")];
    model.agent("main", main).agent("kid", [Turn::new().text("Done."), Turn::new().text("Again.")])
}

/// A server on a journal; the one before has to be gone.
pub(crate) async fn process(journal: &Path, model: ScriptedModel) -> Rig {
    let harness =
        fleet(model).with_ids(mainstem::event::RandomIds).with_journal(SqliteJournal::open(journal).unwrap());
    Rig::start(harness, |builder| builder).await
}

/// The same run; when it was asked for is not kept, but when it began.
#[track_caller]
pub(crate) fn same(known: &Value, run: &Value) {
    for field in ["id", "session_id", "status", "reply", "usage", "first_seq", "message"] {
        assert_eq!(known[field], run[field], "{field}");
    }
}

pub(crate) async fn stop(rig: Rig) {
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_an_earlier_process_are_known_and_their_children_answer() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("j.db");
    let rig = process(&journal, script()).await;
    let first = rig.run("s", "go").await;
    let run = first["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/sessions/s/events?run={run}");
    let whole = rig.frames(&path, None).await;
    let transcript = rig.get_json(&format!("/v1/sessions/s/agents/{}/transcript", rig.kid("s").await)).await;
    let said: Vec<_> =
        transcript["messages"].as_array().unwrap().iter().map(|one| one["role"].clone()).collect();
    assert_eq!(said, [json!("user"), json!("assistant")], "{transcript}");
    stop(rig).await;

    let rig = process(&journal, script()).await;
    let known = rig.get_json(&format!("/v1/runs/{run}")).await;
    same(&known, &first);
    assert_eq!(rig.get_json("/v1/sessions/s/runs").await["items"][0], known);
    assert_eq!(rig.frames(&path, None).await, whole);
    let path = format!("/v1/sessions/s/agents/{}", rig.kid("s").await);
    assert_eq!(rig.get_json(&format!("{path}/transcript")).await, transcript);
    assert_eq!(rig.post(&format!("{path}/messages"), json!({ "content": "And?" })).await.status(), 202);
    let mut tasks = Value::Null;
    for _ in 0..200 {
        tasks = rig.get_json("/v1/tasks?session=s&status=completed").await;
        if tasks["items"][0]["result"] == "Again." {
            break;
        }
        tokio::time::sleep(ms(10)).await;
    }
    let task = tasks["items"][0]["id"].as_str().unwrap_or_else(|| panic!("{tasks}"));
    let all = tasks["items"].as_array().unwrap().len();
    // All a task did, to its end; behind that there is nothing.
    let of_task = rig.frames(&format!("/v1/tasks/{task}/events"), None).await;
    assert!(
        of_task.last().unwrap().starts_with("event: end")
            && of_task.iter().any(|frame| frame.contains("Again.")),
        "{of_task:?}"
    );
    let last = events(&of_task).last().unwrap().lines().next().unwrap().trim_start_matches("id: ").to_owned();
    let over = rig
        .ask(Method::GET, &format!("/v1/tasks/{task}/events"))
        .header("last-event-id", last)
        .send()
        .await
        .unwrap();
    assert_eq!(over.status(), 204);
    assert_eq!(rig.get("/v1/runs/run-unknown").await.status(), 404);
    // One that is over is removed alone, once, and by its tenant.
    let removed =
        async || rig.ask(Method::DELETE, &format!("/v1/tasks/{task}")).send().await.unwrap().status();
    assert_eq!(
        rig.stranger(Method::DELETE, &format!("/v1/tasks/{task}")).send().await.unwrap().status(),
        401
    );
    assert_eq!((removed().await.as_u16(), removed().await.as_u16()), (204, 404));
    assert_eq!(rig.get_json("/v1/tasks?status=completed").await["items"].as_array().unwrap().len(), all - 1);
    // With the session its tasks are forgotten, and what they came to.
    let task = task.to_owned();
    assert_eq!(rig.ask(Method::DELETE, "/v1/sessions/s").send().await.unwrap().status(), 204);
    assert_eq!(rig.get(&format!("/v1/tasks/{task}")).await.status(), 404);
    assert_eq!(rig.get_json("/v1/tasks").await["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_who_ask_with_one_key_get_one_run() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("j.db");
    let rig = process(&journal, script()).await;
    let body = json!({ "input": "go" });
    let ask = |rig: &Rig, key: &str, body: &Value| {
        let request = rig.ask(Method::POST, "/v1/sessions/s/runs").header("prefer", "wait=20");
        request.header("idempotency-key", key).json(body).send()
    };
    let answers = join_all((0..50).map(|_| ask(&rig, "the-key", &body))).await;
    let mut ids = Vec::new();
    let mut replayed = 0;
    for answer in answers {
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 200);
        replayed += usize::from(answer.headers().contains_key("idempotent-replayed"));
        let run: Value = answer.json().await.unwrap();
        assert_eq!(run["reply"], "It did it.");
        ids.push(run["id"].as_str().unwrap().to_owned());
    }
    ids.dedup();
    assert_eq!((ids.len(), replayed), (1, 49));
    let refused = |answer: Result<reqwest::Response, _>| async {
        let answer = answer.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap()["code"].clone())
    };
    let other = json!({ "input": "something else" });
    assert_eq!(refused(ask(&rig, "the-key", &other).await).await, (422, json!("idempotency_key_reused")));
    assert_eq!(refused(ask(&rig, "", &body).await).await, (400, json!("bad_idempotency_key")));
    assert_eq!(refused(ask(&rig, &"k".repeat(256), &body).await).await, (400, json!("bad_idempotency_key")));
    // A repeated request gets the whole stream.
    let again = rig.ask(Method::POST, "/v1/sessions/s/runs").header("accept", "text/event-stream");
    let again =
        again.header("idempotency-key", "the-key").json(&body).send().await.unwrap().text().await.unwrap();
    assert!(
        again.starts_with("retry: 2000\n\nid: 1\n") && again.ends_with("event: end\ndata: {}\n\n"),
        "{again}"
    );
    stop(rig).await;

    // Another process knows the key, too.
    let rig = process(&journal, script()).await;
    let answer = ask(&rig, "the-key", &body).await.unwrap();
    assert_eq!(answer.headers()["idempotent-replayed"], "true");
    assert_eq!(answer.json::<Value>().await.unwrap()["id"], ids[0]);
    assert_eq!(refused(ask(&rig, "the-key", &other).await).await, (422, json!("idempotency_key_reused")));
    assert_eq!(rig.get_json("/v1/sessions/s").await["runs"], 1);

    // A message is said once.
    let path = format!("/v1/sessions/s/agents/{}/messages", rig.kid("s").await);
    let tell = || {
        rig.ask(Method::POST, &path).header("idempotency-key", "m").json(&json!({ "content": "And?" })).send()
    };
    for answer in join_all((0..5).map(|_| tell())).await {
        assert_eq!(answer.unwrap().status(), 202);
    }
    for _ in 0..200 {
        if rig.get_json("/v1/tasks?session=s&status=completed").await["items"][0].is_object() {
            break;
        }
        tokio::time::sleep(ms(10)).await;
    }
    assert_eq!(rig.get_json("/v1/tasks").await["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_cancelled_in_the_queue_does_not_begin_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("j.db");
    let model = ScriptedModel::new().agent("main", [Turn::new().text("I hang").hang()]);
    let rig = process(&journal, model).await;
    assert_eq!(rig.post("/v1/sessions/s/runs", json!({ "input": "one" })).await.status(), 202);
    let queue = async |rig: &Rig| {
        let request = rig.ask(Method::POST, "/v1/sessions/s/runs").header("idempotency-key", "k");
        let begun = request.json(&json!({ "input": "two", "queue": true })).send().await.unwrap();
        begun.headers()["location"].to_str().unwrap().to_owned()
    };
    let location = queue(&rig).await;
    rig.post(&format!("{location}/cancel"), json!({})).await;
    for _ in 0..200 {
        if rig.get_json(&location).await["status"] == "cancelled" {
            break;
        }
        tokio::time::sleep(ms(10)).await;
    }
    let known = rig.get_json(&location).await;
    assert_eq!(known["status"], "cancelled", "{known}");
    stop(rig).await;

    let rig = process(&journal, ScriptedModel::new().agent("main", [Turn::new().text("Again.")])).await;
    same(&rig.get_json(&location).await, &known);
    assert_eq!(queue(&rig).await, location);
    assert_eq!(rig.live_runs(), 0);
    same(&rig.get_json(&location).await, &known);
    let runs = rig.get_json("/v1/sessions/s/runs").await;
    let statuses: Vec<_> = runs["items"].as_array().unwrap().iter().map(|run| &run["status"]).collect();
    assert_eq!(statuses, ["cancelled", "cancelled"], "{runs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_are_queued_begin_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("j.db");
    let slow = Turn::new().text("Well.").wait(ms(60_000)).text("Slow.");
    let model =
        ScriptedModel::new().agent("main", [slow, Turn::new().text("Quick."), Turn::new().text("Quicker.")]);
    let rig = process(&journal, model.clone()).await;
    let ask = async |input: &str| -> Value {
        let queued = rig.post("/v1/sessions/s/runs", json!({ "input": input, "queue": true })).await;
        assert_eq!(queued.status(), 202, "{input}");
        queued.json().await.unwrap()
    };
    let (first, second, third) = (ask("one").await, ask("two").await, ask("three").await);
    let mut reader = rig.get("/v1/sessions/s/events").await;
    while !String::from_utf8_lossy(&reader.chunk().await.unwrap().unwrap()).contains("Well.") {}
    assert_eq!([&first["status"], &second["status"], &third["status"]], ["running", "queued", "queued"]);
    drop(reader);
    rig.end().await;

    let rig = process(&journal, model).await;
    // Without a request for the session.
    for _ in 0..1_000 {
        if rig.figure("runs_total{outcome=\"success\"}").await == 2 {
            break;
        }
        tokio::time::sleep(ms(10)).await;
    }
    let view = async |run: &Value| rig.get_json(&format!("/v1/runs/{}", run["id"].as_str().unwrap())).await;
    assert_eq!(view(&first).await["error"]["code"], "shutdown");
    assert_eq!(
        [&view(&second).await["reply"], &view(&third).await["reply"]],
        ["Quick.", "Quicker."],
        "in their order"
    );
    assert_eq!(rig.get_json("/v1/sessions/s").await["runs"], 3);
    // They were removed: a further process begins none.
    rig.end().await;
    let rig = process(&journal, ScriptedModel::new()).await;
    assert_eq!(rig.get_json("/v1/sessions/s").await["runs"], 3);
    assert_eq!(rig.live_runs(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_deleted_when_it_is_not_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let model =
        ScriptedModel::new().agent("main", [Turn::new().text("I hang").hang(), Turn::new().text("No more.")]);
    let rig = process(&dir.path().join("j.db"), model).await;
    let begun: Value = rig.post("/v1/sessions/s/runs", json!({ "input": "go" })).await.json().await.unwrap();
    let delete = || rig.ask(Method::DELETE, "/v1/sessions/s").send();
    // It waits for the run, which has not begun at once.
    for _ in 0..200 {
        if rig.get_json("/v1/sessions/s").await["active_run"].is_string() {
            break;
        }
        tokio::time::sleep(ms(5)).await;
    }
    let busy = delete().await.unwrap();
    assert_eq!(
        (busy.status().as_u16(), busy.json::<Value>().await.unwrap()["code"].clone()),
        (409, json!("session_busy"))
    );
    let run = format!("/v1/runs/{}", begun["id"].as_str().unwrap());
    rig.post(&format!("{run}/cancel"), json!({})).await;
    for _ in 0..200 {
        if rig.get_json(&run).await["status"] == "cancelled" {
            break;
        }
        tokio::time::sleep(ms(5)).await;
    }
    let mut status = 0;
    for _ in 0..200 {
        status = delete().await.unwrap().status().as_u16();
        if status == 204 {
            break;
        }
        tokio::time::sleep(ms(5)).await;
    }
    assert_eq!(status, 204);
    for gone in ["/v1/sessions/s", &run] {
        assert_eq!(rig.get(gone).await.status(), 404, "{gone}");
    }
    assert_eq!(rig.get_json("/v1/sessions").await["items"], json!([]));
    // Its name is free.
    let new: Value = rig.post("/v1/sessions/s/runs", json!({ "input": "go" })).await.json().await.unwrap();
    assert_eq!(new["first_seq"], 1);
}

/// A turn had a model that callers may no longer choose.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_not_resumed_with_a_model_that_is_no_longer_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let started = async |is_allowed: bool, answer: Turn| {
        let dear = ScriptedModel::named("dear").agent("main", [answer]);
        let harness = fleet(script()).with_registry(ModelRegistry::new().with_model("dear", dear));
        let journal = SqliteJournal::open(dir.path().join("j.db")).unwrap();
        let harness = harness.with_ids(mainstem::event::RandomIds).with_journal(journal);
        Rig::start(harness, |server| if is_allowed { server.with_allowed_model("dear") } else { server })
            .await
    };
    let failing = Turn::new().fail(mainstem::model::ModelError::from_status(401, "no such key"));
    let rig = started(true, failing).await;
    let request = rig.ask(Method::POST, "/v1/sessions/s/runs").header("prefer", "wait=10");
    let failed: Value =
        request.json(&json!({ "input": "go", "model": "dear" })).send().await.unwrap().json().await.unwrap();
    assert_eq!(failed["status"], "error", "{failed}");
    stop(rig).await;
    for (is_allowed, expected) in [(false, json!([422, "unknown_model"])), (true, json!([200, null]))] {
        let rig = started(is_allowed, Turn::new().text("Dear.")).await;
        let request = rig.ask(Method::POST, "/v1/sessions/s/runs").header("prefer", "wait=10");
        let response = request.json(&json!({ "resume": true })).send().await.unwrap();
        let status = response.status().as_u16();
        let body: Value = response.json().await.unwrap();
        assert_eq!(json!([status, body["code"]]), expected, "{body}");
        assert_eq!(body.get("reply"), is_allowed.then(|| json!("Dear.")).as_ref(), "{body}");
        stop(rig).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_without_an_answer_is_taken_up() {
    let dir = tempfile::tempdir().unwrap();
    let failing = Turn::new().fail(mainstem::model::ModelError::from_status(401, "no such key"));
    let rig = process(&dir.path().join("j.db"), ScriptedModel::new().agent("main", [failing])).await;
    let failed = rig.run("s", "go").await;
    assert_eq!((&failed["status"], failed.get("resumes")), (&json!("error"), None));
    stop(rig).await;
    let rig =
        process(&dir.path().join("j.db"), ScriptedModel::new().agent("main", [Turn::new().text("Now.")]))
            .await;
    let resume = || {
        let request = rig.ask(Method::POST, "/v1/sessions/s/runs").header("prefer", "wait=10");
        request.json(&json!({ "resume": true })).send()
    };
    let resumed: Value = resume().await.unwrap().json().await.unwrap();
    assert_eq!((&resumed["status"], &resumed["reply"]), (&json!("success"), &json!("Now.")));
    assert_eq!(resumed["resumes"], failed["id"]);
    let listed = rig.get_json("/v1/sessions/s/runs").await;
    assert_eq!(listed["items"][1]["resumes"], failed["id"]);
    let again = resume().await.unwrap();
    assert_eq!(
        (again.status().as_u16(), again.json::<Value>().await.unwrap()["code"].clone()),
        (409, json!("nothing_to_resume"))
    );
    let both = json!({ "resume": true, "compact": true });
    for body in
        [json!({}), json!({ "input": "x", "resume": true }), json!({ "input": "x", "compact": true }), both]
    {
        assert_eq!(rig.post("/v1/sessions/s/runs", body).await.status(), 422);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_share_a_journal_and_see_only_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, acme) = (journal().await, "the-token-of-tenant-acme");
    for process in 0..2 {
        let harness = fleet(script()).with_ids(mainstem::event::RandomIds).with_workspace(dir.path());
        let harness = harness.with_journal(journal.clone());
        let tokens = Tokens::new().with_token(TOKEN, None).unwrap().with_token(acme, Some("acme")).unwrap();
        let rig = Rig::start(harness, |builder| builder.with_tokens(tokens.clone())).await;
        let ask = |token: &str, method: Method, path: &str| rig.stranger(method, path).bearer_auth(token);
        for (token, input) in [(TOKEN, "of all"), (acme, "of acme")] {
            let request = ask(token, Method::POST, "/v1/sessions/s/runs").header("prefer", "wait=20");
            let run: Value =
                request.json(&json!({ "input": input })).send().await.unwrap().json().await.unwrap();
            assert_eq!(run["reply"], ["It did it.", "And more."][process], "{run}");
            let all =
                ask(token, Method::GET, "/v1/sessions").send().await.unwrap().json::<Value>().await.unwrap();
            assert_eq!(all["items"].as_array().unwrap().len(), 1, "{all}");
            let events = ask(token, Method::GET, "/v1/sessions/s/events?follow=false").send().await.unwrap();
            let events = events.text().await.unwrap();
            assert!(
                events.contains(input) && events.matches("\nevent: AGENT_RESULT").count() == 2 + process,
                "{events}"
            );
            // Nor can it be named as the journal has it.
            assert_eq!(ask(token, Method::GET, "/v1/sessions/acme%2Fs").send().await.unwrap().status(), 400);
        }
        rig.stop_now().await;
    }
    let mut names: Vec<_> =
        journal.sessions().await.unwrap().into_iter().map(|one| one.id.to_string()).collect();
    names.sort();
    assert_eq!(names, ["acme/s", "s"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_run_was_given_is_recorded_but_for_prompts() {
    let journal = journal().await;
    let secret = "You know the secret recipe.";
    let process = async || {
        let kid = AgentSpec::new("kid", "Helps").with_prompt(secret);
        let harness = fleet(script()).with_ids(mainstem::event::RandomIds).with_subagent(kid);
        let harness = harness.with_journal(journal.clone());
        Rig::start(harness, |builder| builder).await
    };
    let rig = process().await;
    let options = json!({ "user": "ann", "plan_mode": true, "budget": { "tokens": 1_000_000 } });
    let body = json!({ "input": "go", "options": options });
    let run = rig.ask(Method::POST, "/v1/sessions/s/runs").header("prefer", "wait=30").json(&body);
    assert_eq!(run.send().await.unwrap().json::<Value>().await.unwrap()["status"], "success");
    rig.stop_now().await;
    let rig = process().await;
    assert_eq!(rig.get_json("/v1/sessions/s/fleet").await["planMode"], true);
    let events = rig.frames("/v1/sessions/s/events?follow=false", None).await;
    assert!(events.iter().all(|event| !event.contains("recipe")), "a reader sees a prompt: {events:?}");
    let event = |text: &str| {
        let frame = events.iter().find(|frame| frame.contains(text)).unwrap();
        frame.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned()
    };
    let started = event(r#""settings""#);
    assert!(started.contains(r#""user":"ann""#) && started.contains(r#""tokens":1000000"#), "{started}");
    let kid: Value = serde_json::from_str(&event(r#""specVersion""#)).unwrap();
    let one = rig.get_json(&format!("/v1/sessions/s/events/{}", kid["seq"])).await;
    assert_eq!((&one["specVersion"], &one["spec"]), (&kid["specVersion"], &Value::Null));
    // The record has it whole.
    rig.stop_now().await;
    let all = journal.read(&"s".parse().unwrap(), 1, 1_000).await.unwrap();
    assert!(all.iter().any(|event| event.to_json().contains(secret)));
}
