//! Sends a request and begins to read its response.

use std::{
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_core::Stream;
use futures_util::{StreamExt, TryStreamExt};
use hyper::Response;
use mainstem_model::{ErrorKind, ModelError};
use mainstem_outbound::retry_after;
use mainstem_sse::{DEFAULT_LIMIT, SseError, SseStream};
use reqwest::{StatusCode, header::CONTENT_TYPE};
use tokio_util::{
    codec::{FramedRead, LinesCodec, LinesCodecError},
    io::StreamReader,
};

use crate::{
    Api, Form, HttpClient, Server, ServerError,
    rate_limits::{exhausted_for, rate_limits},
    transport::{Body, TransportError, failure},
};

/// How many bytes of an error response are read.
const REFUSAL_LIMIT: usize = 64 << 10;

/// The body of a successful response.
pub(crate) enum ResponseBody {
    /// A stream of payloads.
    Payloads(Payloads),
    /// In one piece, with the reason.
    Whole {
        /// The body.
        body: String,
        /// Why the server did not stream.
        reason: Arc<str>,
    },
}

/// The payloads for the decoder: the data of server-sent events, or lines of JSON.
pub(crate) struct Payloads {
    source: Source,
    /// The bytes of the source that were noted.
    noted: u64,
}

enum Source {
    Events(Box<SseStream<Body>>),
    Lines(Pin<Box<dyn Stream<Item = Result<String, LinesCodecError>> + Send>>),
}

/// An error response.
pub(crate) struct Refusal {
    /// The error in it.
    pub(crate) error: ServerError,
    pub(crate) status: StatusCode,
    retry_after: Option<Duration>,
}

impl Refusal {
    /// Returns the failure of the call.
    pub(crate) fn into_error(self, server: &Server) -> ModelError {
        let refusal = self.error.refusal(server, self.status);
        self.retry_after.into_iter().fold(refusal, ModelError::with_retry_after)
    }
}

/// Sends a body and waits for the head of the response.
///
/// # Errors
/// The outer one if no response came; the inner one if it is an error response.
pub(crate) async fn send(
    http: &HttpClient,
    server: &Server,
    body: Vec<u8>,
) -> Result<Result<Response<Body>, Refusal>, ModelError> {
    checked(http.post(server, body).await?).await
}

/// Asks for a document and waits for the head of the response.
///
/// # Errors
/// As for [`send`].
pub(crate) async fn get(
    http: &HttpClient,
    server: &Server,
    limit: Duration,
) -> Result<Result<Response<Body>, Refusal>, ModelError> {
    checked(http.get(server, "application/json", Some(limit)).await?).await
}

/// Asks for a stream of server-sent events; the inner error is the status of a refusal.
///
/// # Errors
/// As for [`send`].
pub(crate) async fn stream(
    http: &HttpClient,
    server: &Server,
) -> Result<Result<Payloads, StatusCode>, ModelError> {
    let sent = checked(http.get(server, Form::Events.media_type(), None).await?).await?;
    Ok(sent.map(Payloads::events).map_err(|refusal| refusal.status))
}

async fn checked(response: Response<Body>) -> Result<Result<Response<Body>, Refusal>, ModelError> {
    let status = response.status();
    if status.is_success() {
        return Ok(Ok(response));
    }
    let retry_after = retry_after(response.headers()).or_else(|| {
        let is_for_rate = status == StatusCode::TOO_MANY_REQUESTS;
        exhausted_for(&rate_limits(response.headers())).filter(|_| is_for_rate)
    });
    let error = ServerError::of(status.as_u16(), &beginning(response).await);
    Ok(Err(Refusal { error, status, retry_after }))
}

/// Reads a successful response by its content type; one without a content type is read as a stream.
///
/// `reason` is why the response comes in one piece, if that was requested.
///
/// # Errors
/// If the API has no response of this type.
pub(crate) async fn begin<A: Api>(
    server: &Server,
    response: Response<Body>,
    reason: Option<Arc<str>>,
) -> Result<ResponseBody, ModelError> {
    let named =
        response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = named.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match &*media_type {
        "" => Ok(ResponseBody::Payloads(Payloads::new(A::FORM, response))),
        named if named == A::FORM.media_type() => {
            Ok(ResponseBody::Payloads(Payloads::new(A::FORM, response)))
        }
        "application/json" => {
            let unasked =
                || format!("{} answered in one piece although asked to stream", server.host()).into();
            Ok(ResponseBody::Whole {
                body: whole(server, response).await?,
                reason: reason.unwrap_or_else(unasked),
            })
        }
        _ => {
            let (named, text) = (server.quote(&media_type), server.quote(&beginning(response).await));
            let what = format!(
                "answered with {named}, which is no {} (check the base URL): {text}",
                A::RESPONSE_NOUN
            );
            Err(server.error(ErrorKind::Protocol, &what))
        }
    }
}

impl Payloads {
    fn new(form: Form, response: Response<Body>) -> Self {
        match form {
            Form::Events => Self::events(response),
            Form::Lines => Self::lines(response),
        }
    }

    fn events(response: Response<Body>) -> Self {
        Self { source: Source::Events(Box::new(SseStream::new(response.into_body()))), noted: 0 }
    }

    fn lines(response: Response<Body>) -> Self {
        let bytes = StreamReader::new(response.into_body().map_err(io::Error::other));
        let lines = FramedRead::new(bytes, LinesCodec::new_with_max_length(DEFAULT_LIMIT));
        Self { source: Source::Lines(Box::pin(lines)), noted: 0 }
    }

    /// Returns `true` if bytes came since the last call: a comment keeps a connection alive.
    pub(crate) fn has_progress(&mut self) -> bool {
        let Source::Events(events) = &self.source else { return false };
        std::mem::replace(&mut self.noted, events.bytes_read()) < events.bytes_read()
    }

    /// Returns the next payload.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<String, Cut>>> {
        match &mut self.source {
            Source::Events(events) => {
                let event = events.poll_next_unpin(cx);
                if event.is_ready() {
                    self.noted = events.bytes_read();
                }
                event.map(|event| event.map(|event| event.map(|event| event.data).map_err(Cut::Events)))
            }
            Source::Lines(lines) => {
                lines.poll_next_unpin(cx).map(|line| line.map(|line| line.map_err(Cut::Lines)))
            }
        }
    }
}

/// Why the payloads ended early.
pub(crate) enum Cut {
    Events(SseError<TransportError>),
    Lines(LinesCodecError),
}

impl Cut {
    pub(crate) fn into_error(self, server: &Server) -> ModelError {
        let too_much =
            |error: &dyn fmt::Display| server.error(ErrorKind::Protocol, &format!("sent too much: {error}"));
        match self {
            Self::Events(SseError::Source(error)) => failure(server, error),
            Self::Events(error) => too_much(&error),
            Self::Lines(LinesCodecError::Io(error)) => match error.downcast::<TransportError>() {
                Ok(error) => failure(server, error),
                Err(error) => server.error(ErrorKind::Protocol, &format!("sent what is no text: {error}")),
            },
            Self::Lines(error) => too_much(&error),
        }
    }
}

/// Returns the body of a response, within a limit.
pub(crate) async fn whole(server: &Server, response: Response<Body>) -> Result<String, ModelError> {
    let (mut body, mut read) = (Vec::new(), response.into_body());
    while let Some(bytes) = read.try_next().await.map_err(|error| failure(server, error))? {
        body.extend_from_slice(&bytes);
        if body.len() > DEFAULT_LIMIT {
            return Err(
                server.error(ErrorKind::Protocol, &format!("answered with more than {DEFAULT_LIMIT} bytes"))
            );
        }
    }
    String::from_utf8(body)
        .map_err(|_| server.error(ErrorKind::Protocol, "answered with bytes that are not UTF-8"))
}

/// Returns the beginning of a body that explains a failure, within a limit.
async fn beginning(response: Response<Body>) -> String {
    let (mut body, mut read) = (Vec::new(), response.into_body());
    while body.len() < REFUSAL_LIMIT
        && let Ok(Some(bytes)) = read.try_next().await
    {
        body.extend_from_slice(&bytes);
    }
    String::from_utf8_lossy(&body).into_owned()
}
