//! An axum application of one's own with agents in it: a route that streams a run as server-sent
//! events, and beside it all of `mainstem serve` with a page that follows it by the browser's
//! `EventSource`.
//!
//! `cargo run -p mainstem-server --example embed`, then open the address that it prints; or
//! `curl -N 'http://127.0.0.1:7979/ask?q=Compare%20Paris%20and%20Rome'`

#[path = "../../mainstem/examples/shared/fleet.rs"]
mod fleet;

use std::{collections::BTreeMap, convert::Infallible, io::Write as _};

use axum::{
    Router,
    body::Body,
    extract::{Query, State},
    http::{StatusCode, header},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use futures_util::StreamExt;
use mainstem::{Harness, encode::EncodeExt};
use mainstem_server::Server;
use tokio::net::TcpListener;

/// The reader of the response polls the run; a reader that leaves drops it, and all its agents with
/// it.
async fn ask(State(harness): State<Harness>, Query(query): Query<BTreeMap<String, String>>) -> Response {
    let Some(question) = query.get("q") else {
        return (StatusCode::BAD_REQUEST, "say what to do: /ask?q=…\n").into_response();
    };
    let frames = harness.stream_events(question.as_str()).into_sse().map(Ok::<_, Infallible>);
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(frames)).into_response()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let harness = fleet::fleet()?;
    // Without tokens every caller on loopback is accepted; an application with its own
    // authentication needs none either.
    let server = Server::new(harness.clone()).build()?;
    let app = Router::new()
        .route("/", get(async || Html(include_str!("page.html"))))
        .route("/ask", get(ask))
        .with_state(harness)
        .fallback_service(server.router());
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7979".to_owned());
    let listener = TcpListener::bind(address).await?;
    writeln!(std::io::stdout(), "http://{}", listener.local_addr()?)?;
    axum::serve(listener, app).await?;
    Ok(())
}
