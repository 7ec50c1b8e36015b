//! Forwards a request to the vendor, and its response back: as it arrives, and recorded.

use std::{error::Error, sync::Arc, time::Duration};

use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    Response, StatusCode,
    body::{Bytes, Frame},
};
use mainstem_http::{RequestBuilder, Response as VendorResponse};
use tokio::{sync::mpsc, task::yield_now, time::timeout};

use super::{
    Mode,
    exchange::{End, TapeRequest},
    headers,
    play::map,
    recording::Recording,
    router::{Cut, Reply, Router, refusal, respond},
};

/// How long a response continues after its client has left: clients leave when they have read the
/// end.
const LINGER: Duration = Duration::from_millis(250);

type Piece = Result<Frame<Bytes>, Cut>;

/// Sends the request to the vendor.
pub(super) async fn forward(
    router: Arc<Router>,
    request: RequestBuilder,
    requested: TapeRequest,
) -> Result<Response<Reply>, Cut> {
    let mut recording = Recording::new(&router, &requested);
    let response = match request.send().await {
        Ok(response) => response,
        Err(error) if error.is_connect() || error.is_builder() => {
            recording.void();
            return Ok(unreachable(&router, &requested, &error));
        }
        Err(_) => {
            recording.end(End::Cut);
            return Err(Cut);
        }
    };
    let (status, headers) = (response.status(), headers::of_response(response.headers()));
    let sent = map(&headers);
    recording.head(status.as_u16(), headers);
    if let Some(what) = objection(&router, &response) {
        recording.unfit(format!("the response to {}: {what}", requested.line()));
    }
    let (client, body) = mpsc::channel(1);
    router.responses.spawn(router.stop.clone().run_until_cancelled_owned(relay(response, client, recording)));
    let body = stream::unfold(body, async |mut body| Some((next(&mut body).await?, body)));
    Ok(respond(status, sent, StreamBody::new(body).boxed_unsync()))
}

async fn next(body: &mut mpsc::Receiver<Piece>) -> Option<Piece> {
    let piece = body.recv().await?;
    if piece.is_err() {
        // The chunks before go out first: hyper flushes when the body is pending.
        yield_now().await;
    }
    Some(piece)
}

/// Returns why a response is not recorded.
fn objection(router: &Router, response: &VendorResponse) -> Option<String> {
    if response.headers().contains_key("content-encoding") {
        return Some("it is compressed, so that no secret in it could be found".to_owned());
    }
    // Such a tape would fail again when the key is right.
    let refused = matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    (refused && router.mode == Mode::Auto)
        .then(|| format!("it is {}, which is recorded by MAINSTEM_CASSETTE=record only", response.status()))
}

fn unreachable(router: &Router, requested: &TapeRequest, error: &dyn Error) -> Response<Reply> {
    let why = "the vendor can't be reached";
    match router.mode {
        // Most likely the recording was not intended.
        Mode::Auto => router.miss(requested, &format!("; {why}, so that it can't be recorded")),
        Mode::Record | Mode::Replay | Mode::Off => {
            refusal(StatusCode::BAD_GATEWAY, &format!("{why}: {}", root(error)))
        }
    }
}

/// Returns the innermost cause, which has no URL.
fn root(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Forwards a response, chunk by chunk, at the pace of the client.
async fn relay(mut response: VendorResponse, client: mpsc::Sender<Piece>, mut recording: Recording) {
    loop {
        let next = tokio::select! {
            biased;
            () = client.closed() => return linger(response, recording).await,
            next = response.chunk() => next,
        };
        let Some(chunk) = next.transpose() else { return recording.end(End::Complete) };
        let sent = match chunk {
            Ok(bytes) => {
                recording.chunk(&bytes);
                client.send(Ok(Frame::data(bytes))).await
            }
            Err(_) => {
                recording.end(End::Cut);
                _ = client.send(Err(Cut)).await;
                return;
            }
        };
        if sent.is_err() {
            return linger(response, recording).await;
        }
    }
}

/// Records the rest after the client has left, perhaps because it has read everything.
async fn linger(mut response: VendorResponse, mut recording: Recording) {
    if let Ok(Ok(None)) = timeout(LINGER, response.chunk()).await {
        recording.end(End::Complete);
    }
}
