//! Neither a key nor a password is shown: not in events, errors, `Debug`, the files of a journal,
//! nor in anything that `tracing` is told, by us or by the HTTP stack.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use mainstem::{
    journal::SqliteJournal,
    model::{Model, ModelError, scripted::Turn},
    prelude::*,
    provider::PROVIDERS,
};
use mainstem_testing::{
    ModelServer,
    raw::{Server, whole},
};
use serde_json::json;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
};

use crate::contract::{ROOT, at, builder, model};

/// Everything that is traced, at every level, as text.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<String>>);

impl Visit for Heard {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = self.0.lock().unwrap();
        text.push_str(&format!("{}={value:?} ", field.name()));
    }
}

impl<S: Subscriber> Layer<S> for Heard {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        attributes.record(&mut self.clone());
    }

    fn on_record(&self, _: &Id, values: &Record<'_>, _: Context<'_, S>) {
        values.record(&mut self.clone());
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        event.record(&mut self.clone());
    }
}

/// Returns what is left of a run that fails: its events, the files of its journal, and what was
/// traced, each as text.
async fn left(model: Arc<dyn Model>) -> [String; 3] {
    let heard = Heard::default();
    let subscriber = tracing_subscriber::registry().with(heard.clone());
    let _guard = tracing::subscriber::set_default(subscriber);
    let dir = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(dir.path().join("journal.db")).unwrap();
    let harness = builder(model).with_journal(journal).build().unwrap();
    let events: Vec<_> = harness.stream_events("go").collect().await;
    let mut shown = format!("{harness:?} {events:?}");
    events.iter().for_each(|event| shown.push_str(&serde_json::to_string(event).unwrap()));
    harness.journal().unwrap().close().await.unwrap();
    let files = dir.path().read_dir().unwrap().map(|file| file.unwrap().path()).filter(|path| path.is_file());
    let recorded =
        files.map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()).collect();
    let traced = heard.0.lock().unwrap().clone();
    assert!(traced.contains("invoke_agent"), "the trace was heard: {traced}");
    [shown, recorded, traced]
}

#[tokio::test]
async fn no_key_is_shown_anywhere() {
    // While there is only one subscriber, tracing asks that of the current thread whether a span is
    // wanted, and remembers the answer for all threads; and other tests run on those.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    for vendor in PROVIDERS {
        let echo = ModelError::from_status(401, "no such key: a-key-that-is-secret");
        let script = ScriptedModel::new().agent(ROOT, [Turn::new().fail(echo)]);
        let server = ModelServer::start(script).await.unwrap();
        let left = left(model(vendor, &server, ROOT)).await;
        for text in &left[..2] {
            assert!(text.contains("no such key: [secret]"), "{}: {text}", vendor.name);
        }
        for text in left {
            assert!(!text.contains("that-is-secret"), "{}: {text}", vendor.name);
        }
    }
}

/// A user and a password, as they stand in a base URL and in what servers and proxies repeat of it.
const CREDENTIALS: [&str; 8] = [
    "me:hunter2%2F%22%26s%C3%A9cret",
    "me:hunter2%2f%22%26s%c3%a9cret",
    "me:hunter2/%22&s%C3%A9cret",
    r#"me:hunter2/"&sécret"#,
    r#"me:hunter2\/\"\u0026s\u00e9cret"#,
    "me:hunter2&#x2F;&quot;&amp;s&#233;cret",
    r#"hunter2/"&sécret"#,
    "bWU6aHVudGVyMi8iJnPDqWNyZXQ=",
];

/// Parts of them, and of the key.
const PARTS: [&str; 4] = ["hunter2", "cret%", "aHVudGVyMi8i", "that-is-secret"];

#[tokio::test]
async fn no_password_of_a_base_url_is_shown_anywhere() {
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let html = "content-type: text/html\r\n";
    let moved = format!("location: http://{}@127.0.0.1:1/\r\n", CREDENTIALS[0]);
    for credentials in CREDENTIALS {
        let echo = format!("{credentials} and a-key-that-is-secret");
        let error = json!({ "type": "invalid_request_error", "message": format!("no {echo}") });
        let json = json!({ "type": "error", "error": error }).to_string();
        let answers = [
            whole("404 Not Found", "", &format!("no {echo}")),
            whole("404 Not Found", "", &json),
            whole("302 Found", &moved, &format!("<a href=\"http://{echo}\">moved</a>")),
            whole("200 OK", html, &format!("<p>no {echo}</p>")),
            whole("200 OK", "content-type: text/event-stream\r\n", &format!("data: {json}\n\n")),
            whole("200 OK", "content-type: application/x-ndjson\r\n", &format!("{json}\n")),
        ];
        // One form is enough to see that the secrets of a service with another's API are removed.
        let vendors = PROVIDERS.iter().filter(|row| row.has_own_api() || credentials == CREDENTIALS[0]);
        for (vendor, answer) in vendors.flat_map(|vendor| answers.iter().map(move |answer| (vendor, answer)))
        {
            let server = Server::start(vec![answer.clone(); 4]).await;
            let url = format!("http://{}@{}", CREDENTIALS[0], server.host());
            let [shown, recorded, traced] = left(at(vendor, url, ROOT)).await;
            assert!(shown.contains("[secret]"), "{}: {answer:?}: {shown}", vendor.name);
            for text in [shown, recorded, traced] {
                let found: Vec<_> = PARTS.iter().filter(|part| text.contains(**part)).collect();
                assert!(found.is_empty(), "{}: {credentials}: {found:?} in {text}", vendor.name);
            }
        }
    }
}
