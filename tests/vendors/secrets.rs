//! A key is nowhere to be seen: not in events, errors, `Debug`, the files of a journal, nor in anything that `tracing` is told, by us or by the HTTP stack.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use mainstem::{
    journal::SqliteJournal,
    model::{ModelError, scripted::Turn},
    prelude::*,
    vendor::VENDORS,
};
use mainstem_testing::ModelServer;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
};

use crate::contract::{ROOT, builder, model};

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

#[tokio::test]
async fn no_key_is_shown_anywhere() {
    // While there is only one subscriber, tracing asks that of the current thread whether a span is wanted, and remembers the answer for
    // all threads; and other tests run on those.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    for vendor in VENDORS {
        let heard = Heard::default();
        let subscriber = tracing_subscriber::registry().with(heard.clone());
        let _guard = tracing::subscriber::set_default(subscriber);
        let echo = ModelError::from_status(401, "no such key: a-key-that-is-secret");
        let script = ScriptedModel::new().agent(ROOT, [Turn::new().fail(echo)]);
        let server = ModelServer::start(script).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let journal = SqliteJournal::open(dir.path().join("journal.db")).unwrap();
        let harness = builder(model(vendor, &server, ROOT)).journal(journal).build().unwrap();
        let events: Vec<_> = harness.stream_events("go").collect().await;
        let mut shown = format!("{harness:?} {events:?}");
        events.iter().for_each(|event| shown.push_str(&serde_json::to_string(event).unwrap()));
        assert!(shown.contains("no such key: [secret]"), "{}: {shown}", vendor.name);
        harness.journal().unwrap().close().await.unwrap();
        let files =
            dir.path().read_dir().unwrap().map(|file| file.unwrap().path()).filter(|path| path.is_file());
        let kept: String =
            files.map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()).collect();
        assert!(kept.contains("no such key: [secret]"), "{}: it was kept as text", vendor.name);
        let traced = heard.0.lock().unwrap().clone();
        assert!(traced.contains("invoke_agent"), "{}: the trace was heard: {traced}", vendor.name);
        for text in [shown, traced, kept] {
            assert!(!text.contains("that-is-secret"), "{}: {text}", vendor.name);
        }
    }
}
