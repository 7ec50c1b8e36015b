//! Models of one process share connections, and each runtime has its own.

use std::time::Duration;

use futures_util::{StreamExt, future::join_all};
use mainstem::{
    anthropic::Anthropic,
    message::Message,
    model::{Model, ModelRequest, scripted::Turn},
    openai::OpenAi,
    prelude::*,
};
use mainstem_testing::ModelServer;
use tokio::{
    runtime::{Builder, Handle, Runtime},
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

fn request() -> ModelRequest {
    ModelRequest { messages: vec![Message::user("Hi?").into()], ..ModelRequest::default() }
}

/// Asks a model, and waits until its connection can be used again.
async fn ask(model: &impl Model) {
    let deltas = model.stream(request());
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

/// Only what sweeps unused connections is a task, and it ends with the models.
#[test]
fn a_connection_without_tls_has_no_task() {
    let (_runs, server) = server(2);
    let models = [openai(&server), openai(&server)];
    let runtime = runtime();
    runtime.block_on(async {
        let calls = models.each_ref().map(|model| async {
            let mut deltas = model.stream(request());
            while deltas.next().await.is_some() {
                assert!(Handle::current().metrics().num_alive_tasks() <= 1);
            }
        });
        join_all(calls).await;
        assert_eq!((server.connections(), Handle::current().metrics().num_alive_tasks()), (2, 1));
        drop(models);
        sleep(Duration::from_millis(10)).await;
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
    });
}
