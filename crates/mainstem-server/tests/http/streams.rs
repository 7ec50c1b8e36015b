//! Streams: whole, resumed, filtered, over.

use futures_util::StreamExt;
use mainstem::api::StreamForm;
use mainstem::{
    event::{AgentEvent, FleetState},
    journal::SqliteJournal,
    model::scripted::Turn,
    prelude::ScriptedModel,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rig::{Rig, events, fleet, frames, ms, spawn};

pub(crate) fn two_kids() -> ScriptedModel {
    ScriptedModel::new()
        .agent("main", [spawn(spawn(Turn::new(), "one"), "two"), Turn::new().text("Both ").text("did it.")])
        .agent("kid", [Turn::new().say("I have done what I was asked to do").pace(ms(1))])
}

#[tokio::test]
async fn a_run_is_followed_from_its_beginning_to_its_end() {
    let rig = Rig::of(two_kids()).await;
    let request = rig.ask(Method::POST, "/v1/sessions/s/runs").header("accept", "text/event-stream");
    let response = request.json(&json!({ "input": "go" })).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(
        (&response.headers()["cache-control"], &response.headers()["x-accel-buffering"]),
        (&"no-store".parse().unwrap(), &"no".parse().unwrap())
    );
    let place = response.headers()["location"].to_str().unwrap().to_owned();
    let frames = frames(&response.text().await.unwrap());
    assert_eq!((&*frames[0], &**frames.last().unwrap()), ("retry: 2000", "event: end\ndata: {}"));
    let ids: Vec<_> = events(&frames).iter().map(|frame| frame.lines().next().unwrap().to_owned()).collect();
    assert_eq!(ids, (1..=ids.len()).map(|seq| format!("id: {seq}")).collect::<Vec<_>>());
    let run = rig.get_json(&place).await;
    assert_eq!((&run["status"], &run["reply"]), (&json!("success"), &json!("Both did it.")));
    // The same is read later, from the session and for the run.
    let again = rig.frames("/v1/sessions/s/events?follow=false", None).await;
    assert_eq!(events(&again), events(&frames));
    let of_run =
        rig.frames(&format!("/v1/sessions/s/events?run={}", run["id"].as_str().unwrap()), None).await;
    assert_eq!(of_run, frames);
}

#[tokio::test]
async fn a_stream_that_was_cut_anywhere_goes_on_where_it_was() {
    let rig = Rig::of(two_kids()).await;
    let run = rig.run("s", "go").await;
    let path = format!("/v1/sessions/s/events?run={}", run["id"].as_str().unwrap());
    let whole = rig.frames(&path, None).await;
    let whole = events(&whole);
    assert!(whole.len() > 40, "{}", whole.len());
    for cut in 1..whole.len() {
        let rest = rig.frames(&path, Some(cut as u64)).await;
        assert_eq!(events(&rest), whole[cut..], "after {cut}");
    }
    // There is nothing behind the last one, and a browser stops asking.
    let last = whole.len().to_string();
    let response = rig.ask(Method::GET, &path).header("last-event-id", &last).send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.text().await.unwrap()), (204, String::new()));
}

/// Three levels, and one that works in the background.
fn three_levels() -> ScriptedModel {
    let call = |agent: &str, task: &str| json!({ "agent_id": agent, "task": task });
    let mut background = call("kid", "later");
    background["timeout_seconds"] = 0.into();
    let words =
        "a word after a word after a word that says nothing at all but is an event of its own all the same";
    ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new()
                    .call("agent_spawn", background)
                    .call("agent_spawn", call("kid", "deep"))
                    .call("agent_spawn", call("kid", "deep")),
                Turn::new().say(words).call("task_wait", json!({ "task_ids": [] })),
                Turn::new().say(words),
                Turn::new().text("It is done."),
            ],
        )
        .agent_on(
            "kid",
            "deep",
            [Turn::new().say(words).call("agent_spawn", call("grandkid", "deepest")), Turn::new().say(words)],
        )
        .agent_on("kid", "later", [Turn::new().say(words).pace(ms(1)), Turn::new().say(words)])
        .agent("grandkid", [Turn::new().think(words).say(words)])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_lost_after_every_single_event() {
    let dir = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(dir.path().join("j.db")).unwrap();
    let harness = fleet(three_levels())
        .with_subagent(mainstem::prelude::AgentSpec::new("kid", "K").with_tools(["agent_spawn"]));
    let harness =
        harness.with_subagent(mainstem::prelude::AgentSpec::new("grandkid", "G")).with_journal(journal);
    let rig = Rig::start(harness, |builder| builder).await;
    let request = rig.ask(Method::POST, "/v1/sessions/s/runs").header("prefer", "wait=30");
    let body = json!({ "input": "go", "options": { "background": "wait" } });
    let run: Value = request.json(&body).send().await.unwrap().json().await.unwrap();
    assert_eq!(run["status"], "success", "{run}");
    let path = format!("/v1/sessions/s/events?run={}", run["id"].as_str().unwrap());
    let whole = rig.frames(&path, None).await;
    let whole: Vec<_> = events(&whole).into_iter().cloned().collect();
    let depths = ["\"depth\":1", "\"depth\":2", "\"taskId\""];
    assert!(
        whole.len() >= 300 && depths.iter().all(|said| whole.iter().any(|one| one.contains(said))),
        "{}",
        whole.len()
    );
    for cut in 1..whole.len() {
        // Read so far, and not a byte more than the piece that came with it.
        let mut body = rig.get(&path).await.bytes_stream();
        let mut text = String::new();
        while text.matches("\nid: ").count() <= cut && text.matches("event: end").count() == 0 {
            let Some(piece) = body.next().await else { break };
            text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        }
        drop(body);
        let mut seen: Vec<_> = frames(&text).into_iter().filter(|frame| frame.starts_with("id: ")).collect();
        seen.truncate(cut);
        let rest = rig.frames(&path, Some(cut as u64)).await;
        seen.extend(events(&rest).into_iter().cloned());
        assert_eq!(seen, whole, "after {cut}");
    }
}

#[tokio::test]
async fn a_reader_that_comes_and_goes_while_it_runs_misses_nothing() {
    let rig = Rig::of(two_kids()).await;
    let begun: Value = rig.post("/v1/sessions/s/runs", json!({ "input": "go" })).await.json().await.unwrap();
    let path = format!("/v1/sessions/s/events?run={}", begun["id"].as_str().unwrap());
    let (mut seen, mut after, mut visits) = (Vec::new(), 0, 0);
    while !seen.last().is_some_and(|frame: &String| frame.contains("event: end")) {
        // Leaves after the first piece, whatever that holds.
        let request = rig.ask(Method::GET, &path).header("last-event-id", after.to_string());
        let response = request.send().await.unwrap();
        if response.status() == 204 {
            break;
        }
        let mut body = response.bytes_stream();
        let mut text = String::new();
        while !text.contains("id: ") && !text.contains("event: end") {
            text.push_str(std::str::from_utf8(&body.next().await.unwrap().unwrap()).unwrap());
        }
        let whole = text.rsplit_once("\n\n").unwrap().0.to_owned() + "\n\n";
        seen.extend(
            frames(&whole)
                .into_iter()
                .filter(|frame| frame.starts_with("id: ") || frame.contains("event: end")),
        );
        after = seen
            .iter()
            .rev()
            .find_map(|frame| frame.strip_prefix("id: ")?.lines().next()?.parse().ok())
            .unwrap();
        visits += 1;
    }
    assert!(visits > 3, "{visits}");
    let whole = rig.frames(&path, None).await;
    assert_eq!(events(&seen), events(&whole));
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

#[tokio::test]
async fn filters_do_not_renumber() {
    let rig = Rig::of(two_kids()).await;
    rig.run("s", "go").await;
    let names = async |query: &str| {
        let frames = rig.frames(&format!("/v1/sessions/s/events?follow=false&{query}"), None).await;
        let names =
            events(&frames).into_iter().map(|frame| frame.lines().nth(1).unwrap().replace("event: ", ""));
        names.collect::<Vec<_>>()
    };
    assert_eq!(
        sorted(names("kind=AGENT_START,AGENT_END&depth=1").await),
        ["AGENT_END", "AGENT_END", "AGENT_START", "AGENT_START"]
    );
    assert_eq!(names("max_depth=0&kind=agent_start").await, ["AGENT_START"]);
    assert_eq!(names(&format!("agent_key={}&kind=AGENT_END", rig.kid("s").await)).await, ["AGENT_END"]);
    let lifecycle = names("detail=lifecycle").await;
    assert!(lifecycle.iter().all(|name| !name.ends_with("_DELTA")) && lifecycle.len() > 8, "{lifecycle:?}");
    let response = rig.get("/v1/sessions/s/events?follow=false&agent=kid").await;
    let text = response.text().await.unwrap();
    assert!(!text.contains("id: 1\n"), "{text}");
}

#[tokio::test]
async fn lines_are_there_for_those_who_ask() {
    let rig = Rig::of(two_kids()).await;
    rig.run("s", "go").await;
    let request =
        rig.ask(Method::GET, "/v1/sessions/s/events?follow=false").header("accept", "application/x-ndjson");
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let text = response.text().await.unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (&events[0]["type"], &events.last().unwrap()["type"]),
        (&json!("AGENT_START"), &json!("AGENT_END"))
    );
}

#[tokio::test]
async fn each_form_has_its_media_type() {
    let rig = Rig::of(two_kids()).await;
    rig.run("s", "go").await;
    for form in StreamForm::ALL {
        let request = rig.ask(Method::GET, "/v1/sessions/s/events?follow=false");
        let response = request.header("accept", form.media_type()).send().await.unwrap();
        assert_eq!(response.headers()["content-type"], form.media_type());
    }
}

#[tokio::test]
async fn the_fleet_is_a_snapshot_that_names_its_place() {
    let rig = Rig::of(two_kids()).await;
    rig.run("s", "go").await;
    let response = rig.get("/v1/sessions/s/fleet").await;
    let tag = response.headers()["etag"].to_str().unwrap().to_owned();
    // A cache must not give it to another caller.
    assert_eq!(response.headers()["vary"], "authorization, cookie, mainstem-tenant");
    let fleet: Value = response.json().await.unwrap();
    assert_eq!(
        (tag.clone(), fleet["agents"].as_array().unwrap().len()),
        (format!("\"{}\"", fleet["seq"]), 3)
    );
    let again =
        rig.ask(Method::GET, "/v1/sessions/s/fleet").header("if-none-match", &tag).send().await.unwrap();
    assert_eq!((again.status().as_u16(), again.headers().contains_key("vary")), (304, true));
}

#[tokio::test]
async fn the_fleet_after_each_event_is_that_of_a_fold() {
    let dir = tempfile::tempdir().unwrap();
    let journal = || SqliteJournal::open(dir.path().join("j.db")).unwrap();
    let rig = Rig::start(fleet(two_kids()).with_journal(journal()), |builder| builder).await;
    rig.run("s", "go").await;
    let frames = rig.frames("/v1/sessions/s/events?follow=false", None).await;
    let data =
        |frame: &String| frame.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
    let all: Vec<AgentEvent> =
        events(&frames).into_iter().map(|frame| serde_json::from_str(&data(frame)).unwrap()).collect();
    let mut states = vec![FleetState::default()];
    for event in &all {
        let mut state = states[states.len() - 1].clone();
        state.apply(event);
        states.push(state);
    }
    let last = all.len();
    assert!(last > 30);
    rig.end().await;
    // As well by a server that has not run it.
    let rig = Rig::start(fleet(two_kids()).with_journal(journal()), |builder| builder).await;
    for seq in [last, 0, 1, last / 2].into_iter().chain(0..=last) {
        let found = rig.get_json(&format!("/v1/sessions/s/fleet?at={seq}")).await;
        assert_eq!(found, serde_json::to_value(&states[seq]).unwrap(), "{seq}");
    }
    for (at, status, code) in [(&*(last + 1).to_string(), 404, "not_found"), ("-1", 400, "bad_query")] {
        let response = rig.get(&format!("/v1/sessions/s/fleet?at={at}")).await;
        assert_eq!(
            (response.status().as_u16(), response.json::<Value>().await.unwrap()["code"].clone()),
            (status, code.into())
        );
    }
}

#[tokio::test]
async fn a_reader_that_does_not_read_delays_no_other() {
    let model =
        ScriptedModel::new().agent("main", [Turn::new().repeat("many words of little weight ", 20_000)]);
    let rig = Rig::of(model).await;
    let begun: Value = rig.post("/v1/sessions/s/runs", json!({ "input": "go" })).await.json().await.unwrap();
    let path = format!("/v1/sessions/s/events?run={}", begun["id"].as_str().unwrap());
    // It never reads its body.
    let _idle = rig.get(&path).await;
    let run = format!("/v1/runs/{}", begun["id"].as_str().unwrap());
    for _ in 0..400 {
        if rig.get_json(&run).await["status"] == "success" {
            return;
        }
        tokio::time::sleep(ms(25)).await;
    }
    panic!("the run did not end");
}
