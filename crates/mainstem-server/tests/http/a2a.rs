//! Agent2Agent: refusals in the forms of both bindings, cards, tenants, and where streams go on.
//! The official clients are in `tests/protocols`.

use std::time::Duration;

use mainstem::{journal::SqliteJournal, model::scripted::Turn, prelude::ScriptedModel};
use mainstem_server::{Builder, Protocol, Tokens};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rig::{Rig, TOKEN, fleet, frames, ms, spawn};

const ACME: &str = "the-token-of-tenant-acme";
/// The only host that is notified, where no server listens.
const HOOKS: &str = "127.0.0.2";
const EVENTS: &str = "https://github.com/mainstem-rs/mainstem/a2a/events/v1";

/// A server of two tenants, whose directory is removed with it.
struct Served {
    rig: Rig,
    _dir: tempfile::TempDir,
}

impl std::ops::Deref for Served {
    type Target = Rig;

    fn deref(&self) -> &Rig {
        &self.rig
    }
}

async fn rig(model: ScriptedModel) -> Served {
    let dir = tempfile::TempDir::new().unwrap();
    let harness = fleet(model).with_workspace(dir.path());
    let tokens = Tokens::new().with_token(TOKEN, None).unwrap().with_token(ACME, Some("acme")).unwrap();
    let build = |server: Builder| server.with_protocol(Protocol::A2a).with_tokens(tokens.clone());
    let rig = Rig::start(harness, |server| build(server).with_notified_host(HOOKS.parse().unwrap())).await;
    Served { rig, _dir: dir }
}

fn script() -> ScriptedModel {
    let greet = Turn::new().text("Hello ").text("there.");
    let write = Turn::new().call("write", json!({ "file": "a" }));
    ScriptedModel::new()
        .agent_on("main", "greet", [greet, Turn::new().text("Again.")])
        .agent_on("main", "write", [write, Turn::new().text("Written.")])
        .agent_on("main", "hang", [Turn::new().text("I hang").hang()])
        .agent_on(
            "main",
            "two",
            [spawn(spawn(Turn::new(), "write one"), "write two"), Turn::new().text("Both.")],
        )
        .agent("kid", [Turn::new().call("write", json!({})), Turn::new().text("Done.")])
}

fn message(text: &str) -> Value {
    json!({ "message": { "messageId": format!("m-{text}"), "role": "ROLE_USER", "parts": [{ "text": text }] } })
}

fn call(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

fn rpc(rig: &Rig, method: &str, params: Value) -> RequestBuilder {
    rig.ask(Method::POST, "/a2a").header("a2a-version", "1.0").json(&call(method, params))
}

/// Returns the result of a JSON-RPC request.
async fn result(request: RequestBuilder) -> Value {
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    let mut answer: Value = response.json().await.unwrap();
    assert!(answer["error"].is_null() && answer["id"] == 7, "{answer}");
    answer["result"].take()
}

/// Returns the updates of a stream of HTTP+JSON, with the ids of their frames.
async fn updates(response: Response) -> Vec<(Option<u64>, Value)> {
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    let update = |frame: &String| {
        let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name));
        Some((field("id: ").map(|id| id.parse().unwrap()), serde_json::from_str(field("data: ")?).unwrap()))
    };
    frames(&text).iter().filter_map(update).collect()
}

#[tokio::test]
async fn refusals_have_the_form_of_their_binding() {
    let rig = rig(script()).await;
    let code = async |request: RequestBuilder, status: u16, code: i64| {
        let response = request.send().await.unwrap();
        let (is, answer) = (response.status(), response.json::<Value>().await.unwrap());
        assert_eq!((is.as_u16(), answer["error"]["code"].as_i64()), (status, Some(code)), "{answer}");
        answer
    };
    let post = || {
        rig.ask(Method::POST, "/a2a").header("a2a-version", "1.0").header("content-type", "application/json")
    };
    code(post().body("{"), 200, -32700).await;
    assert_eq!(code(post().body("[]"), 200, -32600).await["id"], Value::Null);
    code(post().body(r#"{"jsonrpc":"1.0","id":1,"method":"GetTask"}"#), 200, -32600).await;
    assert_eq!(code(rpc(&rig, "Nothing", json!({})), 200, -32601).await["id"], 7);
    let fit = code(rpc(&rig, "SendMessage", json!({ "message": { "parts": 1 } })), 200, -32602).await;
    assert!(fit["error"]["message"].as_str().unwrap().contains("at \"message"), "{fit}");
    code(rpc(&rig, "GetTask", json!({ "id": "no-such" })), 200, -32001).await;
    code(rpc(&rig, "GetTask", json!({ "id": "no such" })), 200, -32602).await;
    code(rpc(&rig, "ListTasks", json!({ "pageSize": 101 })), 200, -32602).await;
    code(rpc(&rig, "ListTasks", json!({ "pageToken": "x" })), 200, -32602).await;
    code(rpc(&rig, "GetTask", json!({ "id": "x", "historyLength": -1 })), 200, -32602).await;
    let agent = json!({ "tenant": "absent", "message": message("greet")["message"] });
    code(rpc(&rig, "SendMessage", agent), 200, -32602).await;
    for version in ["0.3", "2.0", ""] {
        let request = rig.ask(Method::POST, "/a2a").header("a2a-version", version);
        code(request.json(&call("GetTask", json!({ "id": "x" }))), 200, -32009).await;
    }
    let stranger = rig.stranger(Method::POST, "/a2a").json(&call("GetTask", json!({ "id": "x" })));
    code(stranger, 401, -32603).await;
    let rest = |method, path: &str| rig.ask(method, path).header("a2a-version", "1.0");
    let unknown = code(rest(Method::GET, "/a2a/tasks/no-such"), 404, 404).await;
    assert_eq!(unknown["error"]["details"][0]["reason"], "TASK_NOT_FOUND", "{unknown}");
    code(rest(Method::POST, "/a2a/tasks/no-such:cancel"), 404, 404).await;
    code(rest(Method::POST, "/a2a/tasks/no-such:explode"), 400, 400).await;
    code(rig.ask(Method::GET, "/a2a/tasks/x"), 400, 400).await;
    code(rig.ask(Method::GET, "/a2a/tasks/no-such?A2A-Version=1.0"), 404, 404).await;
    code(rest(Method::POST, "/a2a/message:send").json(&json!({ "message": 1 })), 400, 400).await;
    code(rest(Method::POST, "/a2a/message:send").body("x"), 415, 415).await;
    code(rig.stranger(Method::GET, "/a2a/tasks"), 401, 401).await;
}

#[tokio::test]
async fn the_public_card_names_no_agents() {
    let rig = rig(script()).await;
    let path = "/.well-known/agent-card.json";
    let public = rig.stranger(Method::GET, path).header("x-forwarded-proto", "https").send().await.unwrap();
    let public: Value = public.json().await.unwrap();
    let host = rig.url.strip_prefix("http://").unwrap();
    assert_eq!(public["supportedInterfaces"][0]["url"], format!("https://{host}/a2a"));
    assert_eq!(public["securityRequirements"], json!([{ "schemes": { "bearer": { "list": [] } } }]));
    assert!(!public.to_string().contains("kid") && !public.to_string().contains("main\""), "{public}");
    let whole = result(rpc(&rig, "GetExtendedAgentCard", json!({}))).await;
    assert_eq!((&whole["name"], &whole["skills"][2]["id"]), (&json!("main"), &json!("kid")), "{whole}");
    // The card of one agent, for callers, with the agent as the tenant of its requests.
    let own = rig.get_json(&format!("/a2a/main{path}")).await;
    assert_eq!(
        (&own["supportedInterfaces"][1]["tenant"], own["skills"].as_array().unwrap().len()),
        (&json!("main"), 1)
    );
    assert_eq!(rig.stranger(Method::GET, &format!("/a2a/main{path}")).send().await.unwrap().status(), 401);
    assert_eq!(rig.get(&format!("/a2a/kid{path}")).await.status(), 400, "a kid leads nothing here");
    // Without tokens, each request is that of a caller.
    let open =
        Rig::start(fleet(script()), |server| server.with_protocol(Protocol::A2a).with_tokens(Tokens::new()));
    let open = open.await;
    let card: Value = open.stranger(Method::GET, path).send().await.unwrap().json().await.unwrap();
    assert_eq!(
        (&card["skills"][2]["id"], &card["capabilities"]["extendedAgentCard"]),
        (&json!("kid"), &json!(false))
    );
}

#[tokio::test]
async fn a_task_belongs_to_its_tenant() {
    let rig = rig(script()).await;
    let task = result(rpc(&rig, "SendMessage", message("greet"))).await["task"].take();
    let (id, context) = (task["id"].as_str().unwrap(), task["contextId"].as_str().unwrap());
    let theirs = |method: &str, params: Value| {
        let request = rig.stranger(Method::POST, "/a2a").header("a2a-version", "1.0").bearer_auth(ACME);
        request.json(&call(method, params))
    };
    for method in ["GetTask", "CancelTask", "SubscribeToTask", "ListTaskPushNotificationConfigs"] {
        let answer: Value =
            theirs(method, json!({ "id": id, "taskId": id })).send().await.unwrap().json().await.unwrap();
        assert_eq!(answer["error"]["code"], -32001, "{method}: {answer}");
    }
    assert_eq!(result(theirs("ListTasks", json!({}))).await["totalSize"], 0);
    assert_eq!(result(theirs("ListTasks", json!({ "contextId": context }))).await["totalSize"], 0);
    let mine = result(rpc(&rig, "ListTasks", json!({ "includeArtifacts": true, "historyLength": 0 }))).await;
    assert_eq!((&mine["tasks"][0]["id"], &mine["tasks"][0]["history"]), (&json!(id), &Value::Null), "{mine}");
    assert_eq!(mine["tasks"][0]["artifacts"][0]["parts"], json!([{ "text": "Hello there." }]));
    let working = json!({ "status": "TASK_STATE_WORKING" });
    assert_eq!(result(rpc(&rig, "ListTasks", working)).await["tasks"], json!([]));
}

#[tokio::test]
async fn a_message_that_is_sent_again_begins_one_task() {
    let rig = rig(script()).await;
    let mut first = message("greet");
    first["message"]["contextId"] = json!("talk");
    first["message"]["metadata"] = json!({ "a": 1, "b": 2, "c": 3, "d": 4 });
    let task = result(rpc(&rig, "SendMessage", first.clone())).await;
    for _ in 0..8 {
        assert_eq!(result(rpc(&rig, "SendMessage", first.clone())).await, task);
    }
    first["message"]["parts"][0]["text"] = json!("greet others");
    let other: Value = rpc(&rig, "SendMessage", first).send().await.unwrap().json().await.unwrap();
    assert_eq!(other["error"]["code"], -32602, "{other}");
}

#[tokio::test]
async fn messages_in_one_context_take_turns() {
    let rig = rig(script()).await;
    let send = async |text: &str| {
        let mut message = message(text);
        message["message"]["contextId"] = json!("talk");
        message["configuration"] = json!({ "returnImmediately": true });
        result(rpc(&rig, "SendMessage", message)).await["task"]["id"].as_str().unwrap().to_owned()
    };
    let (first, second) = (send("hang").await, send("greet").await);
    let state =
        async |id: &str| result(rpc(&rig, "GetTask", json!({ "id": id }))).await["status"]["state"].clone();
    assert_eq!(state(&second).await, "TASK_STATE_SUBMITTED");
    assert_eq!(
        result(rpc(&rig, "CancelTask", json!({ "id": second }))).await["status"]["state"],
        "TASK_STATE_CANCELED"
    );
    assert_eq!(
        result(rpc(&rig, "CancelTask", json!({ "id": first }))).await["status"]["state"],
        "TASK_STATE_CANCELED"
    );
}

#[tokio::test]
async fn a_client_with_the_extension_sets_the_options_of_its_run() {
    let rig = rig(script()).await;
    for (number, (given, has_extension, refused)) in [
        (json!({ "options": { "user": "ann", "max_depth": 99 } }), true, ""),
        (json!({}), true, ""),
        (json!({ "options": { "user": 5 } }), true, "expected a string"),
        (json!({ "options": { "usr": "ann" } }), true, "unknown field `usr`"),
        (json!(5), true, "expected struct"),
        // It means nothing without the extension.
        (json!({ "options": { "user": 5 } }), false, ""),
    ]
    .into_iter()
    .enumerate()
    {
        let mut params = message("greet");
        params["message"]["contextId"] = json!(format!("c-{number}"));
        params["metadata"] = json!({ "desk": 7, EVENTS: given });
        let mut request = rpc(&rig, "SendMessage", params);
        if has_extension {
            request = request.header("a2a-extensions", EVENTS);
        }
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        if refused.is_empty() {
            assert_eq!(answer["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{answer}");
            let path = format!("/v1/sessions/c-{number}/events?follow=false&kind=agent_start");
            let events = rig.ask(Method::GET, &path).send().await.unwrap().text().await.unwrap();
            assert!(events.contains(r#""attributes":{"desk":7}"#), "{events}");
            assert_eq!(events.contains(r#""user":"ann""#), number == 0, "{events}");
        } else {
            let error = answer["error"]["message"].as_str().unwrap_or_default();
            let is_told = error.contains(EVENTS) && error.contains(refused);
            assert!(answer["error"]["code"] == -32602 && is_told, "{answer}");
        }
    }
}

#[tokio::test]
async fn a_reader_with_the_extension_goes_on_behind_any_event() {
    let rig = rig(script()).await;
    let read = async |method, path: &str, after: Option<u64>, body: Option<Value>| {
        let mut request = rig.ask(method, path).header("a2a-version", "1.0").header("a2a-extensions", EVENTS);
        request = after.into_iter().fold(request, |request, after| request.header("last-event-id", after));
        request = body.iter().fold(request, |request, body| request.json(body));
        let mut all = updates(request.send().await.unwrap()).await;
        let (id, task) = all.remove(0);
        assert!(id.is_none() && task["task"].is_object(), "{task}");
        let events = all.into_iter().map(|(id, update)| {
            let [(_, update)] = update.as_object().unwrap().iter().collect::<Vec<_>>()[..] else { panic!() };
            assert_eq!(update["metadata"][EVENTS]["seq"], json!(id));
            id.unwrap()
        });
        (task["task"].clone(), events.collect::<Vec<_>>())
    };
    let (task, events) = read(Method::POST, "/a2a/message:stream", None, Some(message("greet"))).await;
    let path = format!("/a2a/tasks/{}:subscribe", task["id"].as_str().unwrap());
    assert!(events.len() > 8, "{events:?}");
    for at in 0..events.len() {
        let after = if at == 0 { 0 } else { events[at - 1] };
        let (now, rest) = read(Method::GET, &path, Some(after), None).await;
        assert_eq!((rest, &now["status"]["state"]), (events[at..].to_vec(), &json!("TASK_STATE_COMPLETED")));
    }
    // Two children ask. A reader that knows both requests waits for what comes of them.
    let (task, events) = read(Method::POST, "/a2a/message:stream", None, Some(message("two"))).await;
    let id = task["id"].as_str().unwrap();
    let path = format!("/a2a/tasks/{id}:subscribe");
    let last = *events.last().unwrap();
    let (_, more) = read(Method::GET, &path, Some(last), None).await;
    let both = *more.last().unwrap();
    let answers = async {
        tokio::time::sleep(ms(100)).await;
        let mut yes = message("yes");
        yes["message"]["taskId"] = json!(id);
        result(rpc(&rig, "SendMessage", yes)).await
    };
    let ((_, rest), answered) = tokio::join!(read(Method::GET, &path, Some(both), None), answers);
    assert_eq!(answered["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{answered}");
    let all: Vec<_> = events.into_iter().chain(more).chain(rest).collect();
    assert_eq!(all, (all[0]..all[0] + all.len() as u64).collect::<Vec<_>>(), "each event once");
}

#[tokio::test]
async fn notifications_stay_within_reach_and_bounds() {
    let rig = rig(script()).await;
    let mut first = message("hang");
    first["configuration"] = json!({ "returnImmediately": true });
    let task = result(rpc(&rig, "SendMessage", first)).await["task"]["id"].clone();
    let refused = async |config: Value, expected: &str| {
        let request = rpc(&rig, "CreateTaskPushNotificationConfig", config);
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        assert!(answer["error"]["message"].as_str().unwrap_or_default().contains(expected), "{answer}");
    };
    let to = |url: &str| json!({ "taskId": task, "url": url });
    refused(to("http://127.0.0.1:9/hook"), "127.0.0.1 is not public").await;
    refused(to("http://[::1]/hook"), "is not public").await;
    refused(to("ftp://a.example/hook"), "is not an address").await;
    refused(to("https://user:secret@a.example/"), "has a user or a password").await;
    refused(json!({ "taskId": task, "url": "https://a.example", "token": "a\nb" }), "`token` is not valid")
        .await;
    let config = |id: &str| {
        json!({ "taskId": task, "id": id, "url": format!("http://{HOOKS}:9"),
            "authentication": { "scheme": "Bearer", "credentials": "s3cret" } })
    };
    for id in ["1", "2", "3", "4", "5", "6", "7", "8", "8"] {
        let made = result(rpc(&rig, "CreateTaskPushNotificationConfig", config(id))).await;
        assert_eq!(made["authentication"], json!({ "scheme": "Bearer" }), "credentials are not shown");
    }
    refused(config("9"), "at most 8").await;
    let listed = result(rpc(&rig, "ListTaskPushNotificationConfigs", json!({ "taskId": task }))).await;
    assert_eq!(listed["configs"].as_array().unwrap().len(), 8);
    result(rpc(&rig, "CancelTask", json!({ "id": task }))).await;
    refused(config("1"), "is over").await;
}

/// Returns the state in the next notification that arrives, which is answered.
async fn notified(listener: &tokio::net::TcpListener) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut read = String::new();
    while !read.contains("\"state\"") {
        let mut bytes = [0; 4096];
        let length = stream.read(&mut bytes).await.unwrap();
        read.push_str(&String::from_utf8_lossy(&bytes[..length]));
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await.unwrap();
    let (_, state) = read.split_once("\"state\":\"").unwrap();
    state.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_slow_address_delays_no_other() {
    let rig = rig(script()).await;
    let listener = || tokio::net::TcpListener::bind((HOOKS, 0));
    let (slow, quick) = (listener().await.unwrap(), listener().await.unwrap());
    let mut first = message("hang");
    first["configuration"] = json!({ "returnImmediately": true });
    let task = result(rpc(&rig, "SendMessage", first)).await["task"]["id"].clone();
    for hook in [&slow, &quick] {
        let config = json!({ "taskId": task, "url": format!("http://{}", hook.local_addr().unwrap()) });
        result(rpc(&rig, "CreateTaskPushNotificationConfig", config)).await;
    }
    let both = async {
        while notified(&quick).await != "TASK_STATE_WORKING" {}
        result(rpc(&rig, "CancelTask", json!({ "id": task }))).await;
        while notified(&quick).await != "TASK_STATE_CANCELED" {}
    };
    tokio::time::timeout(Duration::from_secs(5), both).await.expect("the slow address has 10 s to answer");
}

#[tokio::test]
async fn an_address_that_is_deleted_gets_nothing_more() {
    let rig = rig(script()).await;
    let listener = tokio::net::TcpListener::bind((HOOKS, 0)).await.unwrap();
    let mut first = message("hang");
    first["configuration"] = json!({ "returnImmediately": true });
    let task = result(rpc(&rig, "SendMessage", first)).await["task"]["id"].clone();
    let address = listener.local_addr().unwrap();
    // As often as all tasks together may have configurations.
    for _ in 0..130 {
        let config = json!({ "taskId": task, "id": "1", "url": format!("http://{address}") });
        result(rpc(&rig, "CreateTaskPushNotificationConfig", config)).await;
        while notified(&listener).await != "TASK_STATE_WORKING" {}
        let config = json!({ "taskId": task, "id": "1" });
        result(rpc(&rig, "DeleteTaskPushNotificationConfig", config)).await;
    }
    result(rpc(&rig, "CancelTask", json!({ "id": task }))).await;
    let more = tokio::time::timeout(Duration::from_millis(300), listener.accept()).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test]
async fn a_message_that_is_refused_leaves_no_configuration() {
    let rig = rig(script()).await;
    let mut first = message("hang");
    first["message"]["contextId"] = json!("talk");
    first["configuration"] = json!({ "returnImmediately": true,
        "taskPushNotificationConfig": { "url": format!("http://{HOOKS}:9/hook") } });
    // What is sent again has one configuration.
    let task = result(rpc(&rig, "SendMessage", first.clone())).await["task"]["id"].clone();
    result(rpc(&rig, "SendMessage", first.clone())).await;
    let configs = async || {
        let listed = result(rpc(&rig, "ListTaskPushNotificationConfigs", json!({ "taskId": task }))).await;
        listed["configs"].as_array().unwrap().len()
    };
    assert_eq!(configs().await, 1);
    let mut more = first;
    more["message"]["taskId"] = task.clone();
    more["message"]["messageId"] = json!("m-more");
    let refused: Value = rpc(&rig, "SendMessage", more).send().await.unwrap().json().await.unwrap();
    assert!(refused["error"].is_object(), "a working task takes no message: {refused}");
    assert_eq!(configs().await, 1);
}

#[tokio::test]
async fn more_contexts_are_listed_than_sessions_may_be_open() {
    let dir = tempfile::TempDir::new().unwrap();
    let model = ScriptedModel::new().agent("main", (0..13).map(|_| Turn::new().text("Hello.")));
    let journal = SqliteJournal::open(dir.path().join("j.db")).unwrap();
    let harness = fleet(model).with_journal(journal);
    let build = |server: Builder| server.with_protocol(Protocol::A2a).with_max_sessions(4);
    let rig = Rig::start(harness, build).await;
    for number in 0..12 {
        rig.run(&format!("talk-{number}"), "Hi").await;
    }
    rig.run("talk-7", "Hi").await;
    let open = rig.figure("sessions_evicted_total").await;
    let list = async |params: Value| {
        let listed = result(rpc(&rig, "ListTasks", params)).await;
        let contexts = listed["tasks"].as_array().unwrap().iter();
        let contexts: Vec<_> = contexts.map(|task| task["contextId"].as_str().unwrap().to_owned()).collect();
        (
            contexts,
            listed["totalSize"].as_u64().unwrap(),
            listed["nextPageToken"].as_str().unwrap().to_owned(),
        )
    };
    let (all, total, none) = list(json!({})).await;
    assert_eq!((all.len(), total, &*none), (13, 13, ""));
    assert_eq!(all.iter().filter(|context| *context == "talk-7").count(), 2);
    // In pages, with a filter or without.
    for filter in [Value::Null, json!("TASK_STATE_COMPLETED")] {
        for size in [1, 2, 5, 12] {
            let (mut pages, mut token) = (Vec::new(), String::new());
            loop {
                let page = list(json!({ "pageSize": size, "pageToken": token, "status": filter })).await;
                assert_eq!(page.1, 13, "{size}");
                pages.extend(page.0);
                token = page.2;
                if token.is_empty() {
                    break;
                }
            }
            assert_eq!(pages, all, "{size} {filter}");
        }
    }
    assert_eq!(list(json!({ "contextId": "talk-7", "pageSize": 1 })).await.1, 2);
    // Sessions are read, and not opened for it.
    assert_eq!(rig.figure("sessions_evicted_total").await, open);
    for token in ["talk-7", "talk-7/ghost", "ghost/ghost", "/"] {
        let refused = rpc(&rig, "ListTasks", json!({ "pageToken": token })).send().await.unwrap();
        assert_eq!(refused.json::<Value>().await.unwrap()["error"]["code"], -32602, "{token}");
    }
}

#[tokio::test]
async fn tasks_with_notifications_have_a_bound() {
    let rig = Rig::start(fleet(script()), |server| {
        server.with_protocol(Protocol::A2a).with_max_runs(300).with_notified_host(HOOKS.parse().unwrap())
    });
    let rig = rig.await;
    let mut begun = 0;
    loop {
        let mut message = message("hang");
        message["message"]["contextId"] = json!("talk");
        message["message"]["messageId"] = json!(format!("m{begun}"));
        message["configuration"] = json!({ "returnImmediately": true,
            "taskPushNotificationConfig": { "url": format!("http://{HOOKS}:9/hook") } });
        let response = rpc(&rig, "SendMessage", message).send().await.unwrap();
        if response.status() != 200 {
            assert_eq!((response.status().as_u16(), begun), (429, 128));
            assert!(response.headers().contains_key("retry-after"));
            let runs = rig.figure("runs_active").await;
            assert_eq!(runs, 128, "the refused task has not begun");
            break;
        }
        let answer: Value = response.json().await.unwrap();
        assert!(answer["error"].is_null(), "{answer}");
        begun += 1;
    }
}
