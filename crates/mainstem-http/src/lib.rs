//! What providers of models over HTTP have in common, so that each is left with what its vendor's API says and means.
//!
//! | item | is |
//! |---|---|
//! | [`Server`] | where the model is and how one gets in; the one place that shows, hides and redacts |
//! | [`Http`] | the seam to the HTTP stack: one request, and what can go wrong on the way |
//! | [`ask`], [`Refusal`], [`Complaint`] | a request that was accepted, or what the server says against it |
//! | [`Answer`], [`Exchange`], [`Decode`] | the answer, as a stream of deltas through the vendor's decoder |
//!
//! A provider is a [`Decode`], a function from a request to a body, and an [`Exchange`] of the two.

mod address;
mod answer;
mod complaint;
mod error;
mod exchange;
mod retry_after;
mod server;
mod transport;
mod vars;

pub use address::{extend, parse};
pub use answer::{Answer, Api, Form, Payloads, Refusal, ask, begin};
pub use complaint::Complaint;
pub use error::ConfigError;
pub use exchange::{Decode, Deltas, Exchange};
pub use mainstem_outbound::client;
pub use reqwest::{Client, RequestBuilder, Response, Url};
pub use retry_after::retry_after;
pub use secrecy::SecretString;
pub use server::{Auth, Server};
pub use transport::Http;
pub use vars::trimmed;
