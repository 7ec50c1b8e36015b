#![doc = include_str!("../README.md")]
//!
//! | item | is |
//! |---|---|
//! | [`Endpoint`] | a model behind an API, as a value: the type of every provider |
//! | [`Api`] | what a provider says about its vendor's API: addresses, headers, variables, requests, settings |
//! | [`Decode`] | what an answer means: a payload in, deltas out |
//! | [`Dialect`] | in what a server differs from its API, learned from its [`Complaint`]s |
//! | [`Fields`], [`Arguments`] | what bodies of requests are made of |
//! | [`Server`] | where the model is and how one gets in; the one place that shows, hides and redacts |
//! | [`HttpClient`] | the seam to the HTTP stack; no other crate's interface shows which it is |
//!
//! A provider implements [`Api`], [`Decode`] and, if servers differ, [`Dialect`];
//! `Endpoint<ItsApi>` is then a [`Model`](mainstem_model::Model).

mod address;
mod answer;
mod api;
mod arguments;
mod complaint;
mod endpoint;
mod error;
mod exchange;
mod fields;
mod retry_after;
mod server;
mod transport;

pub use address::{extend, parse};
pub use api::{Api, Dialect, Form, Variables};
pub use arguments::Arguments;
pub use complaint::Complaint;
pub use endpoint::Endpoint;
pub use error::ConfigError;
pub(crate) use exchange::Exchange;
pub use exchange::{Decode, Deltas};
pub use fields::Fields;
pub use mainstem_outbound::client;
pub use reqwest::{Client, RequestBuilder, Response, Url};
pub(crate) use retry_after::retry_after;
pub use secrecy::SecretString;
pub use server::{Auth, Server};
pub use transport::HttpClient;
