#![doc = include_str!("../README.md")]
//!
//! [`Server::router`] returns the routes, for an application that nests them.
//!
//! [`openapi`](mainstem_api::openapi) describes the endpoints; the document is checked in as
//! `docs/schema/openapi.json`.
//!
//! Errors are `application/problem+json` ([RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)) with
//! a stable `code`. A request for something of another tenant is answered with `404`, as if it did
//! not exist.

mod agents;
mod app;
mod body;
mod caller;
mod capacity;
mod catalog;
mod connection;
mod data;
mod encoded;
mod events;
mod feed;
mod health;
mod hosts;
mod idempotency;
mod jobs;
mod large;
mod limits;
mod links;
mod listen;
mod live;
mod login;
mod metrics;
mod observe;
mod outage;
mod packed;
#[cfg(feature = "page")]
mod page;
mod prefix;
mod problem;
mod protocols;
mod prune;
mod queue;
mod readers;
mod relay;
mod routes;
mod runs;
mod runtime;
mod server;
mod sessions;
mod take_over;
mod tasks;
mod tenant_semaphores;
mod tokens;

pub use hosts::Hosts;
pub use limits::{Bound, bounds};
#[cfg(feature = "page")]
pub use page::PageDocument;
pub use protocols::{Protocol, UnknownProtocol};
pub use runtime::runtime;
pub use server::{Builder, Server, ServerError};
pub use tokens::{TokenError, Tokens};

pub use mainstem::event::OnLost;
