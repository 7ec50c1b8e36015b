//! Over A2A, at a server of ours whose card lacks our extension: a task is artifacts and states.

use axum::{
    body::{Body, to_bytes},
    extract::Request,
    middleware::{Next, from_fn},
    response::Response,
};
use mainstem::prelude::*;
use mainstem_server::{Server, Tokens};
use tokio::{net::TcpListener, task::JoinHandle};

use super::{check_ended, continued};
use crate::{
    anywhere::TOKEN,
    restart::{Whole, check_asks_again, check_cancel, check_live},
    speaks::Speaks,
};

/// The name of our extension in a card.
const EXTENSION: &str = "https://github.com/mainstem-rs/mainstem/a2a/events/v1";

/// Serves A2A without our extension, and without streams if they are not wanted.
pub(crate) async fn serve(harness: Harness, has_streams: bool) -> (String, JoinHandle<()>) {
    let tokens = Tokens::new().with_token(TOKEN, None).unwrap();
    let server = Server::new(harness).with_tokens(tokens).with_protocol(mainstem_server::Protocol::A2a);
    let plain = move |request: Request, next: Next| async move {
        let is_card = request.uri().path().ends_with("agent-card.json");
        let response = next.run(request).await;
        if is_card { without_extension(response, has_streams).await } else { response }
    };
    let router = server.build().unwrap().router().layer(from_fn(plain));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "aborted by the test")]
    let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (url, serving)
}

async fn without_extension(response: Response, has_streams: bool) -> Response {
    let (mut parts, body) = response.into_parts();
    parts.headers.remove("content-length");
    let card = String::from_utf8(to_bytes(body, 1 << 20).await.unwrap().to_vec()).unwrap();
    assert!(card.contains(EXTENSION) && card.contains(r#""streaming":true"#), "{card}");
    let card = card.replace(EXTENSION, "urn:another");
    let card = card.replace(r#""streaming":true"#, &format!(r#""streaming":{has_streams}"#));
    Response::from_parts(parts, Body::from(card))
}

async fn check_each_cut(speaks: Speaks) {
    let whole = Whole::run(speaks).await;
    let every = if std::env::var_os("RUN_SLOW_TESTS").is_some() { 1 } else { 3 };
    let known = whole.while_it_is_known("a2a.task").step_by(every);
    // Before the id is recorded, the task is found by its message.
    for cut in std::iter::once(whole.just_begun()).chain(known) {
        let (events, task) = continued(&whole, cut).await;
        check_ended(cut, &events, &task, &whole);
    }
    assert_eq!(whole.far_runs(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_streamed_task_goes_on_behind_each_event() {
    check_each_cut(Speaks::PlainA2a).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_polled_task_goes_on_behind_each_event() {
    check_each_cut(Speaks::PolledA2a).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_goes_on_live_and_is_steered() {
    check_live(Speaks::PlainA2a).await;
    for speaks in [Speaks::A2a, Speaks::PlainA2a, Speaks::PolledA2a] {
        check_cancel(speaks).await;
        check_asks_again(speaks).await;
    }
}
