#![doc = include_str!("../README.md")]
//!
//! * [`Endpoint`]: a model behind an API, as a value: the type of every provider
//! * [`Api`]: a vendor's API: paths, requests, settings
//! * [`Service`]: a service that offers an API: address, headers, variables
//! * [`Decode`]: the decoder of responses: a payload in, deltas out
//! * [`Resumption`]: where a response that outlives its connection is read on; [`cancels_sent`]
//! * [`Template`], [`Output`]: what the payloads of a response have in common, parsed once
//! * [`Dialect`]: deviations of a server from its API, learned from its [`ServerError`]s
//! * [`Fields`], [`Arguments`]: parts of the bodies of requests
//! * [`Server`]: the address of a model and its credentials, which messages never show
//! * [`HttpClient`]: the seam to the HTTP stack
//!
//! A provider implements [`Api`], [`Decode`] and, if servers differ, [`Dialect`];
//! `Endpoint<ItsApi>` is then a [`Model`](mainstem_model::Model).

mod address;
mod api;
mod arguments;
mod endpoint;
mod error;
mod exchange;
mod fields;
mod model_list;
mod rate_limits;
mod response;
mod resumption;
mod server;
mod server_error;
mod service;
mod template;
mod transport;

pub use address::{extend, parse};
pub use api::{Api, Dialect, Form};
pub use arguments::Arguments;
pub use endpoint::Endpoint;
pub use error::ConfigError;
pub(crate) use exchange::Exchange;
pub use exchange::{Decode, Deltas};
pub use fields::Fields;
pub use mainstem_outbound::client;
pub use model_list::{ListedModel, ModelPage};
pub use reqwest::{Client, RequestBuilder, Response, Url};
pub use resumption::{Resumption, cancels_sent};
pub use secrecy::SecretString;
pub use server::{Auth, Server};
pub use server_error::ServerError;
pub use service::{Service, Variables};
pub use template::{Output, Template, Text};
pub use transport::HttpClient;
