//! Extractors of bodies, queries and paths, whose errors name the place.

use std::{fmt, sync::Arc, time::Duration};

use axum::{
    body::Bytes,
    extract::{FromRequest, FromRequestParts, Request, rejection::BytesRejection},
    http::{StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use mainstem::{policy::Share, schema::misread};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path as JsonPath, Segment};
use sha2::{Digest as _, Sha256};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

use crate::{app::App, caller::Identified, jobs::OfJob, problem::Problem, relay::Known};
use mainstem_api::{Code, MAX_DATA};

/// The most that a body may have, in bytes.
pub(crate) const MAX: usize = 1 << 20;

/// How many bodies of data are read at once, of all tenants; of each tenant it is one.
pub(crate) const DATA_AT_ONCE: usize = 8;

/// The size up to which any number of bodies may wait for their requests, in bytes.
pub(crate) const SMALL: usize = 16 << 10;

/// The most that a body may have before its caller is known, in bytes.
pub(crate) const MAX_UNKNOWN: usize = 4 << 10;

/// The most that a refusal repeats of a body, in characters.
const MAX_DETAIL: usize = 500;

/// How long a body may take to arrive.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the data of a message may take to arrive.
pub(crate) const DATA_TIMEOUT: Duration = Duration::from_secs(120);

/// A JSON body, and its digest.
pub(crate) struct Body<T>(pub(crate) T, pub(crate) Digest);

/// SHA-256 of the path and the bytes of the body, which tells a repeated request from another.
pub(crate) struct Digest([u8; 32]);

impl Digest {
    /// Returns the digest of a body that is sent to a path.
    pub(crate) fn of(path: &str, body: &[u8]) -> Self {
        let hash = Sha256::new().chain_update(path).chain_update([0]).chain_update(body);
        Self(hash.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Body<T> {
    type Rejection = Response;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Response> {
        let body = read_json(request, app).await?;
        // serde reads a list as an object, by the order of the keys.
        if body.bytes.trim_ascii_start().starts_with(b"[") {
            let detail = "the body does not fit: it has to be an object, not a list";
            return Err(Problem::new(Code::BadBody, detail).into_response());
        }
        let value = parse(&body.bytes).map_err(IntoResponse::into_response)?;
        let digest = Digest::of(body.parts.uri.path(), &body.bytes);
        Ok(Self(value, digest))
    }
}

/// Any JSON as a body.
pub(crate) struct JsonBody(pub(crate) Value);

impl FromRequest<Arc<App>> for JsonBody {
    type Rejection = Response;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Response> {
        let body = read_json(request, app).await?;
        parse(&body.bytes).map(Self).map_err(IntoResponse::into_response)
    }
}

/// The data of a message: a body that may be larger than others.
pub(crate) struct Data {
    pub(crate) bytes: Bytes,
    /// Released with the bytes.
    _permits: (Option<OwnedSemaphorePermit>, Option<OwnedSemaphorePermit>),
}

impl FromRequest<Arc<App>> for Data {
    type Rejection = Response;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Response> {
        if media_type(&request) != "application/octet-stream" {
            let detail = "the body has to be bytes, with Content-Type: application/octet-stream";
            return Err(Problem::new(Code::NotBytes, detail).into_response());
        }
        let tenant = request.extensions().get::<Identified>().map(|caller| caller.tenant.clone());
        let own = match &tenant {
            Some(tenant) => app.tenant_data_permits.acquire(tenant).await,
            None => None,
        };
        let common = app.data_permits.clone().acquire_owned().await.ok();
        let ReadBody { bytes, .. } = read_at_most(request, app, MAX_DATA, DATA_TIMEOUT).await?;
        if bytes.is_empty() {
            return Err(Problem::new(Code::BadBody, "the body is empty").into_response());
        }
        Ok(Self { bytes, _permits: (own, common) })
    }
}

async fn read_json(request: Request, app: &Arc<App>) -> Result<ReadBody, Response> {
    if !matches!(&*media_type(&request), "application/json" | "application/a2a+json") {
        let detail = "the body has to be JSON, with Content-Type: application/json";
        return Err(Problem::new(Code::NotJson, detail).into_response());
    }
    read(request, app).await
}

/// Returns the media type of a body, in lower case; empty without a `Content-Type`.
fn media_type(request: &Request) -> String {
    let value = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A request whose body is read.
pub(crate) struct ReadBody {
    pub(crate) parts: Parts,
    pub(crate) bytes: Bytes,
    /// The share of a large body. Released with the bytes, so that waiting requests count, too.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "held until the body is dropped"))]
    pub(crate) share: Option<Share>,
}

/// Reads a body within the limits of its caller.
///
/// # Errors
/// It is encoded, too large or too slow, or the caller sends too many at once.
pub(crate) async fn read(request: Request, app: &Arc<App>) -> Result<ReadBody, Response> {
    read_at_most(request, app, MAX, READ_TIMEOUT).await
}

/// Reads a body as [`read`] does, of at most so many bytes if its caller is known.
async fn read_at_most(
    request: Request,
    app: &Arc<App>,
    max: usize,
    max_time: Duration,
) -> Result<ReadBody, Response> {
    if let Some(encoding) = request.headers().get(header::CONTENT_ENCODING)
        && !encoding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        let detail = "the body has to be sent without a Content-Encoding";
        let problem = Problem::new(Code::EncodedBody, detail);
        return Err(problem.into_response());
    }
    // A body may be large and slow, so each tenant has a share. Bodies without a caller are
    // small.
    // Neither is taken by a request of this server's own jobs, which have a limit of their own:
    // callers who send without a pause would keep them from beginning.
    let is_of_job = request.extensions().get::<OfJob>().is_some();
    let caller = request.extensions().get::<Identified>().filter(|_| !is_of_job).cloned();
    let share = match &caller {
        Some(caller) => Some(app.body_shares.take(&caller.tenant).ok_or_else(crowded)?),
        None => None,
    };
    let max = if share.is_some() || is_of_job { max } else { MAX_UNKNOWN };
    if announced(&request).is_some_and(|length| length > max) {
        return Err(too_large(max).into_response());
    }
    let (parts, body) = request.into_parts();
    let request = Request::from_parts(parts.clone(), body);
    let bytes = timeout(max_time, Bytes::from_request(request, app)).await;
    // The share bounds the memory of requests that wait.
    let is_small = matches!(&bytes, Ok(Ok(bytes)) if bytes.len() <= SMALL);
    let share = share.filter(|_| !is_small);
    if let Some(Identified { tenant, permit }) = caller {
        permit.set(app.request_permits.acquire(&tenant).await);
    }
    let bytes = bytes.map_err(|_| late(max_time).into_response())?;
    let bytes = bytes.map_err(|error| unread(&error, max).into_response())?;
    if let Some(known) = parts.extensions.get::<Known>() {
        known.set_body(&bytes);
    }
    Ok(ReadBody { parts, bytes, share })
}

fn crowded() -> Response {
    let detail = "your share of the bodies that this server reads at once is in use";
    Problem::new(Code::TooManyBodies, detail).retry_after(1).into_response()
}

fn late(max_time: Duration) -> Problem {
    let detail = format!("the body did not arrive within {} s", max_time.as_secs());
    Problem::new(Code::BodyTooSlow, detail)
}

/// Returns the length that the request announces.
fn announced(request: &Request) -> Option<usize> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large(most: usize) -> Problem {
    let detail = format!("the body has more than {most} bytes");
    Problem::new(Code::BodyTooLarge, detail)
}

fn unread(error: &BytesRejection, most: usize) -> Problem {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_large(most),
        _ => Problem::new(Code::BodyUnreadable, error.body_text()),
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let (pointer, error) = (shortened(pointer(error.path())), error.into_inner());
        if error.is_data() {
            let why = shortened(misread(&error.to_string(), "key"));
            Problem::misfit(&pointer, &why)
        } else {
            Problem::new(Code::BadJson, format!("the body is not JSON: {error}"))
        }
    })?;
    json.end().map_err(|error| Problem::new(Code::BadJson, format!("the body is not JSON: {error}")))?;
    Ok(value)
}

/// Cuts a text that repeats the body.
fn shortened(text: String) -> String {
    match text.char_indices().nth(MAX_DETAIL) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Returns the place as a JSON pointer ([RFC 6901](https://www.rfc-editor.org/rfc/rfc6901)).
fn pointer(path: &JsonPath) -> String {
    let segment = |segment: &Segment| match segment {
        Segment::Seq { index } => index.to_string(),
        Segment::Map { key } => key.replace('~', "~0").replace('/', "~1"),
        Segment::Enum { variant } => variant.clone(),
        Segment::Unknown => "?".to_owned(),
    };
    path.iter().map(|part| format!("/{}", segment(part))).collect()
}

/// Parameters after the `?`.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let query = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        let refused = |error: axum::extract::rejection::QueryRejection| {
            Problem::new(Code::BadQuery, shortened(query_error(&error.body_text()))).into_response()
        };
        query.map(|query| Self(query.0)).map_err(refused)
    }
}

/// Says what is wrong with a query, and with which parameter.
fn query_error(message: &str) -> String {
    let message = message.strip_prefix("Failed to deserialize query string: ").unwrap_or(message);
    let named = message.split_once(": ").filter(|(name, _)| !name.contains(' '));
    let (name, why) = named.unwrap_or(("", message));
    let why = misread(why, "parameter");
    // It has the name already.
    if name.is_empty() || why.starts_with("unknown parameter") {
        why
    } else {
        format!("parameter `{name}`: {why}")
    }
}

/// Parameters in the path.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        let refused = |error: axum::extract::rejection::PathRejection| {
            Problem::new(Code::BadPath, error.body_text()).into_response()
        };
        path.map(|path| Self(path.0)).map_err(refused)
    }
}

#[cfg(test)]
mod tests {
    //! Errors of bodies, with their place.

    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_body_says_what_is_wrong_and_where() {
        #[track_caller]
        fn check(body: &str, expected: &str) {
            let problem = parse::<BTreeMap<String, Vec<u8>>>(body.as_bytes()).unwrap_err();
            let shown = format!("{problem:?}");
            assert!(shown.contains(expected), "{shown}");
        }
        check("{", "the body is not JSON: EOF while parsing an object at line 1 column 1");
        check("{} x", "the body is not JSON: trailing characters at line 1 column 4");
        check(r#"{"a": [1, 300]}"#, r#"at \"/a/1\": expected a whole number from 0 to 255, got 300""#);
        check(r#"{"a/b": "x"}"#, r#"at \"/a~1b\": expected a list, got \"x\"""#);
        let long = format!(r#"{{"{0}": "{0}"}}"#, "y".repeat(100_000));
        let problem = parse::<BTreeMap<String, Vec<u8>>>(long.as_bytes()).unwrap_err();
        assert!(format!("{problem:?}").len() < 6 * MAX_DETAIL, "{problem:?}");
    }
}
