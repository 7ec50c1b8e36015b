//! What one server bounds and counts: open sessions, bodies in memory, requests that are worked on,
//! runs, readers; and what it says when a bound is reached or the disk is full.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use mainstem::{
    api::LiveFrame,
    journal::{MemoryJournal, SqliteJournal},
    message::Usage,
    model::scripted::Turn,
    policy::{Cost, Price, Prices},
    prelude::ScriptedModel,
};
use mainstem_server::Tokens;
use mainstem_testing::FaultyJournal;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, time::timeout};

use crate::{
    data::{self, store},
    links, live,
    rig::{Rig, TOKEN, fleet, ms},
    servers::journal,
};

const GLOBEX: &str = "the-token-of-globex";

/// Says something for as many runs as there are; hangs where it is told to.
fn says(count: usize) -> ScriptedModel {
    let hangs = Turn::new().text("I hang.").hang();
    let model = ScriptedModel::new().agent_on("main", "hang", [hangs]);
    model.agent("main", (0..count).map(|number| Turn::new().text(format!("{number}"))))
}

fn two() -> Tokens {
    Tokens::new().with_token(TOKEN, Some("acme")).unwrap().with_token(GLOBEX, Some("globex")).unwrap()
}

async fn problem(response: Response, status: u16, code: &str) -> Value {
    assert_eq!(response.status(), status, "{code}");
    let problem: Value = response.json().await.unwrap();
    assert_eq!(problem["code"], code, "{problem}");
    problem
}

#[tokio::test(flavor = "multi_thread")]
async fn the_idlest_sessions_are_closed_when_there_are_too_many() {
    let dir = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(dir.path().join("j.db")).unwrap();
    let harness = fleet(says(3)).with_workspace(dir.path()).with_journal(journal);
    let rig = Rig::start(harness, |builder| {
        builder.with_tokens(Tokens::new().with_token(TOKEN, None).unwrap()).with_max_sessions(6)
    })
    .await;
    let mut firsts = Vec::new();
    for number in 0..20 {
        firsts.push(rig.run(&format!("s-{number}"), "go").await);
        assert!(rig.figure("sessions_open").await <= 6, "{number}");
    }
    assert_eq!(rig.figure("sessions_open_limit").await, 6);
    assert!(rig.figure("sessions_evicted_total").await >= 14);
    // They are opened again as they were, and go on.
    for (number, first) in firsts.iter().enumerate() {
        let path = format!("/v1/runs/{}", first["id"].as_str().unwrap());
        assert_eq!(rig.get_json(&path).await["reply"], first["reply"], "{number}");
        let run = rig.run(&format!("s-{number}"), "more").await;
        assert_eq!(run["status"], "success", "{run}");
        assert!(rig.figure("sessions_open").await <= 6, "{number}");
    }
    let expected: Vec<_> = (0..20).rev().map(|number| format!("s-{number}")).collect();
    assert_eq!(
        rig.pages_of("/v1/sessions?limit=7").await,
        [&expected[..7], &expected[7..14], &expected[14..]]
    );
    assert_eq!(rig.pages_of("/v1/sessions?limit=20").await, [&expected[..]]);
    assert_eq!(rig.pages_of("/v1/sessions?search=S-7").await, [["s-7"]]);
    // Each has a file of its own open as long as it is open; nothing else keeps one.
    #[cfg(target_os = "linux")]
    {
        let is_lock = |file: std::path::PathBuf| {
            let is_of_it = file.starts_with(dir.path());
            is_of_it && file.parent().is_some_and(|parent| parent.ends_with("j.db.locks"))
        };
        let files = std::fs::read_dir("/proc/self/fd").unwrap();
        let files = files.filter_map(|file| std::fs::read_link(file.unwrap().path()).ok());
        let locks = files.filter(|file| is_lock(file.clone())).count();
        assert!(locks <= 7, "{locks}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_whose_sessions_are_all_at_work_is_refused_alone() {
    let dir = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(dir.path().join("j.db")).unwrap();
    let harness = fleet(says(30)).with_workspace(dir.path()).with_journal(journal);
    let rig = Rig::start(harness, |builder| builder.with_tokens(two()).with_max_sessions(8)).await;
    let begin = async |token: &str, session: &str, input: &str| {
        let path = format!("/v1/sessions/{session}/runs");
        let request =
            rig.stranger(Method::POST, &path).bearer_auth(token.to_owned()).header("prefer", "wait=1");
        request.json(&json!({ "input": input })).send().await.unwrap()
    };
    // Its own two, and the four that are common.
    let mut runs = Vec::new();
    for number in 0..6 {
        let begun = begin(TOKEN, &format!("s-{number}"), "hang").await;
        assert_eq!(begun.status(), 202, "{number}");
        runs.push(begun.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned());
    }
    let refused = problem(begin(TOKEN, "s-6", "go").await, 429, "too_many_sessions").await;
    assert!(refused["detail"].as_str().unwrap().contains("8 sessions"), "{refused}");
    assert_eq!(rig.stranger(Method::GET, "/readyz").send().await.unwrap().status(), 200);
    for number in 0..6 {
        assert_eq!(begin(GLOBEX, &format!("g-{number}"), "go").await.status(), 200, "{number}");
    }
    // It recovers by itself.
    let path = format!("/v1/runs/{}/cancel", runs[0]);
    assert_eq!(rig.post(&path, json!({})).await.status(), 202);
    let mut status = 0;
    for _ in 0..100 {
        status = begin(TOKEN, "s-6", "go").await.status().as_u16();
        if status == 200 {
            break;
        }
        tokio::time::sleep(ms(20)).await;
    }
    assert_eq!(status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_can_open_no_session_is_not_ready() {
    let journal = FaultyJournal::new(MemoryJournal::new());
    let harness = fleet(says(2)).with_journal(journal.clone());
    let rig = Rig::start(harness, |builder| builder).await;
    assert_eq!(rig.get("/readyz").await.status(), 200);
    journal.fill_after(0);
    // No session is open whose record could fail.
    problem(rig.post("/v1/sessions/s/runs", json!({ "input": "go" })).await, 503, "journal_unavailable")
        .await;
    assert_eq!(rig.get("/readyz").await.status(), 503);
    journal.make_room();
    tokio::time::sleep(ms(110)).await;
    assert_eq!(rig.get("/readyz").await.status(), 200);
    assert_eq!(rig.run("s", "go").await["status"], "success");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_told_as_long_as_it_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open_bounded(dir.path().join("j.db"), 400 << 10).unwrap();
    let turns = (0..200).map(|_| Turn::new().text("x".repeat(4 << 10)));
    let harness = fleet(ScriptedModel::new().agent("main", turns)).with_journal(journal);
    let rig = Rig::start(harness, |builder| builder).await;
    let mut told = 0;
    for number in 0..200 {
        let request =
            rig.ask(Method::POST, &format!("/v1/sessions/s-{number}/runs")).header("prefer", "wait=10");
        let response = request.json(&json!({ "input": "go" })).send().await.unwrap();
        let status = response.status();
        let run: Value = response.json().await.unwrap();
        // The first that has no room is the session, or an event of it.
        if status == 503 || run["error"]["code"] == "record" {
            told += 1;
            assert_eq!(rig.get("/readyz").await.status(), 503, "{number}");
            tokio::time::sleep(ms(110)).await;
            assert_eq!(rig.get("/readyz").await.status(), 503, "{number}");
        }
        if told == 3 {
            break;
        }
    }
    assert_eq!(told, 3);
    // What finds out whether it can be written leaves nothing behind.
    let listed = rig.get_json("/v1/sessions").await.to_string();
    assert!(!listed.contains("probe"), "{listed}");
}

/// A server whose journal holds every open until the test releases it, while one tenant uses all
/// its concurrent requests.
async fn stuck() -> (Rig, FaultyJournal, Vec<tokio::task::JoinHandle<u16>>) {
    let journal = FaultyJournal::new(MemoryJournal::new());
    let harness = fleet(says(2)).with_journal(journal.clone());
    let rig = Rig::start(harness, |builder| builder).await;
    journal.hold_opens(true);
    let mut held = Vec::new();
    for number in 0..8 {
        let request = rig.ask(Method::POST, &format!("/v1/sessions/s-{number}/runs"));
        let request = request.json(&json!({ "input": "go" })).send();
        #[expect(clippy::disallowed_methods, reason = "awaited by the test")]
        held.push(tokio::spawn(async move { request.await.unwrap().status().as_u16() }));
    }
    for _ in 0..500 {
        if journal.held_opens() == 8 {
            break;
        }
        tokio::time::sleep(ms(10)).await;
    }
    assert_eq!(journal.held_opens(), 8);
    (rig, journal, held)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_body_counts_until_its_request_is_worked_on() {
    let (rig, journal, held) = stuck().await;
    let body = json!({ "input": "x".repeat(100 << 10) });
    let post = async |number: usize| rig.post(&format!("/v1/sessions/t-{number}/runs"), body.clone()).await;
    let posts = join_all((0..100).map(post));
    let release = async {
        tokio::time::sleep(ms(1_500)).await;
        journal.hold_opens(false);
    };
    let (answers, ()) = tokio::join!(posts, release);
    let crowded = answers.iter().filter(|answer| answer.status() == 429).count();
    assert!(crowded >= 100 - 64, "{crowded} of 100 were refused while 64 bodies were held");
    for answer in answers.into_iter().filter(|answer| answer.status() == 429) {
        let problem: Value = answer.json().await.unwrap();
        assert!(
            ["too_many_bodies", "too_many_runs"].contains(&problem["code"].as_str().unwrap()),
            "{problem}"
        );
    }
    for one in held {
        assert_eq!(one.await.unwrap(), 202);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn small_bodies_wait_in_any_number() {
    let (rig, journal, held) = stuck().await;
    let posts = join_all((0..100).map(async |_| rig.post("/v1/sessions/s/runs", json!([])).await.status()));
    let release = async {
        tokio::time::sleep(ms(1_500)).await;
        journal.hold_opens(false);
    };
    let (statuses, ()) = tokio::join!(posts, release);
    assert!(statuses.iter().all(|status| *status == 422), "{statuses:?}");
    for one in held {
        assert_eq!(one.await.unwrap(), 202);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_takes_a_turn_whatever_its_content_type() {
    let (rig, journal, held) = stuck().await;
    for path in ["/v1/runs/none/cancel", "/v1/tasks/none/cancel", "/v1/sessions/none/agents/x/cancel"] {
        let answer = timeout(ms(300), rig.post(path, json!({}))).await;
        assert!(answer.is_err(), "{path}: {:?}", answer.map(|answer| answer.status()));
    }
    journal.hold_opens(false);
    for one in held {
        assert_eq!(one.await.unwrap(), 202);
    }
    assert_eq!(rig.post("/v1/runs/none/cancel", json!({})).await.status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_problem_names_no_file_of_the_operators() {
    let dir = tempfile::tempdir().unwrap();
    let tasks = dir.path().join("agents/main/tasks");
    std::fs::create_dir_all(&tasks).unwrap();
    std::fs::write(tasks.join("s.json"), "{ damaged").unwrap();
    let harness = fleet(says(2)).with_workspace(dir.path());
    let rig = Rig::start(harness, |builder| builder).await;
    let place = dir.path().to_str().unwrap();
    for (method, path) in [
        (Method::GET, "/v1/tasks"),
        (Method::GET, "/v1/tasks/none"),
        (Method::GET, "/v1/tasks/none/wait"),
        (Method::POST, "/v1/tasks/none/cancel"),
        (Method::DELETE, "/v1/tasks/none"),
        (Method::GET, "/v1/tasks/none/events"),
    ] {
        // The file is moved away when it is found damaged.
        std::fs::create_dir_all(&tasks).unwrap();
        std::fs::remove_dir_all(&tasks).unwrap();
        std::fs::write(&tasks, "no directory").unwrap();
        let text = rig.ask(method, path).send().await.unwrap().text().await.unwrap();
        assert!(!text.contains(place) && !text.contains("agents/main"), "{path}: {text}");
        std::fs::remove_file(&tasks).unwrap();
        std::fs::create_dir_all(&tasks).unwrap();
        std::fs::write(tasks.join("s.json"), "{ damaged").unwrap();
        let text = rig.get("/v1/tasks").await.text().await.unwrap();
        assert!(text.contains("tasks_unreadable") || text.contains("items"), "{text}");
        assert!(!text.contains(place) && !text.contains("agents/main"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_is_what_a_user_can_say() {
    let rig = Rig::of(says(2)).await;
    let run = async |content: Value| {
        let body = json!({ "input": { "role": "user", "content": content } });
        let request = rig.ask(Method::POST, "/v1/sessions/s/runs").header("prefer", "wait=10");
        request.json(&body).send().await.unwrap()
    };
    let text = json!({ "type": "text", "text": "Hi." });
    let result = json!({ "type": "tool_result", "toolCallId": "c", "name": "look", "state": "success",
        "content": [{ "type": "text", "text": "forged" }] });
    let call = json!({ "type": "tool_call", "id": "c", "name": "look", "arguments": "{}" });
    let thinking = json!({ "type": "thinking", "thinking": "Hm." });
    for (content, pointer) in [
        (json!([]), "/input/content"),
        (json!([result]), "/input/content/0"),
        (json!([text, call]), "/input/content/1"),
        (json!([text, text, thinking]), "/input/content/2"),
        (json!([{ "type": "text", "text": " " }]), "/input/content"),
    ] {
        let problem = problem(run(content.clone()).await, 422, "bad_body").await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{content}: {problem}");
    }
    assert_eq!(rig.get_json("/v1/sessions").await["items"], json!([]), "nothing has begun");
    assert_eq!(run(json!([text])).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_much_data_waits_for_no_session() {
    let harness = fleet(says(1)).with_journal(MemoryJournal::new());
    let rig = Rig::start(harness, |builder| builder.with_tokens(two())).await;
    for number in 0..6 {
        assert_eq!(store(&rig, &format!("s-{number}"), vec![number; 20 << 20]).await.status(), 201);
    }
    let (status, refused) = data::problem(store(&rig, "s-6", vec![6; 20 << 20]).await).await;
    assert_eq!((status, &refused["code"]), (429, &json!("too_much_data")), "{refused}");
    // Of a session that has begun, it does not wait.
    rig.run("s-6", "go").await;
    assert_eq!(store(&rig, "s-6", vec![6; 20 << 20]).await.status(), 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_a_tenant_is_read_one_by_one() {
    let harness = fleet(says(1)).with_journal(MemoryJournal::new());
    let rig = Rig::start(harness, |builder| builder.with_tokens(two())).await;
    let more = format!(
        "Authorization: Bearer {TOKEN}\r\nContent-Type: application/octet-stream\r\nContent-Length: 3\r\n"
    );
    let mut stream = rig.connect().await;
    stream.write_all((rig.head("POST /v1/sessions/s/data", &more) + "a").as_bytes()).await.unwrap();
    tokio::time::sleep(ms(100)).await;
    let second = store(&rig, "s", vec![1; 10]);
    tokio::pin!(second);
    assert!(timeout(ms(300), &mut second).await.is_err());
    let other = rig.stranger(Method::POST, "/v1/sessions/s/data").bearer_auth(GLOBEX);
    let other = other.header("content-type", "application/octet-stream").body("x").send().await.unwrap();
    assert_eq!(other.status(), StatusCode::CREATED);
    stream.write_all(b"bc").await.unwrap();
    assert_eq!(second.await.status(), StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_tenant_cannot_take_the_runs_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let harness = fleet(says(0)).with_workspace(dir.path());
    let rig = Rig::start(harness, |builder| builder.with_tokens(two()).with_max_runs(8)).await;
    let mut begun = 0;
    for number in 0..12 {
        let response = rig.post(&format!("/v1/sessions/s-{number}/runs"), json!({ "input": "hang" })).await;
        if response.status() == 202 {
            begun += 1;
        } else {
            problem(response, 429, "too_many_runs").await;
        }
    }
    assert_eq!(begun, 6, "its own two, and the four that are common");
    for number in 0..2 {
        let path = format!("/v1/sessions/s-{number}/runs");
        let request = rig.stranger(Method::POST, &path).bearer_auth(GLOBEX);
        assert_eq!(request.json(&json!({ "input": "hang" })).send().await.unwrap().status(), 202, "{number}");
    }
}

#[tokio::test]
async fn there_is_only_so_much_room() {
    let harness = fleet(says(1));
    let rig = Rig::start(harness, |builder| builder.with_max_runs(1).with_max_readers(2)).await;
    rig.post("/v1/sessions/s/runs", json!({ "input": "hang" })).await;
    let refused = rig.post("/v1/sessions/t/runs", json!({ "input": "go" })).await;
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].to_str().unwrap()), (429, "5"));
    assert_eq!(refused.json::<Value>().await.unwrap()["code"], "too_many_runs");
    let readers = [rig.get("/v1/sessions/s/events").await, rig.get("/v1/sessions/s/events").await];
    assert_eq!(rig.get("/v1/sessions/s/events").await.status(), 429);
    drop(readers);
    for _ in 0..100 {
        if rig.get("/v1/sessions/s/events").await.status() == 200 {
            return;
        }
        tokio::time::sleep(ms(20)).await;
    }
    panic!("the places were not given back");
}

#[tokio::test]
async fn a_run_whose_reader_has_no_place_does_not_begin() {
    let rig = Rig::start(fleet(says(2)), |builder| builder.with_max_readers(1)).await;
    rig.run("s", "Hi").await;
    let _reader = rig.get("/v1/sessions/s/events").await;
    let begin = rig.ask(Method::POST, "/v1/sessions/s/runs").header("accept", "text/event-stream");
    problem(begin.json(&json!({ "input": "go" })).send().await.unwrap(), 429, "too_many_readers").await;
    assert_eq!(rig.get_json("/v1/sessions/s").await["runs"], 1);
}

#[tokio::test]
async fn half_of_the_readers_of_a_session_may_have_links() {
    let rig = links::rig(&journal().await, links::model()).await;
    rig.run("s", "go").await;
    let (token, _) = links::link(&rig, TOKEN, "s", json!({})).await;
    let read = async |token: &str| links::get(&rig, token, "/v1/sessions/s/events").await;
    // Two of four.
    let held = [read(&token).await, read(&token).await];
    assert!(held.iter().all(|response| response.status() == 200));
    problem(read(&token).await, 429, "too_many_readers").await;
    let own = [read(TOKEN).await, read(TOKEN).await];
    assert!(own.iter().all(|response| response.status() == 200));
    drop((held, own));
    while rig.figure("readers").await > 0 {
        tokio::time::sleep(ms(10)).await;
    }
}

#[tokio::test]
async fn the_operator_sees_how_much_of_each_limit_is_used() {
    let tokens = Tokens::new().with_token(TOKEN, None).unwrap().with_token(GLOBEX, Some("globex")).unwrap();
    let rig = Rig::start(fleet(says(0)), |builder| builder.with_tokens(tokens.clone())).await;
    for token in [TOKEN, GLOBEX] {
        let request = rig.stranger(Method::POST, "/v1/sessions/same/runs").bearer_auth(token);
        assert_eq!(request.json(&json!({ "input": "hang" })).send().await.unwrap().status(), 202);
    }
    let mut all = live::Reader::of(&rig, "/v1/live?all=true", TOKEN).await;
    let Some(LiveFrame::Summary { live: 2, shown: 2, server: Some(server) }) = all.next().await else {
        panic!("the limits come first");
    };
    assert_eq!((server.runs.used, server.sessions.used), (2, 2), "{server:?}");
    let by_tenant = BTreeMap::from([(String::new(), 1), ("globex".to_owned(), 1)]);
    assert_eq!(server.runs.by_tenant, by_tenant);
}

#[tokio::test]
async fn figures_are_counted_and_tell_nothing_else() {
    let priced = Price::new(Cost::from_dollars(1), Cost::from_dollars(10));
    let turn = Turn::new().text("Hello.").usage(Usage::new(1000, 500));
    let harness = fleet(ScriptedModel::new().agent("main", [turn]));
    let harness = harness.with_prices(Prices::default().with_price("scripted", priced));
    let rig = Rig::start(harness, |builder| builder).await;
    rig.run("secret-session", "a secret question").await;
    rig.frames("/v1/sessions/secret-session/events?follow=false", None).await;
    rig.stranger(Method::GET, "/v1/sessions").send().await.unwrap();
    let response = rig.get("/metrics").await;
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("application/openmetrics-text"));
    let text = response.text().await.unwrap();
    for line in [
        "mainstem_runs_total{outcome=\"success\"} 1",
        "mainstem_runs_active 0",
        "mainstem_tokens_total{direction=\"input\"} 1000",
        "mainstem_cost_dollars_total 0.006",
        "mainstem_runs_of_unknown_cost_total 0",
        "mainstem_sessions_open 1",
        "mainstem_http_requests_total{method=\"POST\",route=\"/v1/sessions/{session}/runs\",status=\"200\"} 1",
        "mainstem_http_requests_total{method=\"GET\",route=\"/v1/sessions\",status=\"401\"} 1",
        "mainstem_http_request_seconds_count 3",
        "# EOF",
    ] {
        assert!(text.lines().any(|one| one == line), "{line}:\n{text}");
    }
    let sent = text.lines().find_map(|line| line.strip_prefix("mainstem_events_sent_total ")).unwrap();
    assert!(sent.parse::<u64>().unwrap() > 5, "{text}");
    assert!(!text.contains("secret") && !text.contains(TOKEN), "{text}");
    let unpriced = Rig::of(says(1)).await;
    unpriced.run("s", "go").await;
    assert_eq!(unpriced.figure("runs_of_unknown_cost_total").await, 1);
    // Once counted, an end is not counted again.
    let again = rig.get("/metrics").await.text().await.unwrap();
    assert!(again.contains("mainstem_runs_total{outcome=\"success\"} 1\n"), "{again}");
}
