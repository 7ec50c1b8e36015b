//! Why a request is refused, as a response.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use mainstem::message::IdError;
use mainstem_api::{Code, Error, Problem as Body};
use serde_json::{Value, json};

use crate::relay;

/// A response that is an error ([RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)).
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    body: Box<Body>,
    is_left_to_others: bool,
}

/// The member that says after how many milliseconds the client may try again.
const RETRY_AFTER: &str = "retry_after_ms";

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Body::new(code, detail).into()
    }

    /// A body has a value that does not fit, at a JSON pointer.
    pub(crate) fn misfit(pointer: &str, why: &str) -> Self {
        let detail = format!("the body does not fit, at {pointer:?}: {why}");
        Self::new(Code::BadBody, detail).with("errors", json!([{ "pointer": pointer, "detail": why }]))
    }

    /// The same for what does not exist and for what belongs to another tenant.
    pub(crate) fn not_found(kind: &str, id: &str) -> Self {
        Body::not_found(kind, id).into()
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.body.status == StatusCode::NOT_FOUND
    }

    /// Adds a member.
    pub(crate) fn with(self, name: &str, value: impl Into<Value>) -> Self {
        Self { body: Box::new(self.body.with_member(name, value)), ..self }
    }

    /// Adds the time after which the client may try again.
    pub(crate) fn retry_after(self, seconds: u64) -> Self {
        self.with(RETRY_AFTER, seconds * 1000)
    }

    /// Says that nothing was done, and that another node can do it, because this one drains.
    pub(crate) fn left_to_others(self) -> Self {
        Self { is_left_to_others: true, ..self }
    }

    pub(crate) fn is_left_to_others(&self) -> bool {
        self.is_left_to_others
    }

    /// Puts the places that it names below a place.
    pub(crate) fn below(mut self, place: &str) -> Self {
        let errors = self.body.more.get_mut("errors").and_then(Value::as_array_mut);
        for pointer in errors.into_iter().flatten().filter_map(|error| error.get_mut("pointer")) {
            *pointer = format!("{place}{}", pointer.as_str().unwrap_or_default()).into();
        }
        self
    }

    /// Returns the refusal as an error of the API.
    #[cfg(feature = "mcp")]
    pub(crate) fn into_error(self) -> Error {
        Error::from(*self.body)
    }

    /// What it says.
    pub(crate) fn body(&self) -> &Body {
        &self.body
    }

    /// The body of the response.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(&self.body).unwrap_or_default()
    }

    /// Returns its body as a value.
    pub(crate) fn value(&self) -> Value {
        serde_json::to_value(&self.body).unwrap_or_default()
    }

    /// `Retry-After`, in seconds.
    fn delay(&self) -> Option<HeaderValue> {
        Some((self.body.more.get(RETRY_AFTER)?.as_u64()? / 1000).into())
    }
}

impl From<Body> for Problem {
    fn from(body: Body) -> Self {
        Self { body: Box::new(body), is_left_to_others: false }
    }
}

/// A local session's error is a refusal.
impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let problem = error.problem().cloned();
        problem.unwrap_or_else(|| Body::new(Code::JournalUnavailable, error.to_string())).into()
    }
}

impl From<IdError> for Problem {
    fn from(error: IdError) -> Self {
        Body::from(error).into()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.body.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let media_type = [(header::CONTENT_TYPE, "application/problem+json")];
        let mut response = (status, media_type, self.json()).into_response();
        let headers = response.headers_mut();
        headers.extend(self.delay().map(|delay| (header::RETRY_AFTER, delay)));
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer realm=\"mainstem\"");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        response.extensions_mut().extend(relay::marks(&self));
        // Protocols of others answer in their own forms.
        response.extensions_mut().insert(self);
        response
    }
}
