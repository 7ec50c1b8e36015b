//! The parts of a content: [Part](https://ai.google.dev/api/caching#Part).

use std::borrow::Cow;

use mainstem_http::Arguments;
use mainstem_message::{DataSource, ToolCall};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::opaque::Stored;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part<'a> {
    #[serde(flatten)]
    pub(super) data: Payload<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought_signature: Option<&'a str>,
}

impl<'a> Part<'a> {
    pub(super) fn new(data: Payload<'a>) -> Self {
        Self { data, thought: false, thought_signature: None }
    }

    pub(super) fn text(text: &'a str) -> Self {
        Self::new(Payload::Text(text))
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Payload<'a> {
    Text(&'a str),
    InlineData(Blob<'a>),
    FileData(File<'a>),
    FunctionCall(Call<'a>),
    FunctionResponse(Response<'a>),
    /// About an action of the service itself, as it came.
    #[serde(untagged)]
    OfService(Map<String, Value>),
}

impl<'a> Payload<'a> {
    /// Creates data of any type: the service decides which ones a model reads.
    pub(super) fn of(media_type: &'a str, source: &'a DataSource) -> Result<Self, &'static str> {
        match source {
            DataSource::Base64(data) => Ok(Self::InlineData(Blob { mime_type: media_type, data })),
            DataSource::Url(file_uri) => Ok(Self::FileData(File { mime_type: media_type, file_uri })),
            _ => Err("data from such a source"),
        }
    }

    /// Returns `true` if a function's response may hold it: [inline, of these
    /// types](https://ai.google.dev/gemini-api/docs/function-calling#multimodal).
    pub(super) fn fits_a_response(&self) -> bool {
        let types = ["image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"];
        matches!(self, Self::InlineData(blob) if types.contains(&blob.mime_type))
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Blob<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct File<'a> {
    mime_type: &'a str,
    file_uri: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    args: Arguments<'a>,
}

impl<'a> Call<'a> {
    pub(super) fn new(call: &'a ToolCall, stored: &Stored<'a>) -> Self {
        Self { id: stored.id, name: &call.name, args: Arguments::of(&call.arguments) }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) response: Outcome<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<Payload<'a>>,
}

/// The two keys with a meaning in the API.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Outcome<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}
