//! Pictures and documents that are larger than a body: they are stored on their own, and messages
//! refer to them.

use std::sync::{Arc, Mutex};

use futures_util::TryStreamExt;
use mainstem::{
    api::{AnySession, Code, NewRun},
    client::Server,
    journal::{Journal, MemoryJournal},
    message::{ContentBlock, DataSource, Message, Opaque, Role, StoredData},
    model::{Model, ModelRequest, ModelStream, scripted::Turn},
    prelude::ScriptedModel,
    session::data_id,
};
use mainstem_server::Tokens;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rig::{Rig, TOKEN, fleet};

const ACME: &str = "the-token-of-acme";

/// Larger than a body of JSON.
const LARGE: usize = 3 << 20;

/// Notes how many base64 digits of data each of its calls has.
#[derive(Clone)]
struct Shown {
    digits: Arc<Mutex<Vec<usize>>>,
    inner: Arc<ScriptedModel>,
}

impl Shown {
    fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self { digits: Arc::default(), inner: Arc::new(ScriptedModel::new().agent("main", turns)) }
    }
}

impl Model for Shown {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let blocks = request.messages.iter().flat_map(|message| &message.content);
        let digits = blocks.map(|block| match block {
            ContentBlock::Data { source: DataSource::Base64(digits), .. } => digits.len(),
            _ => 0,
        });
        self.digits.lock().unwrap().push(digits.sum());
        self.inner.stream(request)
    }
}

async fn rig(model: Shown) -> Rig {
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let tokens = Tokens::new().with_token(TOKEN, None).unwrap().with_token(ACME, Some("acme")).unwrap();
    let harness = fleet(model).with_journal(journal);
    Rig::start(harness, |builder| builder.with_tokens(tokens.clone())).await
}

pub(crate) async fn store(rig: &Rig, session: &str, bytes: Vec<u8>) -> Response {
    let request = rig.ask(Method::POST, &format!("/v1/sessions/{session}/data"));
    request.header("content-type", "application/octet-stream").body(bytes).send().await.unwrap()
}

pub(crate) async fn problem(response: Response) -> (u16, Value) {
    (response.status().as_u16(), response.json().await.unwrap())
}

fn picture(stored: &Value) -> Value {
    let picture = json!({ "type": "data", "mediaType": "image/png", "source": { "stored": stored } });
    json!({ "input": { "role": "user", "content": [{ "type": "text", "text": "What is it?" }, picture] } })
}

#[tokio::test(flavor = "multi_thread")]
async fn data_is_sent_once_and_messages_refer_to_it() {
    let model = Shown::new([Turn::new().text("A cat."), Turn::new().text("Still a cat.")]);
    let rig = rig(model.clone()).await;
    let bytes: Vec<u8> = (0..=255).cycle().take(LARGE).collect();
    let id = data_id(&bytes);
    // Before the session has begun, and once more: it is the same.
    for _ in 0..2 {
        let response = store(&rig, "s", bytes.clone()).await;
        assert_eq!(response.status(), StatusCode::CREATED);
        assert_eq!(response.headers()["location"], format!("/v1/sessions/s/data/{id}").as_str());
        assert_eq!(response.json::<Value>().await.unwrap(), json!({ "sha256": id, "bytes": LARGE }));
    }
    let stored = json!({ "sha256": id, "bytes": LARGE });
    for _ in 0..2 {
        let request = rig.ask(Method::POST, "/v1/sessions/s/runs").header("prefer", "wait=30");
        let response = request.json(&picture(&stored)).send().await.unwrap();
        let (status, run) = problem(response).await;
        assert_eq!((status, &run["status"]), (200, &json!("success")), "{run}");
    }
    let digits = LARGE.div_ceil(3) * 4;
    assert_eq!(*model.digits.lock().unwrap(), [digits, 2 * digits]);
    let start = rig.get_json("/v1/sessions/s/events/1").await;
    assert_eq!(start["input"][0]["content"][1]["source"], json!({ "stored": stored }));

    let read = rig.get(&format!("/v1/sessions/s/data/{id}")).await;
    assert_eq!(read.status(), 200);
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "sandbox"),
    ] {
        assert_eq!(read.headers()[name], value);
    }
    assert_eq!(read.bytes().await.unwrap(), bytes);
    // It is that session's, and that tenant's.
    for (token, path) in [(TOKEN, "/v1/sessions/another/data"), (ACME, "/v1/sessions/s/data")] {
        let read = rig.stranger(Method::GET, &format!("{path}/{id}")).bearer_auth(token).send().await;
        let (status, problem) = problem(read.unwrap()).await;
        assert_eq!((status, &problem["code"]), (404, &json!("not_found")), "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_sends_large_data_on_its_own() {
    let model = Shown::new([Turn::new().text("A cat.")]);
    let rig = rig(model.clone()).await;
    let bytes = vec![7; LARGE];
    let digits = "BwcH".repeat(LARGE / 3);
    let content = vec![
        ContentBlock::text("What is it?"),
        ContentBlock::Data {
            media_type: "image/png".to_owned(),
            source: DataSource::Base64(digits.clone()),
            opaque: Opaque::new(),
        },
    ];
    let server = Server::at(&rig.url).unwrap().with_token(TOKEN);
    let session = server.open("s").unwrap();
    let begun = session.run(NewRun::new(Message::new(Role::User, content))).await.unwrap();
    begun.events.try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(begun.run.view().await.unwrap().reply.as_deref(), Some("A cat."));
    assert_eq!(*model.digits.lock().unwrap(), [digits.len()]);
    let data = StoredData::new(data_id(&bytes), bytes.len() as u64);
    assert_eq!(session.data(&data).await.unwrap(), bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn data_that_can_t_be_stored_or_found_is_refused() {
    let rig = rig(Shown::new([Turn::new().text("Hi.")])).await;
    let octets = "application/octet-stream";
    for (content_type, bytes, status, code) in [
        ("application/json", 10, 415, "not_bytes"),
        ("image/png", 10, 415, "not_bytes"),
        (octets, 0, 422, "bad_body"),
        (octets, 20 << 20, 201, ""),
    ] {
        let request = rig.ask(Method::POST, "/v1/sessions/s/data").header("content-type", content_type);
        let response = request.body(vec![1; bytes]).send().await.unwrap();
        let (found, problem) = problem(response).await;
        assert_eq!(found, status, "{content_type}, {bytes}: {problem}");
        assert_eq!(problem["code"].as_str().unwrap_or_default(), code, "{content_type}, {bytes}");
    }
    // A body that is too large is refused before it is read.
    let more =
        format!("Authorization: Bearer {TOKEN}\r\nContent-Type: {octets}\r\nContent-Length: 20971521\r\n");
    let mut stream = rig.connect().await;
    stream.write_all(rig.head("POST /v1/sessions/s/data", &more).as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    let server = Server::at(&rig.url).unwrap().with_token(TOKEN);
    let refused = server.open("s").unwrap().store_data(vec![1; (20 << 20) + 1]).await.unwrap_err();
    assert!(refused.has_code(&Code::BodyTooLarge), "{refused}");

    let id = data_id(b"another");
    for (stored, why) in [
        (json!({ "sha256": id, "bytes": 7 }), "the session has no data of this id"),
        (json!({ "sha256": data_id(&vec![1; 20 << 20]), "bytes": 7 }), "the data has 20971520 bytes, not 7"),
    ] {
        let (status, problem) = problem(rig.post("/v1/sessions/s/runs", picture(&stored)).await).await;
        assert_eq!(status, 422, "{problem}");
        let error = json!([{ "pointer": "/input/content/1/source/stored", "detail": why }]);
        assert_eq!(problem["errors"], error);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_refers_to_so_much_data() {
    let rig = rig(Shown::new([Turn::new().text("Hi.")])).await;
    let mut stored = Vec::new();
    for byte in 1..=3 {
        stored.push(store(&rig, "s", vec![byte; 8 << 20]).await.json::<Value>().await.unwrap());
    }
    let small: Value = store(&rig, "s", vec![1; 10]).await.json().await.unwrap();
    let check = async |path: &str, stored: Vec<&Value>, more: Value, place: &str, why: &str| {
        let block = |stored: &Value| json!({ "type": "data", "mediaType": "image/png", "source": { "stored": stored } });
        let content: Vec<_> = stored.into_iter().map(block).collect();
        let mut body = json!({ "input": { "role": "user", "content": content } });
        if path == "/v1/jobs" {
            body = json!({ "run": body });
        }
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, problem) = problem(rig.post(path, body).await).await;
        assert_eq!((status, problem["errors"][0]["pointer"].as_str()), (422, Some(place)), "{problem}");
        assert!(problem["errors"][0]["detail"].as_str().unwrap().contains(why), "{problem}");
    };
    let runs = "/v1/sessions/s/runs";
    let place = |number: usize| format!("/input/content/{number}/source/stored");
    check(runs, stored.iter().collect(), json!({}), &place(2), "more than 20971520 bytes").await;
    check(runs, vec![&small; 65], json!({}), &place(64), "64 times at most").await;
    // A job's session has to have the data when the job is due.
    for more in [json!({}), json!({ "session_id": "s" })] {
        check("/v1/jobs", vec![&small], more, "/run/input/content", "a session that has begun").await;
    }
    rig.run("s", "go").await;
    let job = |session: &str| {
        let data = json!({ "type": "data", "mediaType": "image/png", "source": { "stored": small } });
        json!({ "session_id": session, "run": { "input": { "role": "user", "content": [data] } }, "run_at": "2100-01-01T00:00:00Z" })
    };
    assert_eq!(rig.post("/v1/jobs", job("s")).await.status(), 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_sends_many_small_pictures() {
    let rig = rig(Shown::new([Turn::new().text("Cats.")])).await;
    let picture = |number: usize| ContentBlock::Data {
        media_type: "image/png".to_owned(),
        source: DataSource::Base64(format!("{number:04}").repeat(10_000)),
        opaque: Opaque::new(),
    };
    let content = (0..40).map(picture).collect();
    let session = Server::at(&rig.url).unwrap().with_token(TOKEN).open("s").unwrap();
    let begun = session.run(NewRun::new(Message::new(Role::User, content))).await.unwrap();
    begun.events.try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(begun.run.view().await.unwrap().reply.as_deref(), Some("Cats."));
}
