//! All active sessions, on one stream.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::StreamExt;
use mainstem::{api::LiveFrame, event::FleetState, model::scripted::Turn, prelude::ScriptedModel};
use mainstem_server::Tokens;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::rig::{Rig, TOKEN, fleet, ms, spawn};

pub(crate) const ACME: &str = "the-token-of-acme";

/// How long a test waits for a frame.
const PATIENCE: Duration = Duration::from_secs(10);

/// A reader of lines, and the sessions as it knows them.
pub(crate) struct Reader {
    body: futures_util::stream::BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    text: String,
    fleets: BTreeMap<String, FleetState>,
    kinds: Vec<String>,
    /// The last one.
    summary: Option<LiveFrame>,
}

impl Reader {
    pub(crate) async fn of(rig: &Rig, path: &str, token: &str) -> Self {
        let request = rig.stranger(Method::GET, path).bearer_auth(token);
        let response = request.header("accept", "application/x-ndjson").send().await.unwrap();
        assert_eq!(response.status(), 200);
        Self {
            body: response.bytes_stream().boxed(),
            text: String::new(),
            fleets: BTreeMap::new(),
            kinds: Vec::new(),
            summary: None,
        }
    }

    /// Returns the next frame, and applies it; `None` if the stream was cut.
    pub(crate) async fn next(&mut self) -> Option<LiveFrame> {
        loop {
            if let Some((line, rest)) = self.text.split_once('\n') {
                let (line, rest) = (line.to_owned(), rest.to_owned());
                self.text = rest;
                if line.is_empty() {
                    continue;
                }
                let frame = serde_json::from_str(&line).unwrap();
                self.apply(&frame);
                return Some(frame);
            }
            match timeout(PATIENCE, self.body.next()).await.expect("a frame comes")? {
                Ok(bytes) => self.text += std::str::from_utf8(&bytes).unwrap(),
                Err(_) => return None,
            }
        }
    }

    fn apply(&mut self, frame: &LiveFrame) {
        match frame {
            LiveFrame::Session { session, fleet, .. } => {
                self.fleets.insert(session.id.to_string(), (**fleet).clone());
            }
            LiveFrame::Event { event, .. } => {
                assert!(event.kind.is_lifecycle(), "{event}");
                self.kinds.push(event.kind.name().to_owned());
                let session = event.origin.session_id.to_string();
                self.fleets.get_mut(&session).expect("a session comes before its events").apply(event);
            }
            LiveFrame::Summary { .. } => self.summary = Some(frame.clone()),
            _ => {}
        }
    }

    async fn until(&mut self, is_last: impl Fn(&LiveFrame) -> bool) -> LiveFrame {
        loop {
            let frame = self.next().await.expect("the stream goes on");
            if is_last(&frame) {
                return frame;
            }
        }
    }

    async fn until_session(&mut self, id: &str) -> LiveFrame {
        self.until(|frame| matches!(frame, LiveFrame::Session { session, .. } if session.id.as_str() == id))
            .await
    }
}

/// Begins a run, which goes on.
pub(crate) async fn begin(rig: &Rig, token: &str, session: &str) -> Response {
    let request = rig.stranger(Method::POST, &format!("/v1/sessions/{session}/runs")).bearer_auth(token);
    let begun = request.json(&json!({ "input": "go" })).send().await.unwrap();
    assert_eq!(begun.status(), 202);
    begun
}

/// A kid that asks before it writes, then an answer.
pub(crate) fn model() -> ScriptedModel {
    let kid = Turn::new().text("x".repeat(500)).call("write", json!({}));
    ScriptedModel::new()
        .agent("main", [spawn(Turn::new(), "write"), Turn::new().text("Done.")])
        .agent("kid", [kid, Turn::new().text("Written.")])
}

#[tokio::test]
async fn a_reader_knows_each_session_while_it_works() {
    let rig = Rig::of(model()).await;
    let mut early = Reader::of(&rig, "/v1/live", TOKEN).await;
    let first = early.next().await.unwrap();
    assert_eq!(first, LiveFrame::Summary { live: 0, shown: 0, server: None });
    begin(&rig, TOKEN, "one").await;
    early.until_session("one").await;
    let first = question(&rig, "one").await;
    // A later reader gets what happened before as a state.
    let mut late = Reader::of(&rig, "/v1/live", TOKEN).await;
    late.until_session("one").await;
    assert_eq!(late.fleets["one"].confirmations.len(), 1);
    assert_eq!(late.fleets["one"], without_lines(rig_fleet(&rig, "one").await));
    begin(&rig, TOKEN, "two").await;
    early.until_session("two").await;
    for path in [first, question(&rig, "two").await] {
        assert_eq!(rig.post(&path, json!({ "decision": "allow" })).await.status(), 200);
    }
    for reader in [&mut early, &mut late] {
        // They end in any order.
        let mut left = BTreeSet::new();
        while left.len() < 2 {
            if let LiveFrame::Left { session_id, .. } = reader.next().await.unwrap() {
                left.insert(session_id.to_string());
            }
        }
    }
    for session in ["one", "two"] {
        let told = without_lines(rig_fleet(&rig, session).await);
        assert_eq!(early.fleets[session].agents, told.agents);
        assert_eq!(late.fleets[session].agents, told.agents);
        assert!(told.agents.iter().all(|agent| agent.outcome.is_some()), "{told:?}");
    }
    assert!(early.kinds.iter().all(|kind| !kind.contains("DELTA")), "{:?}", early.kinds);
    assert_eq!(early.summary, Some(LiveFrame::Summary { live: 0, shown: 0, server: None }));
    assert_eq!(rig.figure("readers").await, 2);
    drop((early, late));
    tokio::time::sleep(ms(100)).await;
    assert_eq!(rig.figure("readers").await, 0);
}

/// A live stream has no content, so its agents have no last line.
fn without_lines(mut fleet: FleetState) -> FleetState {
    fleet.agents.iter_mut().for_each(|agent| agent.last_line.clear());
    fleet
}

async fn rig_fleet(rig: &Rig, session: &str) -> FleetState {
    let told = rig.get_json(&format!("/v1/sessions/{session}/fleet")).await;
    serde_json::from_value(told).unwrap()
}

/// Returns the path of what a session asks for, once it does.
async fn question(rig: &Rig, session: &str) -> String {
    loop {
        if let Some(id) = rig_fleet(rig, session).await.confirmations.keys().next() {
            return format!("/v1/sessions/{session}/confirmations/{id}");
        }
        tokio::time::sleep(ms(10)).await;
    }
}

#[tokio::test]
async fn a_tenant_sees_its_own_sessions_and_the_operator_all() {
    let tokens = Tokens::new().with_token(TOKEN, None).unwrap().with_token(ACME, Some("acme")).unwrap();
    let harness = fleet(model());
    let rig = Rig::start(harness, |builder| builder.with_tokens(tokens.clone())).await;
    let refused = rig.stranger(Method::GET, "/v1/live?all=true").bearer_auth(ACME).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let problem: Value = refused.json().await.unwrap();
    assert_eq!(problem["code"], "operator_only");
    assert_eq!(rig.stranger(Method::GET, "/v1/live").send().await.unwrap().status(), 401);
    // Both have a session of the same id.
    begin(&rig, TOKEN, "same").await;
    begin(&rig, ACME, "same").await;
    let mut of_acme = Reader::of(&rig, "/v1/live", ACME).await;
    let frame = of_acme.until_session("same").await;
    assert!(matches!(frame, LiveFrame::Session { tenant: None, .. }), "{frame:?}");
    let mut all = Reader::of(&rig, "/v1/live?all=true", TOKEN).await;
    let first = all.next().await;
    assert!(matches!(first, Some(LiveFrame::Summary { live: 2, shown: 2, server: Some(_) })), "{first:?}");
    let mut tenants = Vec::new();
    for _ in 0..2 {
        let LiveFrame::Session { tenant, .. } = all.until_session("same").await else { panic!("a session") };
        tenants.push(tenant.map(|tenant| tenant.to_string()));
    }
    tenants.sort();
    assert_eq!(tenants, [None, Some("acme".to_owned())]);
    let mut own = Reader::of(&rig, "/v1/live", TOKEN).await;
    assert_eq!(own.next().await, Some(LiveFrame::Summary { live: 1, shown: 1, server: None }));
}

#[tokio::test]
async fn the_operator_sends_requests_as_a_tenant() {
    let tokens = Tokens::new().with_token(TOKEN, None).unwrap().with_token(ACME, Some("acme")).unwrap();
    let harness = fleet(model());
    let rig = Rig::start(harness, |builder| builder.with_tokens(tokens.clone())).await;
    begin(&rig, ACME, "theirs").await;
    let sent = async |method: Method, path: &str, token: &str, tenant: &str| {
        let request = rig.stranger(method, path).bearer_auth(token).header("mainstem-tenant", tenant);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap_or_default())
    };
    let get = async |path, token, tenant| sent(Method::GET, path, token, tenant).await;
    // Without the header, the operator has its own sessions alone.
    assert_eq!(rig.get("/v1/sessions/theirs").await.status(), 404);
    let (status, session) = get("/v1/sessions/theirs", TOKEN, "acme").await;
    assert_eq!((status, &session["id"]), (200, &json!("theirs")), "{session}");
    let (_, sessions) = get("/v1/sessions", TOKEN, "acme").await;
    assert_eq!(sessions["items"].as_array().map(Vec::len), Some(1), "{sessions}");
    let run = session["active_run"].as_str().unwrap();
    let (status, _) = sent(Method::POST, &format!("/v1/runs/{run}/cancel"), TOKEN, "acme").await;
    assert_eq!(status, 202);
    let twice = rig.ask(Method::GET, "/v1/sessions").header("mainstem-tenant", "acme");
    assert_eq!(twice.header("mainstem-tenant", "globex").send().await.unwrap().status(), 400);
    // A tenant may name itself, and no other.
    assert_eq!(get("/v1/sessions/theirs", ACME, "acme").await.0, 200);
    for (token, tenant, status, code) in [
        (ACME, "globex", 403, "operator_only"),
        (ACME, "", 403, "operator_only"),
        (TOKEN, "globex", 404, "not_found"),
        (TOKEN, "", 404, "not_found"),
        (TOKEN, "../acme", 404, "not_found"),
        ("wrong", "acme", 401, "bad_token"),
    ] {
        let (got, problem) = get("/v1/sessions/theirs", token, tenant).await;
        assert_eq!((got, &problem["code"]), (status, &json!(code)), "{tenant}: {problem}");
    }
    let (status, problem) = get("/v1/live?all=true", TOKEN, "acme").await;
    assert_eq!((status, &problem["code"]), (403, &json!("operator_only")));
}

#[tokio::test]
async fn it_is_server_sent_events_that_a_stop_cuts() {
    let rig = Rig::of(model()).await;
    begin(&rig, TOKEN, "s").await;
    let mut response = rig.get("/v1/live").await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut text = String::new();
    let question = question(&rig, "s").await;
    while !text.contains("event: session\n") {
        text += std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap();
    }
    rig.post(&question, json!({ "decision": "allow" })).await;
    while !text.contains("event: event\n") {
        text += std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap();
    }
    assert!(text.starts_with("retry: 2000\n\nevent: summary\ndata: {\"type\":\"summary\","), "{text}");
    assert!(!text.contains("id: ") && text.contains("event: session\ndata: {"), "{text}");
    let read = async {
        while response.chunk().await?.is_some() {}
        reqwest::Result::Ok(())
    };
    let (read, ()) = tokio::join!(read, async { rig.stop.cancel() });
    assert!(read.is_err(), "a cut stream has no end");
}

#[tokio::test]
async fn a_live_stream_has_so_many_sessions() {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("x").hang()]);
    let harness = fleet(model);
    let rig = Rig::start(harness, |builder| builder.with_max_runs(300)).await;
    for number in 0..205 {
        begin(&rig, TOKEN, &format!("s-{number}")).await;
    }
    let mut reader = Reader::of(&rig, "/v1/live", TOKEN).await;
    let first = reader.next().await.unwrap();
    assert_eq!(first, LiveFrame::Summary { live: 205, shown: 200, server: None });
    while reader.fleets.len() < 200 {
        reader.next().await.unwrap();
    }
    assert!(!reader.fleets.contains_key("s-0") && reader.fleets.contains_key("s-204"));
    // A session that leaves makes room for another.
    let run = rig.get_json("/v1/sessions/s-204").await["active_run"].as_str().unwrap().to_owned();
    rig.post(&format!("/v1/runs/{run}/cancel"), Value::Null).await;
    reader.until_session("s-4").await;
}
