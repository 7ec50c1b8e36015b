//! A harness over HTTP: who may ask begins runs, follows what every agent does, steers, and answers when a person is asked.
//!
//! ```no_run
//! # async fn serve(harness: mainstem::Harness) -> Result<(), Box<dyn std::error::Error>> {
//! use mainstem_server::{Server, Tokens};
//! use tokio_util::sync::CancellationToken;
//!
//! let (token, tokens) = Tokens::generated();
//! let server = Server::new(harness).tokens(tokens).build()?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:7878").await?;
//! println!("Authorization: Bearer {token}");
//! server.serve(listener, CancellationToken::new()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! An application of one's own takes [`Server::router`] and nests it.
//!
//! | path, below `/v1` | is |
//! |---|---|
//! | `POST /sessions/{id}/runs` | a run: its events as they come, its reply, or where to look for both |
//! | `GET /sessions`, `GET`, `DELETE /sessions/{id}`, `GET /sessions/{id}/runs`, `GET /runs/{id}` | what there is |
//! | `GET /sessions/{id}/events` | the events from any of them on, then live |
//! | `GET /sessions/{id}/fleet` | every agent, as it is now |
//! | `POST /runs/{id}/cancel`, `POST /sessions/{id}/agents/{key}/cancel` | stops |
//! | `POST /sessions/{id}/agents/{key}/messages` | says something to a child |
//! | `POST /sessions/{id}/confirmations/{id}` | answers for a person |
//! | `GET /tasks`, `GET /tasks/{id}`, `…/wait`, `POST …/cancel` | background tasks |
//! | `GET /agents`, `/tools`, and above `/v1`: `/healthz`, `/readyz` | what it is |
//!
//! Errors are `application/problem+json` ([RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)) with a stable `code`. Whatever is
//! another tenant's is `404`, as if there were no such thing.

mod agents;
mod app;
mod body;
mod caller;
mod catalog;
mod events;
mod feed;
mod hosts;
mod problem;
mod runs;
mod server;
mod sessions;
mod tasks;
mod tokens;

pub use hosts::Hosts;
pub use server::{Builder, Server, ServerError};
pub use tokens::{TokenError, Tokens};
