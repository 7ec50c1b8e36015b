#![doc = include_str!("../README.md")]
//!
//! An application of one's own takes [`Server::router`] and nests it.
//!
//! [`openapi`](mainstem_api::openapi) describes the endpoints; the document is checked in as
//! `docs/schema/openapi.json`.
//!
//! Errors are `application/problem+json` ([RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)) with
//! a stable `code`. Whatever is another tenant's is `404`, as if there were no such thing.

mod agents;
mod app;
mod body;
mod caller;
mod capacity;
mod catalog;
mod connection;
mod encoded;
mod events;
mod feed;
mod health;
mod hosts;
mod large;
mod limits;
mod listen;
mod login;
mod metrics;
mod observe;
mod once;
mod prefix;
mod problem;
mod readers;
mod routes;
mod runs;
mod runtime;
mod server;
mod sessions;
mod tasks;
mod tokens;
mod turns;

pub use hosts::Hosts;
pub use limits::{Bound, bounds};
pub use runtime::runtime;
pub use server::{Builder, Server, ServerError};
pub use tokens::{TokenError, Tokens};
