//! Models of one process share connections, and each runtime has its own.

use std::time::Duration;

use futures_util::StreamExt;
use mainstem::{
    anthropic::Anthropic,
    message::Message,
    model::{Model, ModelRequest, scripted::Turn},
    openai::OpenAi,
    prelude::*,
};
use mainstem_testing::ModelServer;
use tokio::{
    runtime::{Builder, Runtime},
    time::{sleep, timeout},
};

/// Starts a server on a runtime of its own, which answers this many requests.
fn server(answers: usize) -> (Runtime, ModelServer) {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let script = ScriptedModel::new().agent("m", (0..answers).map(|_| Turn::new().text("Hi.")));
    let server = runtime.block_on(ModelServer::start(script)).unwrap();
    (runtime, server)
}

fn openai(server: &ModelServer) -> OpenAi {
    OpenAi::new("m").with_base_url(&server.base_url()).unwrap()
}

/// Asks a model, and waits until its connection can be used again.
async fn ask(model: &impl Model) {
    let request = ModelRequest { messages: vec![Message::user("Hi?").into()], ..ModelRequest::default() };
    let deltas = model.stream(request);
    let answer = timeout(Duration::from_secs(10), deltas.collect::<Vec<_>>()).await;
    assert!(answer.expect("an answer arrives").iter().all(Result::is_ok));
    sleep(Duration::from_millis(50)).await;
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn models_of_one_runtime_share_a_connection() {
    let (_runs, server) = server(3);
    let models = [openai(&server), openai(&server)];
    let other = Anthropic::new("m").with_base_url(&server.root_url()).unwrap();
    runtime().block_on(async {
        ask(&models[0]).await;
        ask(&models[1]).await;
        // Another API is another path of the same server.
        ask(&other).await;
    });
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_model_of_several_runtimes_has_a_connection_in_each() {
    let (_runs, server) = server(5);
    let [model, other] = [openai(&server), openai(&server)];
    let (first, second) = (runtime(), runtime());
    first.block_on(ask(&model));
    // The first runtime exists, and does not drive its connection now.
    second.block_on(ask(&other));
    second.block_on(ask(&other));
    first.block_on(ask(&model));
    assert_eq!(server.connections(), 2);
    drop((first, second));
    runtime().block_on(ask(&model));
    assert_eq!(server.connections(), 3);
}
