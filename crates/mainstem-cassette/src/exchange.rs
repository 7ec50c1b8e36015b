//! The content of a tape: a request, and its response as it arrived.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A line of a tape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exchange {
    pub(super) request: TapeRequest,
    pub(super) response: TapeResponse,
}

/// A request without secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TapeRequest {
    pub(super) method: String,
    /// With the query.
    pub(super) path: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<Body>,
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Body {
    Json(Value),
    Text(String),
    /// Bytes that are not text.
    Base64(String),
}

/// A response, chunk by chunk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TapeResponse {
    /// `None` if not even the head came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) chunks: Vec<Chunk>,
    #[serde(default, skip_serializing_if = "End::is_complete")]
    pub(super) end: End,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum End {
    #[default]
    Complete,
    /// The vendor's connection failed.
    Cut,
    /// The client left before the end.
    Left,
}

impl End {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
    fn is_complete(&self) -> bool {
        *self == Self::Complete
    }
}

/// A piece of a body as it arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub(super) struct Chunk {
    /// Milliseconds since the previous chunk, or since the request.
    pub(super) ms: u64,
    pub(super) bytes: Vec<u8>,
}

/// A chunk on the tape: text if it is valid UTF-8, which a boundary within a character prevents.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default, skip_serializing_if = "is_none")]
    ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_none(ms: &u64) -> bool {
    *ms == 0
}

impl From<Chunk> for Written {
    fn from(Chunk { ms, bytes }: Chunk) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self { ms, text: Some(text), base64: None },
            Err(error) => Self { ms, text: None, base64: Some(BASE64_STANDARD.encode(error.as_bytes())) },
        }
    }
}

impl TryFrom<Written> for Chunk {
    type Error = String;

    fn try_from(Written { ms, text, base64 }: Written) -> Result<Self, String> {
        let bytes = match (text, base64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(base64)) => {
                BASE64_STANDARD.decode(base64).map_err(|error| format!("invalid base64: {error}"))?
            }
            _ => return Err("a chunk has either `text` or `base64`".to_owned()),
        };
        Ok(Self { ms, bytes })
    }
}

impl Body {
    /// Returns the body of these bytes; `None` if they are empty.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return None;
        }
        Some(match (serde_json::from_slice(bytes), std::str::from_utf8(bytes)) {
            (Ok(value), _) => Self::Json(value),
            (_, Ok(text)) => Self::Text(text.to_owned()),
            _ => Self::Base64(BASE64_STANDARD.encode(bytes)),
        })
    }

    /// Returns the bytes behind an encoding.
    pub(super) fn hidden(&self) -> Vec<u8> {
        match self {
            Self::Base64(text) => BASE64_STANDARD.decode(text).unwrap_or_default(),
            Self::Json(_) | Self::Text(_) => Vec::new(),
        }
    }
}

impl TapeResponse {
    /// Returns all chunks joined.
    pub(super) fn body(&self) -> Vec<u8> {
        self.chunks.iter().flat_map(|chunk| &chunk.bytes).copied().collect()
    }
}

impl TapeRequest {
    /// Returns method and path.
    pub(super) fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub(super) fn is_json(&self) -> bool {
        matches!(self.body, Some(Body::Json(_)))
    }
}
