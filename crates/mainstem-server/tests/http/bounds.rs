//! What is bounded: open sessions, bodies in memory, requests that are worked on; and what is told
//! when a bound is reached or the disk is full.

use futures_util::future::join_all;
use mainstem::{
    journal::{MemoryJournal, SqliteJournal},
    model::scripted::Turn,
    prelude::ScriptedModel,
};
use mainstem_server::Tokens;
use mainstem_testing::FaultyJournal;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::rig::{Rig, TOKEN, fleet, ms};

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
        let answer = tokio::time::timeout(ms(300), rig.post(path, json!({}))).await;
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
