//! The contract of providers over HTTP: a suite that each [`Api`] passes.
//!
//! A provider has a [`Sample`] of its vendor's payloads, and
//! [`provider_contract!`](crate::provider_contract) makes a test of each promise:
//!
//! ```ignore
//! mainstem_testing::provider_contract!(mainstem_ollama::Chat, super::sample());
//! ```
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "whatever goes wrong here fails the test that it runs in"
)]

mod bytes;
mod failure;
mod request;
mod settings;
mod stream;

use std::sync::Arc;

use futures_util::StreamExt;
use mainstem_http::{Api, Endpoint, Form};
use mainstem_message::{ContentBlock, DataSource, Message, Opaque};
use mainstem_model::{Model, ModelDelta, ModelError, ModelRequest, ModelStream};

pub use self::{bytes::*, failure::*, request::*, settings::*, stream::*};
use crate::raw::{Server, Step, events, lines, named_events};

/// Samples of a vendor's API.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "written by tests")]
pub struct Sample {
    /// A payload with the text `Hi`.
    pub text: &'static str,
    /// The payloads that end a response.
    pub end: &'static [&'static str],
    /// The payloads that end a response of 3 input tokens and 1 output token.
    pub counted_end: &'static [&'static str],
    /// The beginning of a call, and its deltas in short.
    pub call: (&'static [&'static str], &'static str),
    /// A response of one piece with the text `Hi`, and its deltas in short.
    pub whole: (&'static str, &'static str),
    /// The error for `{}` as a response of one piece.
    pub missing: &'static str,
    /// The vendor's error payload, with `$` for the message.
    pub error: &'static str,
    /// A message that the API has no form for.
    pub without_form: fn() -> Message,
    /// Responses as they were recorded, or as the vendor documents them.
    pub recorded: &'static [&'static [u8]],
    /// Texts in the payload that completes a recorded response; one without any of these fails.
    pub endings: &'static [&'static str],
    /// Fragments of the API's payloads, so that random texts get past the first byte; the suite
    /// adds those of any JSON.
    pub pieces: &'static [&'static str],
}

impl Sample {
    fn error(&self, sentence: &str) -> String {
        self.error.replace('$', sentence)
    }

    /// Returns the payloads of a response with the text `Hi`.
    fn answer(&self) -> Vec<&'static str> {
        [&[self.text], self.end].concat()
    }
}

/// Returns a message with a video, for which few APIs have a form.
pub fn video() -> Message {
    let mut message = Message::user("Look");
    message.content.push(ContentBlock::Data {
        media_type: "video/mp4".into(),
        source: DataSource::Url("https://h/v.mp4".into()),
        opaque: Opaque::new(),
    });
    message
}

/// The key of every request.
const KEY: &str = "key-123456789";

/// Returns a model at this server.
pub fn model<A: Api>(server: &Server) -> Endpoint<A> {
    Endpoint::new("m").with_base_url(&server.url()).unwrap().with_api_key(KEY)
}

/// Returns a request with the text `Hello?`.
pub fn question() -> ModelRequest {
    ModelRequest { messages: vec![Arc::new(Message::user("Hello?"))], ..ModelRequest::default() }
}

/// Returns a response that streams these payloads in the form of the API; an event has its `type`
/// as name, if it has one.
pub fn streamed<A: Api>(payloads: &[&str]) -> Vec<Step> {
    match A::FORM {
        Form::Lines => lines(payloads),
        Form::Events if payloads.iter().any(|payload| payload.starts_with("{\"type\":")) => {
            named_events(payloads)
        }
        Form::Events => events(payloads),
    }
}

/// Returns the deltas in short: `Hi`, `+f` for a call, its arguments, `.` for its end, `;` for the
/// end of a block, `(reason)` for an answer of one piece, `|stop`, `!kind: message`.
pub async fn answer(stream: ModelStream) -> String {
    let shown: Vec<_> = stream.map(show).collect().await;
    shown.join(" ")
}

fn show(delta: Result<ModelDelta, ModelError>) -> String {
    match delta {
        Ok(ModelDelta::Text(text)) => text,
        Ok(ModelDelta::CallStart { name, .. }) => format!("+{name}"),
        Ok(ModelDelta::CallArguments { delta, .. }) => delta,
        Ok(ModelDelta::CallEnd { .. }) => ".".to_owned(),
        Ok(ModelDelta::BlockEnd { .. }) => ";".to_owned(),
        Ok(ModelDelta::NotStreaming { reason }) => format!("({reason})"),
        Ok(ModelDelta::Retry { attempt, wait, .. }) => format!("(again after {attempt}, {wait:?})"),
        Ok(ModelDelta::Stop(reason)) => format!("|{reason}"),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("!{}: {error}", error.kind().code()),
    }
}

/// Checks the deltas of one call when the server plays this script; `HOST` stands for the server.
pub async fn check<A: Api>(script: Vec<Step>, expected: &str) {
    let server = Server::start(vec![script]).await;
    let answer = answer(model::<A>(&server).stream(question())).await;
    assert!(!answer.contains(KEY), "{answer}");
    assert_eq!(answer.replace(&server.host(), "HOST"), expected);
}

/// Returns the error of one call.
pub async fn failure<A: Api>(script: Vec<Step>) -> ModelError {
    let server = Server::start(vec![script]).await;
    model::<A>(&server).stream(question()).next().await.unwrap().unwrap_err()
}

/// Defines a test for each promise of the contract, for an API and a
/// [`Sample`](crate::provider::Sample) of it.
#[macro_export]
macro_rules! provider_contract {
    ($api:ty, $sample:expr) => {
        $crate::provider_contract! { @async $api, $sample,
            a_delta_arrives_before_the_server_goes_on
            dropping_a_call_that_waits_closes_the_connection
            nothing_is_sent_before_the_first_poll
            a_client_of_ones_own_is_used
            one_connection_serves_one_call_after_another
            a_connection_that_was_closed_meanwhile_is_replaced
            a_complete_answer_needs_no_proper_end
            events_may_be_torn_apart
            the_last_delta_is_the_reason_to_stop
            an_answer_of_one_piece_is_reported_as_such
            a_conversation_the_api_has_no_form_for_is_not_sent
            a_cut_is_an_error
            a_refusal_says_how_long_to_wait
            refusals_are_read_whatever_they_are
            an_unreachable_server_is_named_with_advice
            garbage_is_quoted
            the_key_is_nowhere_to_be_seen
        }
        $crate::provider_contract! { @sync $api, $sample,
            a_slip_in_the_arguments_does_not_break_the_next_request
            the_environment_is_read
            a_model_shows_no_secrets_and_can_be_sent
            cuts_change_nothing
            pieces_of_any_size_mean_the_same
            what_payloads_have_in_common_means_the_same
            a_stream_that_breaks_off_is_never_taken_for_complete
            nothing_panics
        }
    };
    (@async $api:ty, $sample:expr, $($promise:ident)*) => {
        $(#[tokio::test] async fn $promise() { $crate::provider::$promise::<$api>($sample).await })*
    };
    (@sync $api:ty, $sample:expr, $($promise:ident)*) => {
        $(#[test] fn $promise() { $crate::provider::$promise::<$api>($sample) })*
    };
}
