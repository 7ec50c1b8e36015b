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
//! [`openapi`](mainstem_api::openapi) describes the endpoints; the document is checked in as `docs/schema/openapi.json`.
//!
//! Errors are `application/problem+json` ([RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)) with a stable `code`. Whatever is
//! another tenant's is `404`, as if there were no such thing.

mod agents;
mod app;
mod body;
mod caller;
mod capacity;
mod catalog;
mod connection;
mod conversation;
mod encoded;
mod events;
mod feed;
mod health;
mod hosts;
mod large;
mod limits;
mod listen;
mod live;
mod login;
mod metrics;
mod observe;
mod once;
mod prefix;
mod problem;
mod routes;
mod runs;
mod runtime;
mod server;
mod sessions;
mod shares;
mod tasks;
mod tokens;
mod turns;

pub use hosts::Hosts;
pub use limits::{Bound, bounds};
pub use runtime::runtime;
pub use server::{Builder, Server, ServerError};
pub use tokens::{TokenError, Tokens};
