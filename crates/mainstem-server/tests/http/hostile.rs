//! Refused requests: no token, another caller's token, forged names, invalid bodies and cursors.

use mainstem::{model::scripted::Turn, prelude::ScriptedModel};
use mainstem_server::{Hosts, Tokens};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rig::{Rig, TOKEN, fleet};

const ACME: &str = "the-token-of-tenant-acme";

async fn rig() -> (Rig, tempfile::TempDir) {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("Hello."), Turn::new().text("Again.")]);
    let dir = tempfile::TempDir::new().unwrap();
    let harness = fleet(model).with_workspace(dir.path());
    let tokens = Tokens::new().with_token(TOKEN, None).unwrap().with_token(ACME, Some("acme")).unwrap();
    let hosts = Hosts::new().with_name("agents.example");
    (Rig::start(harness, |builder| builder.with_tokens(tokens.clone()).with_hosts(hosts.clone())).await, dir)
}

/// A request, and the status and code that it is answered with.
struct Row<'a> {
    method: Method,
    path: &'a str,
    headers: Vec<(&'a str, &'a str)>,
    body: Option<&'a str>,
    status: u16,
    code: &'a str,
}

fn get<'a>(path: &'a str, headers: &[(&'a str, &'a str)], status: u16, code: &'a str) -> Row<'a> {
    Row { method: Method::GET, path, headers: headers.to_vec(), body: None, status, code }
}

fn post<'a>(
    path: &'a str,
    headers: &[(&'a str, &'a str)],
    body: &'a str,
    status: u16,
    code: &'a str,
) -> Row<'a> {
    Row { method: Method::POST, path, headers: headers.to_vec(), body: Some(body), status, code }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table is as long as it is")]
async fn every_hostile_request_is_answered_with_its_code() {
    let (rig, _dir) = rig().await;
    let mine = rig.run("mine", "Hi").await;
    let run = mine["id"].as_str().unwrap();
    let bearer = format!("Bearer {TOKEN}");
    let acme = format!("Bearer {ACME}");
    let (me, other) = (("authorization", &*bearer), ("authorization", &*acme));
    let json = ("content-type", "application/json");
    let (runs, of_run, cancel) =
        ("/v1/sessions/mine/runs", format!("/v1/runs/{run}"), format!("/v1/runs/{run}/cancel"));
    let events_of_run = format!("/v1/sessions/other/events?run={run}");
    let large = format!("{{\"input\": \"{}\"}}", "x".repeat(1 << 20));
    let long = format!("/v1/sessions/{}/runs", "s".repeat(257));
    let many_rules = format!(
        r#"{{"input": "x", "options": {{"permissions": [{{"deny": ["a"{}]}}]}}}}"#,
        r#", "a""#.repeat(1024)
    );
    let deep = format!("{{\"input\": {}1{}}}", "[".repeat(500), "]".repeat(500));
    let ok = r#"{"input": "Hi"}"#;
    let rows = [
        // No token.
        get("/v1/sessions", &[], 401, "no_token"),
        get("/v1/runs/x", &[], 401, "no_token"),
        get("/v1/tasks", &[], 401, "no_token"),
        get("/v1/tools", &[], 401, "no_token"),
        get("/v1/sessions/mine/events", &[("authorization", "Basic eDp5")], 401, "no_token"),
        get("/v1/sessions", &[("authorization", "Bearer wrong-wrong-wrong-wrong")], 401, "bad_token"),
        get("/v1/sessions", &[("authorization", "Bearer ")], 401, "no_token"),
        get("/v1/sessions", &[("x-api-key", "wrong")], 401, "bad_token"),
        get("/v1/sessions", &[("cookie", "mainstem_token=wrong; a=b")], 401, "bad_token"),
        post(runs, &[json], ok, 401, "no_token"),
        post(&cancel, &[json], "{}", 401, "no_token"),
        // Another tenant: as if there were no such thing.
        get("/v1/sessions/mine", &[other], 404, "not_found"),
        get("/v1/sessions/mine/events", &[other], 404, "not_found"),
        get("/v1/sessions/mine/fleet", &[other], 404, "not_found"),
        get("/v1/sessions/mine/runs", &[other], 404, "not_found"),
        get("/v1/sessions/mine/agents", &[other], 404, "not_found"),
        get(&of_run, &[other], 404, "not_found"),
        post(&cancel, &[other, json], "{}", 404, "not_found"),
        post(
            "/v1/sessions/mine/confirmations/c",
            &[other, json],
            r#"{"decision": "allow"}"#,
            404,
            "not_found",
        ),
        post(
            "/v1/sessions/mine/agents/agent:kid:1/messages",
            &[other, json],
            r#"{"content": "x"}"#,
            404,
            "not_found",
        ),
        get("/v1/tasks/task-1", &[other], 404, "not_found"),
        // Names of strangers.
        // Pages.
        get("/v1/sessions?limit=0", &[me], 400, "bad_query"),
        get("/v1/sessions?limit=1001", &[me], 400, "bad_query"),
        get("/v1/sessions?cursor=x", &[me], 400, "bad_query"),
        get("/v1/sessions?cursor=5.a%00b", &[me], 400, "bad_query"),
        get("/v1/sessions?search=%00", &[me], 400, "bad_query"),
        get("/v1/sessions?page=2", &[me], 400, "bad_query"),
        get("/v1/sessions", &[me, ("host", "evil.example")], 403, "host_not_allowed"),
        get("/healthz", &[("host", "evil.example")], 403, "host_not_allowed"),
        get("/v1/sessions", &[me, ("host", "127.0.0.1.evil.example")], 403, "host_not_allowed"),
        get("/v1/sessions", &[me, ("origin", "http://evil.example")], 403, "host_not_allowed"),
        get("/v1/sessions", &[me, ("origin", "null")], 403, "host_not_allowed"),
        post(runs, &[me, json, ("origin", "https://evil.example")], ok, 403, "host_not_allowed"),
        // Paths.
        get("/v1/nothing", &[me], 404, "no_such_path"),
        get("/../etc/passwd", &[me], 404, "no_such_path"),
        get("/v1/sessions/..%2f..%2fetc/events", &[me], 400, "bad_id"),
        post("/v1/sessions/..%2f..%2fetc/runs", &[me, json], ok, 400, "bad_id"),
        post("/v1/sessions/%2e%2e/runs", &[me, json], ok, 404, "no_such_path"),
        post("/v1/sessions/a%00b/runs", &[me, json], ok, 400, "bad_id"),
        post(&long, &[me, json], ok, 400, "bad_id"),
        get("/v1/tasks/..%2f..%2fsecrets", &[me], 400, "bad_id"),
        // The part of a tenant, for a caller without one.
        get("/v1/sessions/acme%2Fs", &[me], 400, "bad_id"),
        post("/v1/sessions/acme%2Fs/runs", &[me, json], ok, 400, "bad_id"),
        Row {
            method: Method::DELETE,
            path: "/v1/sessions/acme%2Fs",
            headers: vec![me],
            body: None,
            status: 400,
            code: "bad_id",
        },
        get("/v1/runs/a%20b", &[me], 400, "bad_id"),
        get("/v1/tasks/acme%2Ftask-1", &[me], 400, "bad_id"),
        get("/v1/sessions/mine/agents/agent:kid%2F1", &[me], 400, "bad_id"),
        post(
            "/v1/sessions/mine/confirmations/%C3%A9",
            &[me, json],
            r#"{"decision": "allow"}"#,
            400,
            "bad_id",
        ),
        get("/v1/sessions/mine/events?run=a%20b", &[me], 400, "bad_query"),
        get("/v1/tasks?session=a%20b", &[me], 400, "bad_query"),
        Row {
            method: Method::DELETE,
            path: &of_run,
            headers: vec![me],
            body: None,
            status: 405,
            code: "method_not_allowed",
        },
        // Bodies.
        post(runs, &[me], ok, 415, "not_json"),
        post(runs, &[me, ("content-type", "text/plain")], ok, 415, "not_json"),
        post(runs, &[me, json], "", 400, "bad_json"),
        post(runs, &[me, json], "{\"input\": ", 400, "bad_json"),
        post(runs, &[me, json], "{\"input\": \"x\"} y", 400, "bad_json"),
        post(runs, &[me, json], "\u{feff}{}", 400, "bad_json"),
        post(runs, &[me, json], &deep, 400, "bad_json"),
        post(runs, &[me, json], "[]", 422, "bad_body"),
        post(runs, &[me, json], "{}", 422, "bad_body"),
        post(runs, &[me, json], r#"{"input": " "}"#, 422, "bad_body"),
        post(runs, &[me, json], r#"{"input": 7}"#, 422, "bad_body"),
        post(runs, &[me, json], r#"{"input": "x", "inptu": "y"}"#, 422, "bad_body"),
        post(runs, &[me, json], r#"{"input": "x", "options": {"max_depth": 4}}"#, 422, "bad_body"),
        post(runs, &[me, json], r#"{"input": "x", "options": {"max_children": 17}}"#, 422, "bad_body"),
        post(runs, &[me, json], r#"{"input": "x", "options": {"max_children": 0}}"#, 422, "bad_body"),
        post(
            runs,
            &[me, json],
            r#"{"input": "x", "options": {"permissions": [{"deny": ["a("]}]}}"#,
            422,
            "bad_body",
        ),
        post(runs, &[me, json], &many_rules, 422, "bad_body"),
        post(runs, &[me, json], r#"{"input": "x", "options": {"budget": {"tokens": -1}}}"#, 422, "bad_body"),
        post(
            runs,
            &[me, json],
            r#"{"input": "x", "options": {"output_schema": {"type": 7}}}"#,
            422,
            "bad_body",
        ),
        post(runs, &[me, json], r#"{"input": "x", "agent": "unknown"}"#, 404, "unknown_agent"),
        post(runs, &[me, json], &large, 413, "body_too_large"),
        // Cursors and queries.
        get("/v1/sessions/mine/events", &[me, ("last-event-id", "seven")], 400, "bad_cursor"),
        get("/v1/sessions/mine/events", &[me, ("last-event-id", "-1")], 400, "bad_cursor"),
        get(
            "/v1/sessions/mine/events",
            &[me, ("last-event-id", "99999999999999999999999")],
            400,
            "bad_cursor",
        ),
        get("/v1/sessions/mine/events?after=18446744073709551615", &[me], 400, "bad_cursor"),
        get("/v1/sessions/mine/events?after=x", &[me], 400, "bad_query"),
        get("/v1/sessions/mine/events?depth=-1", &[me], 400, "bad_query"),
        get("/v1/sessions/mine/events?what=ever", &[me], 400, "bad_query"),
        get("/v1/sessions/mine/events?run=run-unknown", &[me], 404, "not_found"),
        get(&events_of_run, &[me], 404, "not_found"),
        get("/v1/tasks?status=sleeping", &[me], 400, "bad_query"),
    ];
    for row in rows {
        let mut request = rig.stranger(row.method.clone(), row.path);
        for (name, value) in &row.headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = row.body {
            request = request.body(body.to_owned());
        }
        let response = request.send().await.unwrap();
        let shown: String = row.body.unwrap_or_default().chars().take(60).collect();
        let about = format!("{} {} {:?} {shown}", row.method, row.path, row.headers);
        assert_eq!(response.status(), row.status, "{about}");
        assert_eq!(response.headers()["content-type"], "application/problem+json", "{about}");
        assert_eq!(response.headers().contains_key("www-authenticate"), row.status == 401, "{about}");
        let problem: Value = response.json().await.unwrap();
        assert_eq!(problem["code"], row.code, "{about}: {problem}");
        assert!(!problem.to_string().contains(TOKEN), "{about}: {problem}");
    }
}

#[tokio::test]
async fn a_refused_id_is_answered_with_what_is_allowed() {
    let (rig, _dir) = rig().await;
    let problem: Value = rig.get("/v1/sessions/acme%2Fs").await.json().await.unwrap();
    let detail = "invalid session id \"acme/s\": '/' at character 5; use 1 to 256 ASCII letters, digits and -_.:~, \
                  not beginning with a dot";
    assert_eq!(problem["detail"], detail);
}

#[tokio::test]
async fn a_token_opens_what_is_its_tenants_however_it_is_sent() {
    let (rig, _dir) = rig().await;
    rig.run("mine", "Hi").await;
    for (name, value) in [
        ("authorization", format!("Bearer {ACME}")),
        ("authorization", format!("bearer {ACME}")),
        ("x-api-key", ACME.to_owned()),
        ("cookie", format!("a=b; mainstem_token={ACME}")),
    ] {
        let response = rig.stranger(Method::GET, "/v1/sessions").header(name, value).send().await.unwrap();
        assert_eq!(response.json::<Value>().await.unwrap(), json!({ "items": [] }), "{name}");
    }
    // A session of the same id is another one.
    let body = json!({ "input": "Hi" });
    let theirs =
        rig.stranger(Method::POST, "/v1/sessions/mine/runs").bearer_auth(ACME).header("prefer", "wait=10");
    let run: Value = theirs.json(&body).send().await.unwrap().json().await.unwrap();
    assert_eq!((&run["reply"], &run["first_seq"]), (&json!("Hello."), &json!(1)));
    assert_eq!(rig.get(&format!("/v1/runs/{}", run["id"].as_str().unwrap())).await.status(), 404);
    for host in ["agents.example", "AGENTS.example:443", "localhost:1", "[::1]"] {
        let request = rig.stranger(Method::GET, "/healthz").header("host", host);
        assert_eq!(request.send().await.unwrap().status(), 200, "{host}");
    }
}

#[tokio::test]
async fn beyond_the_loopback_a_token_is_needed() {
    let harness = fleet(ScriptedModel::new()).build().unwrap();
    let server = mainstem_server::Server::new(harness).build().unwrap();
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    let error = server.serve(listener, tokio_util::sync::CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().ends_with("can be reached from other machines; require a token"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_read_is_refused() {
    let (rig, _dir) = rig().await;
    rig.run("s", "go").await;
    let check = async |request: reqwest::RequestBuilder, status: u16, code: &str| {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status, "{code}");
        let problem: Value = response.json().await.unwrap();
        assert_eq!(problem["code"], code, "{problem}");
    };
    let get = |path: &str| rig.ask(Method::GET, path);
    check(get("/v1/sessions/s/events?kind=AGENT_STRAT"), 400, "bad_query").await;
    check(get("/v1/sessions/s/events?kinds=AGENT_START"), 400, "bad_query").await;
    check(get("/v1/tools?limit=3"), 400, "bad_query").await;
    check(get("/v1/sessions/s/fleet?depth=1"), 400, "bad_query").await;
    let run = rig.ask(Method::POST, "/v1/sessions/s/runs").json(&json!({ "input": "go" }));
    check(run.header("content-encoding", "gzip"), 415, "encoded_body").await;
    let twice = rig.head("GET /healthz", "Host: localhost\r\n");
    let mut stream = rig.connect().await;
    stream.write_all(twice.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let count = stream.read(&mut answer).await.unwrap();
    assert!(String::from_utf8_lossy(&answer[..count]).starts_with("HTTP/1.1 400"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_without_a_token_is_small() {
    let (rig, _dir) = rig().await;
    let answered = async |line: &str, headers: &str, body: &str, status: u16| {
        let mut stream = rig.connect().await;
        let json = format!("Content-Type: application/json\r\n{headers}");
        stream.write_all(rig.head(line, &json).as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        let mut answer = vec![0; 4096];
        let count = stream.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..count]).into_owned();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{line}, {headers}: {answer}");
    };
    let (login, runs) = ("POST /v1/login", "POST /v1/sessions/s/runs");
    // One that is announced is refused before it is sent, one that is not as soon as it is too
    // long.
    answered(login, "Content-Length: 5000\r\n", "{\"token\": \"", 413).await;
    let chunk = format!("1388\r\n{{\"token\": \"{}\r\n", "x".repeat(5000 - 11));
    answered(login, "Transfer-Encoding: chunked\r\n", &chunk, 413).await;
    answered(runs, "Content-Length: 5000\r\n", "", 401).await;
    // With a token it can be a megabyte.
    let bearer = |length: usize| format!("Authorization: Bearer {TOKEN}\r\nContent-Length: {length}\r\n");
    answered(runs, &bearer((1 << 20) + 1), "", 413).await;
    let large = json!({ "input": "x".repeat(5000) }).to_string();
    answered(runs, &bearer(large.len()), &large, 202).await;
}
