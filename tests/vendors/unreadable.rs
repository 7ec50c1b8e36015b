//! Data that a vendor can't read: its turn fails, and the conversation goes on without it.

use futures_util::StreamExt;
use mainstem::{
    Harness,
    message::{ContentBlock, DataSource, Message, Opaque, Role},
    model::scripted::Turn,
    prelude::ScriptedModel,
    provider::{Setup, provider},
    session::Run,
};
use mainstem_testing::{ModelServer, laws, render};

/// Returns how a run ended.
async fn end(run: Run) -> String {
    let events: Vec<_> = run.collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    events.last().unwrap().to_string()
}

fn audio() -> Message {
    let source = DataSource::Base64("Zm9v".to_owned());
    let audio = ContentBlock::Data { media_type: "audio/flac".into(), source, opaque: Opaque::new() };
    Message::new(Role::User, vec![ContentBlock::text("Listen."), audio])
}

#[tokio::test]
async fn data_without_a_form_is_removed_once_it_is_of_an_earlier_turn() {
    for name in ["openai", "responses", "anthropic", "ollama"] {
        let server =
            ModelServer::start(ScriptedModel::new().agent("main", [Turn::new().text("Yes.")])).await.unwrap();
        let row = provider(name).unwrap();
        let var = |name: &str| match name {
            name if name == row.base_url => Some(server.root_url()),
            name if name == row.key => Some("k".to_owned()),
            _ => None,
        };
        let model = row.bare_model("main", &Setup::new(&var)).unwrap();
        let session = Harness::builder("main", model).build().unwrap().new_session();
        let first = end(session.run(audio()).unwrap()).await;
        assert!(first.contains("unsupported: "), "{name}: {first}");
        assert_eq!(server.requests().len(), 0, "{name}");
        let second = end(session.run("Can you hear it?").unwrap()).await;
        assert!(second.contains("success"), "{name}: {second}");
        let request = server.requests()[0].to_string();
        let removed = "[audio/flac was removed because the model can't read some data of earlier messages]";
        assert!(request.contains(removed), "{name}: {request}");
    }
}
