//! The description of an endpoint, from which its part of the OpenAPI document comes.

#![cfg_attr(not(feature = "openapi"), expect(dead_code, reason = "what only the document has"))]

#[cfg(feature = "openapi")]
mod describe;

use schemars::JsonSchema;
use serde_json::Value;

#[cfg(feature = "openapi")]
use self::describe::{SchemaOf, root_of, schema_of};
use crate::StreamForm;

/// Programs without the document have no code for schemas, which is not small.
#[cfg(not(feature = "openapi"))]
#[derive(Clone, Copy, Debug)]
struct SchemaOf;

#[cfg(not(feature = "openapi"))]
#[expect(clippy::extra_unused_type_parameters, reason = "the document has them")]
fn schema_of<T: JsonSchema>() -> SchemaOf {
    SchemaOf
}

#[cfg(not(feature = "openapi"))]
#[expect(clippy::extra_unused_type_parameters, reason = "the document has them")]
fn root_of<T: JsonSchema>() -> SchemaOf {
    SchemaOf
}

/// What an endpoint takes and returns.
#[derive(Clone, Debug)]
pub struct Operation {
    method: Method,
    path: &'static str,
    summary: &'static str,
    query: Option<SchemaOf>,
    headers: Vec<(&'static str, &'static str, Value)>,
    body: Option<Content>,
    responses: Vec<Response>,
    is_open: bool,
}

/// An HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the methods of the API; a server matches them all")]
pub enum Method {
    /// `GET`
    Get,
    /// `POST`
    Post,
    /// `DELETE`
    Delete,
}

/// The content of a body.
#[derive(Clone, Copy, Debug)]
enum Content {
    Json(SchemaOf),
    /// Any bytes.
    Bytes,
}

/// The media type of any bytes.
const BYTES: &str = "application/octet-stream";

#[derive(Clone, Debug)]
struct Response {
    status: u16,
    description: &'static str,
    content: Vec<(&'static str, Option<SchemaOf>)>,
}

impl Operation {
    /// Returns the method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Returns the path, with the names of its parameters in braces.
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// Returns `true` if it takes parameters after the `?`.
    pub fn has_query(&self) -> bool {
        self.query.is_some()
    }

    /// Returns `true` if it takes a body.
    pub fn has_body(&self) -> bool {
        self.body.is_some()
    }

    /// Returns `true` if no token is required.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    pub(crate) fn get(path: &'static str, summary: &'static str) -> Self {
        Self::new(Method::Get, path, summary)
    }

    pub(crate) fn post(path: &'static str, summary: &'static str) -> Self {
        Self::new(Method::Post, path, summary)
    }

    pub(crate) fn delete(path: &'static str, summary: &'static str) -> Self {
        Self::new(Method::Delete, path, summary)
    }

    fn new(method: Method, path: &'static str, summary: &'static str) -> Self {
        let (query, headers, body, responses, is_open) = Default::default();
        Self { method, path, summary, query, headers, body, responses, is_open }
    }

    /// It takes these parameters after the `?`.
    pub(crate) fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(root_of::<T>());
        self
    }

    /// It reads a header.
    pub(crate) fn header(mut self, name: &'static str, description: &'static str, schema: Value) -> Self {
        self.headers.push((name, description, schema));
        self
    }

    /// It takes a body of JSON.
    pub(crate) fn body<T: JsonSchema>(mut self) -> Self {
        self.body = Some(Content::Json(schema_of::<T>()));
        self
    }

    /// It takes any bytes as its body.
    pub(crate) fn body_of_bytes(mut self) -> Self {
        self.body = Some(Content::Bytes);
        self
    }

    /// It may return any bytes.
    pub(crate) fn bytes(self, description: &'static str) -> Self {
        self.text(BYTES, description)
    }

    /// It may return JSON.
    pub(crate) fn json<T: JsonSchema>(self, status: u16, description: &'static str) -> Self {
        self.response(status, description, vec![("application/json", Some(schema_of::<T>()))])
    }

    /// It may return events.
    pub(crate) fn events(self, description: &'static str) -> Self {
        let forms = StreamForm::ALL.iter().map(|form| (form.media_type(), None));
        self.response(200, description, forms.collect())
    }

    /// It may return a stream of values of this type.
    pub(crate) fn stream<T: JsonSchema>(self, description: &'static str) -> Self {
        let schema = Some(schema_of::<T>());
        let forms = StreamForm::ALL.iter().map(|form| (form.media_type(), schema));
        self.response(200, description, forms.collect())
    }

    /// It may return text of this media type.
    pub(crate) fn text(self, media_type: &'static str, description: &'static str) -> Self {
        self.response(200, description, vec![(media_type, None)])
    }

    /// It may return an empty response.
    pub(crate) fn empty(self, status: u16, description: &'static str) -> Self {
        self.response(status, description, Vec::new())
    }

    fn response(
        mut self,
        status: u16,
        description: &'static str,
        content: Vec<(&'static str, Option<SchemaOf>)>,
    ) -> Self {
        match self.responses.iter_mut().find(|response| response.status == status) {
            Some(response) => response.content.extend(content),
            None => self.responses.push(Response { status, description, content }),
        }
        self
    }

    /// It requires no token.
    pub(crate) fn open(mut self) -> Self {
        self.is_open = true;
        self
    }
}
