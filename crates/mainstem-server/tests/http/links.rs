//! Links: who has one reads a session, and nothing else.

use std::{sync::Arc, time::Duration};

use mainstem::api::{Endpoint, Method as ApiMethod};
use mainstem::{
    event::{Clock, SystemClock},
    journal::{Journal, Link, Scoped},
    model::scripted::Turn,
    prelude::ScriptedModel,
};
use mainstem_server::{Protocol, Tokens};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use crate::{
    rig::{Rig, TOKEN, events, fleet, frames, ms, spawn},
    servers::journal,
};

const ACME: &str = "the-token-of-acme";
const OTHER: &str = "the-token-of-other";

/// A kid, and three answers.
pub(crate) fn model() -> ScriptedModel {
    let main = [spawn(Turn::new(), "one"), Turn::new().text("First."), Turn::new().text("Second.")];
    ScriptedModel::new().agent("main", main).agent("kid", [Turn::new().text("Done.")])
}

pub(crate) async fn rig(journal: &Arc<dyn Journal>, model: ScriptedModel) -> Rig {
    let harness = fleet(model).with_journal(journal.clone());
    let tokens = Tokens::new().with_token(TOKEN, None).unwrap();
    let tokens = tokens.with_token(ACME, Some("acme")).unwrap().with_token(OTHER, Some("other")).unwrap();
    let build = |builder: mainstem_server::Builder| {
        let builder = Protocol::ALL
            .iter()
            .fold(builder.with_tokens(tokens.clone()), |all, one| all.with_protocol(*one));
        builder.with_max_readers(4)
    };
    Rig::start(harness, build).await
}

pub(crate) async fn add(rig: &Rig, token: &str, session: &str, body: Value) -> Response {
    let request = rig.stranger(Method::POST, &format!("/v1/sessions/{session}/links"));
    request.bearer_auth(token).json(&body).send().await.unwrap()
}

/// Creates a link; returns its token and its id.
pub(crate) async fn link(rig: &Rig, token: &str, session: &str, body: Value) -> (String, String) {
    let response = add(rig, token, session, body).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let created: Value = response.json().await.unwrap();
    let (token, id) = (created["token"].as_str().unwrap(), created["link"]["id"].as_str().unwrap());
    assert_eq!(location, format!("/v1/sessions/{session}/links/{id}"));
    assert_eq!(created["page"], format!("/#{session}?link={token}"));
    assert_eq!(created["link"]["session_id"], session);
    (token.to_owned(), id.to_owned())
}

pub(crate) async fn get(rig: &Rig, token: &str, path: &str) -> Response {
    rig.stranger(Method::GET, path).bearer_auth(token).send().await.unwrap()
}

pub(crate) async fn code(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    (status, body["code"].as_str().unwrap_or_default().to_owned())
}

pub(crate) fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

/// The path of an endpoint for the session `s`, one of its runs, an agent and a link.
fn path_of(endpoint: Endpoint, run: &str, kid: &str, link: &str, data: &str) -> String {
    let second = match endpoint {
        Endpoint::GetEvent => "1",
        Endpoint::GetAgent | Endpoint::GetTranscript | Endpoint::SendMessage | Endpoint::CancelAgent => kid,
        Endpoint::DeleteLink => link,
        Endpoint::GetData => data,
        _ => "x",
    };
    let is_of_run = matches!(endpoint, Endpoint::GetRun | Endpoint::CancelRun);
    endpoint.path(&[if is_of_run { run } else { "s" }, second])
}

#[tokio::test]
async fn a_link_only_reads_its_session() {
    let rig = rig(&journal().await, model()).await;
    let run = rig.run("s", "go").await["id"].as_str().unwrap().to_owned();
    rig.run("another", "go").await;
    let (token, id) = link(&rig, TOKEN, "s", json!({})).await;
    let kid = rig.kid("s").await;
    let data =
        rig.ask(Method::POST, "/v1/sessions/s/data").header("content-type", "application/octet-stream");
    let data: Value = data.body("x").send().await.unwrap().json().await.unwrap();
    let data = data["sha256"].as_str().unwrap().to_owned();
    for endpoint in Endpoint::ALL {
        let operation = endpoint.operation();
        if operation.is_open() {
            continue;
        }
        let path = path_of(*endpoint, &run, &kid, &id, &data);
        let method = match operation.method() {
            ApiMethod::Get => Method::GET,
            ApiMethod::Post => Method::POST,
            ApiMethod::Delete => Method::DELETE,
        };
        let is_shown = matches!(
            endpoint,
            Endpoint::GetLink
                | Endpoint::GetEvents
                | Endpoint::GetEvent
                | Endpoint::GetFleet
                | Endpoint::GetData
                | Endpoint::GetTranscript
        );
        for (header, value) in [("authorization", format!("Bearer {token}")), ("x-api-key", token.clone())] {
            let request = rig.stranger(method.clone(), &path).header(header, value);
            let request = if operation.has_body() { request.json(&json!({})) } else { request };
            let response = request.send().await.unwrap();
            if is_shown {
                assert_eq!(response.status(), 200, "{path}");
            } else {
                assert_eq!(code(response).await, refused(403, "read_only"), "{method} {path}");
            }
        }
        if is_shown && *endpoint != Endpoint::GetLink {
            let path = path.replace("/s/", "/another/");
            assert_eq!(code(get(&rig, &token, &path).await).await, refused(403, "read_only"), "{path}");
        }
    }
}

#[tokio::test]
async fn a_link_leads_nowhere_else() {
    let rig = rig(&journal().await, model()).await;
    rig.run("s", "go").await;
    rig.run("another", "go").await;
    let (token, _) = link(&rig, TOKEN, "s", json!({})).await;
    // A run of another session is not found, and nothing is opened for the link.
    let of_another = rig.get_json("/v1/sessions/another/runs").await["items"][0]["id"].clone();
    let open = rig.figure("sessions_open").await;
    let path = format!("/v1/sessions/s/events?run={}", of_another.as_str().unwrap());
    assert_eq!(code(get(&rig, &token, &path).await).await, refused(404, "not_found"));
    assert_eq!(rig.figure("sessions_open").await, open);
    // Nor the protocols beside `/v1`.
    for (method, path) in [(Method::POST, "/agui"), (Method::POST, "/tasks"), (Method::POST, "/threads")] {
        let response = rig.stranger(method, path).bearer_auth(&token).json(&json!({})).send().await.unwrap();
        assert!(matches!(response.status().as_u16(), 401 | 403 | 404), "{path}: {}", response.status());
    }
    // A login does not accept it.
    let login =
        rig.stranger(Method::POST, "/v1/login").json(&json!({ "token": token })).send().await.unwrap();
    assert_eq!(code(login).await, refused(401, "bad_token"));
    // Who has a token of the server has no link.
    assert_eq!(code(rig.get("/v1/link").await).await, refused(404, "not_found"));
}

#[tokio::test]
async fn a_frozen_link_shows_nothing_later() {
    let rig = rig(&journal().await, model()).await;
    rig.run("s", "go").await;
    let last = rig.get_json("/v1/sessions/s").await["last_seq"].as_u64().unwrap();
    let (token, _) = link(&rig, TOKEN, "s", json!({ "through": last })).await;
    let before: Value = get(&rig, &token, "/v1/sessions/s/fleet").await.json().await.unwrap();
    rig.run("s", "and more").await;
    let later = last + 1;

    let view: Value = get(&rig, &token, "/v1/link").await.json().await.unwrap();
    assert_eq!((view["through"].as_u64(), view["session_id"].as_str()), (Some(last), Some("s")));
    let stream = get(&rig, &token, "/v1/sessions/s/events").await.text().await.unwrap();
    let stream = frames(&stream);
    assert_eq!(events(&stream).len() as u64, last);
    assert!(stream.last().unwrap().starts_with("event: end"), "{stream:?}");
    assert!(events(&stream).iter().all(|frame| !frame.contains("Second.")));
    for path in ["?run=x", "?follow=true&kind=USER_INPUT", "?detail=lifecycle"] {
        let text = get(&rig, &token, &format!("/v1/sessions/s/events{path}")).await.text().await.unwrap();
        assert!(!text.contains("and more") && !text.contains("Second."), "{path}: {text}");
    }
    // A reader that has them all is told that there are no more.
    let ended = get(&rig, &token, &format!("/v1/sessions/s/events?after={last}")).await;
    assert_eq!(ended.status(), 204);
    let beyond = get(&rig, &token, &format!("/v1/sessions/s/events?after={later}")).await;
    let (beyond, detail) = (beyond.status(), beyond.text().await.unwrap());
    assert!(beyond == 400 && detail.contains(&format!("the latest is {last}")), "{detail}");

    let after: Value = get(&rig, &token, "/v1/sessions/s/fleet").await.json().await.unwrap();
    assert_eq!(before, after);
    assert_eq!(after["seq"], last);
    assert_eq!(get(&rig, &token, &format!("/v1/sessions/s/fleet?at={last}")).await.status(), 200);
    for path in [format!("fleet?at={later}"), format!("events/{later}")] {
        let response = get(&rig, &token, &format!("/v1/sessions/s/{path}")).await;
        assert_eq!(code(response).await, refused(404, "not_found"), "{path}");
    }
    let transcript = get(&rig, &token, "/v1/sessions/s/agents/root/transcript").await.text().await.unwrap();
    assert!(transcript.contains("First.") && !transcript.contains("Second."), "{transcript}");
}

#[tokio::test]
async fn a_live_link_shows_later_events_until_it_is_revoked() {
    let journal = journal().await;
    let rig = rig(&journal, model()).await;
    rig.run("s", "go").await;
    let (token, id) = link(&rig, TOKEN, "s", json!({ "expires_in": 3600 })).await;
    let mut reader = get(&rig, &token, "/v1/sessions/s/events").await;
    let mut text = String::new();
    rig.run("s", "and more").await;
    while !text.contains("Second.") {
        let chunk = timeout(Duration::from_secs(10), reader.chunk()).await.unwrap().unwrap().unwrap();
        text += std::str::from_utf8(&chunk).unwrap();
    }
    let links = rig.get_json("/v1/sessions/s/links").await;
    assert_eq!(links["items"][0]["id"], id);
    assert!(!links.to_string().contains(&token), "a token is shown once");

    let path = format!("/v1/sessions/s/links/{id}");
    assert_eq!(rig.ask(Method::DELETE, &path.replace("/s/", "/x/")).send().await.unwrap().status(), 404);
    assert_eq!(rig.ask(Method::DELETE, &path).send().await.unwrap().status(), 204);
    assert_eq!(rig.ask(Method::DELETE, &path).send().await.unwrap().status(), 404);
    assert_eq!(rig.get_json("/v1/sessions/s/links").await, json!({ "items": [] }));
    let again = get(&rig, &token, "/v1/sessions/s/events").await;
    assert_eq!(code(again).await, refused(401, "link_over"));
    // The stream ends without the frame that says so, so that its reader asks again.
    let rest = timeout(Duration::from_secs(10), reader.text()).await.unwrap().unwrap();
    assert!(!rest.contains("event: end"), "{rest}");
    assert_eq!(rig.live_runs(), 0);
}

#[tokio::test]
async fn a_link_ends_at_its_time_and_with_its_session() {
    let journal = journal().await;
    let rig = rig(&journal, model()).await;
    rig.run("s", "go").await;
    // A token as the server makes them, whose link ends soon.
    let token = |mark: char| format!("msl{}", mark.to_string().repeat(64));
    let stored = async |token: &str, lasts: u64| {
        let id: String = Sha256::digest(token).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let created_at = SystemClock.now();
        let (session, expires_at) = ("s".parse().unwrap(), created_at.after(ms(lasts)));
        let link = Link { id: id.parse().unwrap(), session, created_at, expires_at, through: None };
        assert!(journal.add_link(link).await.unwrap());
    };
    stored(&token('a'), 0).await;
    assert_eq!(code(get(&rig, &token('a'), "/v1/link").await).await, refused(401, "link_over"));
    assert_eq!(rig.get_json("/v1/sessions/s/links").await, json!({ "items": [] }));
    stored(&token('b'), 1500).await;
    let reader = get(&rig, &token('b'), "/v1/sessions/s/events").await;
    assert_eq!(reader.status(), 200);
    let text = timeout(ms(3000), reader.text()).await.expect("it ends at its time").unwrap();
    assert!(text.contains("First.") && !text.contains("event: end"), "{text}");
    assert_eq!(code(get(&rig, &token('b'), "/v1/link").await).await, refused(401, "link_over"));

    // A session that is read with a link can be deleted, as soon as it has no other reader.
    let (token, _) = link(&rig, TOKEN, "s", json!({})).await;
    let reader = get(&rig, &token, "/v1/sessions/s/events").await;
    assert_eq!(reader.status(), 200);
    assert_eq!(rig.ask(Method::DELETE, "/v1/sessions/s").send().await.unwrap().status(), 204);
    timeout(Duration::from_secs(10), reader.text()).await.expect("it ends with its session").unwrap();
    assert_eq!(code(get(&rig, &token, "/v1/sessions/s/events").await).await, refused(401, "link_over"));
}

#[tokio::test]
async fn a_link_is_of_a_tenant() {
    let journal = journal().await;
    let rig = rig(&journal, model()).await;
    for (tenant, input) in [(ACME, "of acme"), (OTHER, "of other")] {
        let request = rig.stranger(Method::POST, "/v1/sessions/s/runs").bearer_auth(tenant);
        let request = request.header("prefer", "wait=30").json(&json!({ "input": input }));
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    let (token, id) = link(&rig, ACME, "s", json!({})).await;
    let text = get(&rig, &token, "/v1/sessions/s/events?follow=false").await.text().await.unwrap();
    assert!(text.contains("of acme") && !text.contains("of other"), "{text}");
    let view: Value = get(&rig, &token, "/v1/link").await.json().await.unwrap();
    assert_eq!(view["session_id"], "s", "the id that the tenant knows");
    for stranger in [OTHER, TOKEN] {
        let path = format!("/v1/sessions/s/links/{id}");
        let deleted = rig.stranger(Method::DELETE, &path).bearer_auth(stranger).send().await.unwrap();
        assert_eq!(code(deleted).await, refused(404, "not_found"));
        let links: Value = get(&rig, stranger, "/v1/sessions/s/links").await.json().await.unwrap();
        let is_of_acme = links.to_string().contains(&id);
        assert!(!is_of_acme && (stranger == TOKEN || links["items"] == json!([])), "{links}");
    }
    let of_acme = Scoped::new(journal.clone(), "acme".parse().unwrap());
    assert_eq!(of_acme.links(&"s".parse().unwrap()).await.unwrap().len(), 1);
    assert_eq!(get(&rig, &token, "/v1/sessions/s/fleet").await.status(), 200);
}

#[tokio::test]
async fn links_have_limits() {
    let rig = rig(&journal().await, model()).await;
    rig.run("s", "go").await;
    let last = rig.get_json("/v1/sessions/s").await["last_seq"].as_u64().unwrap();
    for (body, place) in [
        (json!({ "expires_in": 59 }), "/expires_in"),
        (json!({ "expires_in": 7_776_001 }), "/expires_in"),
        (json!({ "through": 0 }), "/through"),
        (json!({ "through": last + 1 }), "/through"),
        (json!({ "through": "x" }), "/through"),
        (json!({ "for": 60 }), "/for"),
    ] {
        let response = add(&rig, TOKEN, "s", body.clone()).await;
        assert_eq!(response.status(), 422, "{body}");
        let problem: Value = response.json().await.unwrap();
        assert!(problem["detail"].as_str().unwrap().contains(place), "{body}: {problem}");
    }
    assert_eq!(add(&rig, TOKEN, "new", json!({})).await.status(), 404);
    assert_eq!(add(&rig, TOKEN, "new", json!({ "through": 1 })).await.status(), 404);

    for _ in 0..100 {
        link(&rig, TOKEN, "s", json!({})).await;
    }
    assert_eq!(code(add(&rig, TOKEN, "s", json!({})).await).await, refused(429, "too_many_links"));
}
