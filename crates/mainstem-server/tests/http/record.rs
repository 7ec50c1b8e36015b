//! The record of one server: a file that is locked, damaged, full or open elsewhere; and a server
//! without one.

use std::sync::Arc;

use mainstem::{
    event::{AgentEvent, LogOptions},
    journal::{Journal, JournalError, MemoryJournal, SqliteJournal},
    model::scripted::Turn,
    prelude::ScriptedModel,
};
use mainstem_testing::{FaultyJournal, laws};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    data, jobs,
    kept::{process, same, script, script_after, stop},
    links,
    rig::{Rig, TOKEN, events, fleet, ms, parsed, says},
    streams::two_kids,
};

#[tokio::test(flavor = "multi_thread")]
async fn idle_sessions_are_closed_and_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j.db");
    let slow = Turn::new().text("Wait.").wait(ms(60_000)).text("Done.");
    let model = ScriptedModel::new().agent_on("main", "slowly", [slow]);
    let harness = fleet(script_after(model)).with_journal(SqliteJournal::open(&path).unwrap());
    let rig = Rig::start(harness, |builder| builder.with_idle_timeout(ms(0))).await;
    let first = rig.run("left", "go").await;
    let kid = rig.kid("left").await;
    assert_eq!(rig.post("/v1/sessions/at-work/runs", json!({ "input": "slowly" })).await.status(), 202);
    rig.run("read", "go").await;
    let mut reader = rig.ask(Method::GET, "/v1/sessions/read/events").send().await.unwrap();
    assert!(reader.chunk().await.unwrap().is_some());

    let open = async || {
        let figures = rig.get("/metrics").await.text().await.unwrap();
        let line = figures.lines().find_map(|line| line.strip_prefix("mainstem_sessions_open "));
        line.unwrap().parse::<u64>().unwrap()
    };
    // What asked for it last may still be about to leave.
    for _ in 0..200 {
        if open().await == 2 {
            break;
        }
        tokio::time::sleep(ms(10)).await;
    }
    assert_eq!(open().await, 2, "one is running, and one is read");
    let other = SqliteJournal::open(&path).unwrap();
    let (left, read) =
        (other.open(&"left".parse().unwrap()).await, other.open(&"read".parse().unwrap()).await);
    assert!(left.is_ok(), "{:?}", left.err());
    assert!(matches!(read, Err(JournalError::Busy { .. })));
    drop(left);
    other.close().await.unwrap();

    same(&rig.get_json(&format!("/v1/runs/{}", first["id"].as_str().unwrap())).await, &first);
    assert_eq!(rig.kid("left").await, kid);
    assert_eq!(rig.run("left", "And?").await["reply"], "And more.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_row_is_damaged_is_listed_beside_the_others_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j.db");
    let rig = process(&path, script()).await;
    for session in ["s", "t"] {
        rig.run(session, "go").await;
    }
    stop(rig).await;
    let damage = "UPDATE sessions SET last = 'many', runs = x'00' WHERE name = 's'";
    rusqlite::Connection::open(&path).unwrap().execute_batch(damage).unwrap();
    let rig = process(&path, script()).await;
    let ids = async || {
        let items = rig.get_json("/v1/sessions").await["items"].clone();
        items
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids().await, ["t", "s"]);
    let opened = rig.get("/v1/sessions/s").await;
    let (status, text) = (opened.status().as_u16(), opened.text().await.unwrap());
    assert!(status == 503 && !text.contains("j.db"), "{status} {text}");
    assert_eq!(rig.ask(Method::DELETE, "/v1/sessions/s").send().await.unwrap().status(), 204);
    assert_eq!(ids().await, ["t"]);
    // Its name is free.
    let new: Value = rig.post("/v1/sessions/s/runs", json!({ "input": "go" })).await.json().await.unwrap();
    assert_eq!(new["first_seq"], 1);
}

/// A session that another server on the same file has open is read there, and not written.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_on_a_file_reads_the_sessions_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j.db");
    let (first, second) = (process(&path, script()).await, process(&path, script()).await);
    let begun: Value =
        first.post("/v1/sessions/s/runs", json!({ "input": "go" })).await.json().await.unwrap();
    let run = format!("/v1/runs/{}", begun["id"].as_str().unwrap());
    while first.get_json(&run).await["status"] == "running" {
        tokio::time::sleep(ms(5)).await;
    }
    for path in ["/v1/sessions/s", "/v1/sessions/s/runs", "/v1/sessions/s/agents"] {
        let (mut here, mut there) = (first.get_json(path).await, second.get_json(path).await);
        for view in [&mut here, &mut there] {
            // The process that has it open knows a few times a little better.
            for at in ["/created_at", "/last_run_at", "/items/0/created_at", "/items/0/last_activity"] {
                view.pointer_mut(at).map(Value::take);
            }
        }
        assert_eq!(there, here, "{path}");
    }
    let refused = second.post("/v1/sessions/s/runs", json!({ "input": "go" })).await;
    assert_eq!(refused.status(), 409);
    stop(first).await;
    stop(second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_tied_to_its_reader_before_it_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j.db");
    let wait = Turn::new().text("Well.").wait(ms(60_000));
    let model = ScriptedModel::new().agent("main", [Turn::new().text("Quick."), wait]);
    let harness = fleet(model).with_journal(SqliteJournal::open(&path).unwrap());
    let rig = Rig::start(harness, |builder| builder).await;
    rig.run("s", "before").await;
    // While nothing can be recorded, the reader asks for a run and leaves.
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let body = json!({ "input": "go", "options": { "on_disconnect": "cancel" } });
    let request =
        rig.ask(Method::POST, "/v1/sessions/s/runs").header("accept", "text/event-stream").json(&body);
    let left = tokio::time::timeout(ms(500), request.send()).await;
    assert!(left.is_err(), "it waits for the record");
    other.execute_batch("ROLLBACK").unwrap();
    for _ in 0..200 {
        let runs = rig.get_json("/v1/sessions/s/runs").await;
        if runs["items"][1]["status"] == "cancelled" {
            return;
        }
        tokio::time::sleep(ms(20)).await;
    }
    panic!("{}", rig.get_json("/v1/sessions/s/runs").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_run_is_shown_once_it_is_recorded() {
    let journal = FaultyJournal::new(MemoryJournal::new());
    let model = ScriptedModel::new().agent("main", [Turn::new().wait(ms(200)).text("Done.")]);
    let rig = Rig::start(fleet(model).with_journal(journal.clone()), |builder| builder).await;
    let begin = async |run| rig.post("/v1/sessions/s/runs", run).await.json::<Value>().await.unwrap();
    let active = begin(json!({ "input": "go" })).await;
    let queued = begin(json!({ "input": "next", "queue": true })).await;
    let path_of = |run: Value| format!("/v1/runs/{}", run["id"].as_str().unwrap());
    let (active, queued) = (path_of(active), path_of(queued));
    // While nothing is recorded, both end; a view waits for that.
    journal.hold_commits(true);
    let cancel = format!("{queued}/cancel");
    let cancelled = async {
        let answer = rig.post(&cancel, json!({})).await.json::<Value>().await.unwrap();
        assert_eq!(answer["status"], "queued");
        seen_over(&rig, &queued).await
    };
    let ended = seen_over(&rig, &active);
    let both = tokio::time::timeout(ms(1_000), async {
        tokio::select! { view = cancelled => view, view = ended => view }
    });
    assert!(both.await.is_err(), "neither end is shown");
    let session = rig.get_json("/v1/sessions/s").await;
    assert_eq!((&session["state"], &session["queued_runs"]), (&json!("running"), &json!([])), "{session}");
    journal.hold_commits(false);
    let (active, queued) = (seen_over(&rig, &active).await, seen_over(&rig, &queued).await);
    assert_eq!([&active["status"], &queued["status"]], ["success", "cancelled"]);
}

/// Asks for a run until it is over.
async fn seen_over(rig: &Rig, path: &str) -> Value {
    loop {
        let view = rig.get_json(path).await;
        if !["queued", "running"].contains(&view["status"].as_str().unwrap()) {
            return view;
        }
        tokio::time::sleep(ms(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_are_cut_end_with_an_error() {
    let lines = async |room| {
        let journal = FaultyJournal::new(MemoryJournal::new());
        let harness = fleet(says(8)).with_journal(journal.clone());
        let rig = Rig::start(harness, |builder| builder).await;
        journal.fill_after(room);
        let request = rig.ask(Method::POST, "/v1/sessions/s/runs").header("accept", "application/x-ndjson");
        request.json(&json!({ "input": "go" })).send().await?.text().await
    };
    lines(u64::MAX).await.expect("all lines");
    lines(5).await.expect_err("the record has room for five events");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_reader_saw_stays_true_when_the_disk_is_full() {
    // After each number of events that the disk has room for, up to more than there are.
    let mut failed = 0;
    for room in 0..24 {
        let journal = FaultyJournal::new(MemoryJournal::new());
        let harness = fleet(says(8)).with_journal(journal.clone());
        let rig = Rig::start(harness, |builder| builder).await;
        rig.run("s", "before").await;
        let before = rig.get_json("/v1/sessions/s").await["last_seq"].as_u64().unwrap();
        journal.fill_after(room);
        let request = rig.ask(Method::POST, "/v1/sessions/s/runs").header("accept", "text/event-stream");
        let text = request.json(&json!({ "input": "go" })).send().await.unwrap().text().await.unwrap();
        let seen = parsed(&text);
        let is_cut = text.contains("event: problem");
        assert_ne!(is_cut, text.contains("event: end"), "{text}");
        assert!(!is_cut || text.contains("\"code\":\"journal_unavailable\""), "{text}");
        assert!(seen.iter().all(|event| event.seq <= before + room), "{text}");
        failed += usize::from(is_cut);
        // No run begins, and the server says that it is not ready.
        if is_cut {
            for path in ["/v1/sessions/s", "/v1/sessions/s/fleet", "/v1/sessions/s/events"] {
                assert_eq!(rig.get(path).await.status(), 503, "{path}");
            }
            assert_eq!(rig.get("/readyz").await.status(), 503);
        }
        journal.make_room();
        let run = rig.run("s", "after").await;
        assert_eq!(run["status"], "success", "{run}");
        tokio::time::sleep(ms(if is_cut { 110 } else { 0 })).await;
        assert_eq!(rig.get("/readyz").await.status(), 200);
        let all = rig.ask(Method::GET, "/v1/sessions/s/events?follow=false").send().await.unwrap();
        let all = parsed(&all.text().await.unwrap());
        laws(&all).unwrap_or_else(|error| panic!("after {room}: {error}"));
        for event in &seen {
            let now = all.iter().find(|now| now.seq == event.seq);
            assert_eq!(now.map(AgentEvent::to_json), Some(event.to_json()), "after {room}");
        }
    }
    assert!((5..24).contains(&failed), "{failed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_put_off_says_why() {
    let journal = Arc::<MemoryJournal>::default();
    let rig = Rig::start(fleet(says(1)).with_journal(journal.clone()), |builder| builder).await;
    // Another process has the session open.
    let held = journal.open(&"s".parse().unwrap()).await.unwrap();
    let job = jobs::add(&rig, json!({ "session_id": "s", "run": { "input": "go" } })).await;
    let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
    let mut why = Value::Null;
    for _ in 0..200 {
        why = rig.get_json(&path).await["postponed"].clone();
        if !why.is_null() {
            break;
        }
        tokio::time::sleep(ms(20)).await;
    }
    assert!(why.as_str().is_some_and(|why| why.contains("session s is open elsewhere")), "{why}");
    drop(held);
    let job = jobs::until(&rig, &job, "ended").await;
    assert_eq!((&job["last_run"]["status"], &job["postponed"]), (&json!("success"), &Value::Null), "{job}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_journal_has_no_data_jobs_and_links() {
    let rig = Rig::of(says(1)).await;
    rig.run("s", "go").await;
    let none = data::problem(data::store(&rig, "s", vec![1; 10]).await).await;
    assert_eq!((none.0, &none.1["code"]), (409, &json!("no_data")), "{none:?}");
    let none = rig.post("/v1/jobs", json!({ "run": { "input": "go" } })).await;
    assert_eq!(none.json::<Value>().await.unwrap()["code"], "no_jobs");
    let none = links::add(&rig, TOKEN, "s", json!({})).await;
    assert_eq!(links::code(none).await, links::refused(409, "no_links"));
    // A token of this form is none here.
    let token = format!("msl{}", "a".repeat(64));
    let none = links::get(&rig, &token, "/v1/link").await;
    assert_eq!(links::code(none).await, links::refused(401, "link_over"));
}

#[tokio::test]
async fn what_is_no_longer_kept_is_said_with_what_is() {
    let mut log = LogOptions::default();
    log.ring = 10;
    let rig = Rig::start(fleet(two_kids()).with_log(log), |builder| builder).await;
    rig.run("s", "go").await;
    let response = rig.get("/v1/sessions/s/events?after=2").await;
    assert_eq!(response.status(), 410);
    let problem: Value = response.json().await.unwrap();
    let oldest = problem["oldest_seq"].as_u64().unwrap();
    assert_eq!(problem["code"], "gone");
    let frames = rig.frames(&format!("/v1/sessions/s/events?follow=false&after={}", oldest - 1), None).await;
    assert!(events(&frames)[0].starts_with(&format!("id: {oldest}\n")));
}
