//! What went wrong, as RFC 9457 has it.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

/// A problem as it is described to others.
#[derive(JsonSchema)]
#[schemars(rename = "Problem")]
#[expect(dead_code, reason = "its schema is what is wanted")]
pub(crate) struct Described {
    r#type: String,
    title: String,
    status: u16,
    /// For people.
    detail: String,
    /// For programs; stable.
    code: String,
}

/// An answer that is an error. The code is stable; the detail is for people.
#[derive(Debug)]
pub(crate) struct Problem(Box<Said>);

#[derive(Debug)]
struct Said {
    status: StatusCode,
    code: &'static str,
    detail: String,
    more: Map<String, Value>,
    headers: Vec<(header::HeaderName, HeaderValue)>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self(Box::new(Said { status, code, detail: detail.into(), more: Map::new(), headers: Vec::new() }))
    }

    /// The same for what is not there and for what is another tenant's.
    pub(crate) fn not_found(what: &str, id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("there is no {what} {id:?}"))
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.0.status == StatusCode::NOT_FOUND
    }

    /// One more member of the object.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.more.insert(name.to_owned(), value.into());
        self
    }

    /// Adds the time after which the client may try again.
    pub(crate) fn retry_after(self, seconds: u64) -> Self {
        let mut problem = self.with("retry_after_ms", seconds * 1000);
        problem.0.headers.push((header::RETRY_AFTER, seconds.into()));
        problem
    }

    /// Says how one gets in.
    pub(crate) fn challenge(mut self) -> Self {
        self.0
            .headers
            .push((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"mainstem\"")));
        self
    }
}

impl Problem {
    /// The body of the answer.
    pub(crate) fn json(&self) -> Value {
        let Said { status, code, detail, more, .. } = &*self.0;
        let mut body = json!({
            "type": format!("/problems/{}", code.replace('_', "-")),
            "title": status.canonical_reason().unwrap_or("Error"),
            "status": status.as_u16(),
            "detail": detail,
            "code": code,
        });
        if let Value::Object(fields) = &mut body {
            fields.extend(more.clone());
        }
        body
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = self.json().to_string();
        let media_type = [(header::CONTENT_TYPE, "application/problem+json")];
        let mut response = (self.0.status, media_type, body).into_response();
        response.headers_mut().extend(self.0.headers);
        response
    }
}
