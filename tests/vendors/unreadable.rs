//! Data that a vendor can't read: its turn fails, and further requests are without it.

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
use serde_json::json;

/// Returns how a run ended.
async fn end(run: Run) -> String {
    let events: Vec<_> = run.collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    events.last().unwrap().to_string()
}

/// The second turn calls a tool first.
fn script() -> ScriptedModel {
    let call = Turn::new().call("agent_list", json!({}));
    ScriptedModel::new()
        .agent("main", [Turn::new().text("Yes."), call, Turn::new().text("No."), Turn::new().text("No.")])
}

fn data(media_type: &str) -> Message {
    let source = DataSource::Base64("Zm9v".to_owned());
    let data = ContentBlock::Data { media_type: media_type.into(), source, opaque: Opaque::new() };
    Message::new(Role::User, vec![ContentBlock::text("Here."), data])
}

#[tokio::test]
async fn data_without_a_form_is_left_out_once_it_is_of_an_earlier_turn() {
    for name in ["openai", "responses", "anthropic", "ollama"] {
        let server = ModelServer::start(script()).await.unwrap();
        let row = provider(name).unwrap();
        let var = |name: &str| match name {
            name if name == row.base_url => Some(server.root_url()),
            name if name == row.key => Some("k".to_owned()),
            _ => None,
        };
        let model = row.bare_model("main", &Setup::new(&var)).unwrap();
        let session = Harness::builder("main", model).build().unwrap().new_session();
        let zeroth = end(session.run(data("image/png")).unwrap()).await;
        assert!(zeroth.contains("success"), "{name}: {zeroth}");
        // While it is in the request itself, nothing else helps, and nothing else is removed.
        let first = end(session.run(data("audio/flac")).unwrap()).await;
        assert!(first.contains("unsupported: "), "{name}: {first}");
        assert_eq!(server.requests().len(), 1, "{name}");
        let second = end(session.run("Can you hear it?").unwrap()).await;
        assert!(second.contains("success"), "{name}: {second}");
        let request = server.requests()[1].to_string();
        let removed = "[audio/flac was removed because this model can't read it]";
        assert!(request.contains(removed) && request.contains("Zm9v"), "{name}: {request}");
        // The answer is not lost, and the next turn goes on the same way.
        assert_eq!(session.history().last().unwrap().text(), "No.", "{name}");
        let third = end(session.run("And now?").unwrap()).await;
        assert!(third.contains("success"), "{name}: {third}");
    }
}
