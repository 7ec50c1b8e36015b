//! The shared state of a cassette's connections, which routes a request: onto the tape, from the
//! tape, or past it.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http_body_util::{BodyExt, Full, LengthLimitError, Limited, combinators::UnsyncBoxBody};
use hyper::{
    HeaderMap, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
};
use mainstem_http::{Client, Url};
use serde_json::json;
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Mode, exchange::TapeRequest, forward, play, tape::Tape};
use crate::CassetteError;

/// The largest recorded request or response, in bytes.
pub(super) const LIMIT: usize = 16 << 20;

/// How long the end waits for responses that are still coming.
const GRACE: Duration = Duration::from_secs(1);

/// Closes the connection, also in the middle of a response.
#[derive(Debug, thiserror::Error)]
#[error("cut")]
pub(super) struct Cut;

/// The body of a response.
pub(super) type Reply = UnsyncBoxBody<Bytes, Cut>;

/// Without `Debug`: a response that is being recorded has its secrets.
pub(super) struct Router {
    tape: Mutex<Tape>,
    pub(super) mode: Mode,
    replays_pauses: bool,
    /// The vendor's server.
    upstream: Url,
    /// The client; `None` in a mode without the vendor.
    client: Option<Client>,
    /// Responses that are being recorded.
    pub(super) responses: TaskTracker,
    /// The end of the cassette.
    pub(super) stop: CancellationToken,
}

impl Router {
    pub(super) fn new(
        tape: Tape,
        mode: Mode,
        replays_pauses: bool,
        upstream: Url,
    ) -> Result<Self, CassetteError> {
        let client = || mainstem_http::client().map_err(|error| CassetteError::Start(error.into()));
        Ok(Self {
            tape: Mutex::new(tape),
            mode,
            replays_pauses,
            upstream,
            client: mode.can_forward().then(client).transpose()?,
            responses: TaskTracker::new(),
            stop: CancellationToken::new(),
        })
    }

    pub(super) fn tape(&self) -> MutexGuard<'_, Tape> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the running responses are recorded, at most for the grace.
    pub(super) async fn settle(&self) {
        self.responses.close();
        // Later responses are recorded as far as they have come.
        _ = timeout(GRACE, self.responses.wait()).await;
    }

    /// Handles a request.
    pub(super) async fn handle(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Reply>, Cut> {
        let (head, body) = request.into_parts();
        let body = match Limited::new(body, LIMIT).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Ok(self.too_long(&head.method)),
            Err(_) => return Err(Cut),
        };
        let mut url = self.upstream.clone();
        url.set_path(head.uri.path());
        url.set_query(head.uri.query());
        let requested = self.tape().tape_request(&head.method, &url, &head.headers, &body);
        if self.mode.can_play() {
            let response = self.tape().play(&requested);
            if let Some(response) = response {
                return play::reply(response, self.replays_pauses).await;
            }
        }
        match self.client.clone() {
            None => Ok(self.miss(&requested, "")),
            Some(client) => {
                let headers = super::headers::forwarded(head.headers);
                let request = client.request(head.method, url).headers(headers).body(body);
                forward::forward(self, request, requested).await
            }
        }
    }

    /// Refuses a request that the tape lacks, in a form that models' clients parse. The status is
    /// one that clients do not retry, and that providers do not mistake for an error about the
    /// request.
    pub(super) fn miss(&self, requested: &TapeRequest, why: &str) -> Response<Reply> {
        let sentence = self.tape().miss(requested, why);
        if requested.is_json() {
            refusal(StatusCode::EXPECTATION_FAILED, &sentence)
        } else {
            plain(StatusCode::EXPECTATION_FAILED, sentence, "text/plain; charset=utf-8")
        }
    }

    fn too_long(&self, method: &hyper::Method) -> Response<Reply> {
        let what = format!("a {method} request that is longer than {LIMIT} bytes");
        self.tape().unfit(None, what.clone());
        refusal(StatusCode::PAYLOAD_TOO_LARGE, &format!("a tape can't hold {what}"))
    }
}

/// Returns an error in the form of the vendors' APIs.
pub(super) fn refusal(status: StatusCode, message: &str) -> Response<Reply> {
    let error = json!({ "message": message, "type": "cassette", "code": "cassette", "param": null });
    plain(status, json!({ "type": "error", "error": error }).to_string(), "application/json")
}

fn plain(status: StatusCode, body: String, media_type: &'static str) -> Response<Reply> {
    let body = Full::new(Bytes::from(body)).map_err(|never: Infallible| match never {});
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))]);
    respond(status, headers, body.boxed_unsync())
}

pub(super) fn respond(status: StatusCode, headers: HeaderMap, body: Reply) -> Response<Reply> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
