//! A request that goes on to the vendor, and its answer on the way back: passed on as it arrives,
//! and taken down.

use std::{error::Error, sync::Arc, time::Duration};

use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    Response, StatusCode,
    body::{Bytes, Frame},
};
use mainstem_http::{RequestBuilder, Response as Answer};
use tokio::{sync::mpsc, task::yield_now, time::timeout};

use super::{
    Mode,
    deck::{Cut, Deck, Reply, refusal, respond},
    exchange::{Asked, End},
    headers,
    play::map,
    take::Take,
};

/// How long an answer that nobody reads any more has for its end. Clients leave when they have read
/// that it is over.
const LINGER: Duration = Duration::from_millis(250);

type Piece = Result<Frame<Bytes>, Cut>;

/// Asks the vendor.
pub(super) async fn forward(
    deck: Arc<Deck>,
    request: RequestBuilder,
    asked: Asked,
) -> Result<Response<Reply>, Cut> {
    let mut take = Take::new(&deck, &asked);
    let answer = match request.send().await {
        Ok(answer) => answer,
        Err(error) if error.is_connect() || error.is_builder() => {
            take.void();
            return Ok(unreachable(&deck, &asked, &error));
        }
        Err(_) => {
            take.end(End::Cut);
            return Err(Cut);
        }
    };
    let (status, headers) = (answer.status(), headers::of_answer(answer.headers()));
    let sent = map(&headers);
    take.head(status.as_u16(), headers);
    if let Some(what) = objection(&deck, &answer) {
        take.unfit(format!("the answer to {}: {what}", asked.line()));
    }
    let (client, body) = mpsc::channel(1);
    deck.answers.spawn(deck.stop.clone().run_until_cancelled_owned(pass_on(answer, client, take)));
    let body = stream::unfold(body, async |mut body| Some((next(&mut body).await?, body)));
    Ok(respond(status, sent, StreamBody::new(body).boxed_unsync()))
}

async fn next(body: &mut mpsc::Receiver<Piece>) -> Option<Piece> {
    let piece = body.recv().await?;
    if piece.is_err() {
        // What came before goes out first: hyper sends what it has when there is nothing to add.
        yield_now().await;
    }
    Some(piece)
}

/// Returns why an answer is not recorded.
fn objection(deck: &Deck, answer: &Answer) -> Option<String> {
    if answer.headers().contains_key("content-encoding") {
        return Some("it is compressed, so that no secret in it could be found".to_owned());
    }
    // A tape that says so would go on saying so when the key is right.
    let refused = matches!(answer.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    (refused && deck.mode == Mode::Auto)
        .then(|| format!("it is {}, which is recorded by MAINSTEM_CASSETTE=record only", answer.status()))
}

fn unreachable(deck: &Deck, asked: &Asked, error: &dyn Error) -> Response<Reply> {
    let why = "the vendor can't be reached";
    match deck.mode {
        // Most likely nobody meant to record.
        Mode::Auto => deck.miss(asked, &format!("; {why}, so that it can't be recorded")),
        Mode::Record | Mode::Replay | Mode::Off => {
            refusal(StatusCode::BAD_GATEWAY, &format!("{why}: {}", root(error)))
        }
    }
}

/// Returns the innermost cause, which names no URL.
fn root(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Chunk by chunk, at the pace of the client.
async fn pass_on(mut answer: Answer, client: mpsc::Sender<Piece>, mut take: Take) {
    loop {
        let next = tokio::select! {
            biased;
            () = client.closed() => return linger(answer, take).await,
            next = answer.chunk() => next,
        };
        let Some(chunk) = next.transpose() else { return take.end(End::Complete) };
        let sent = match chunk {
            Ok(bytes) => {
                take.chunk(&bytes);
                client.send(Ok(Frame::data(bytes))).await
            }
            Err(_) => {
                take.end(End::Cut);
                _ = client.send(Err(Cut)).await;
                return;
            }
        };
        if sent.is_err() {
            return linger(answer, take).await;
        }
    }
}

/// The client has left: perhaps because it has read all.
async fn linger(mut answer: Answer, mut take: Take) {
    if let Ok(Ok(None)) = timeout(LINGER, answer.chunk()).await {
        take.end(End::Complete);
    }
}
