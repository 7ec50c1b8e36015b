//! A response from the tape: the same chunks, and the same end.

use std::{collections::BTreeMap, future::pending, time::Duration, vec};

use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    HeaderMap, Response, StatusCode,
    body::{Bytes, Frame},
    header::{HeaderName, HeaderValue},
};
use tokio::{task::yield_now, time::sleep};

use super::{
    exchange::{Chunk, End, TapeResponse},
    router::{Cut, Reply, respond},
};

/// Replays a response.
pub(super) async fn reply(response: TapeResponse, replays_pauses: bool) -> Result<Response<Reply>, Cut> {
    let Some(status) = response.status else { return Err(ended(response.end).await) };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let rest = Rest { chunks: response.chunks.into_iter(), end: response.end, replays_pauses };
    let body = StreamBody::new(stream::unfold(Some(rest), next));
    Ok(respond(status, map(&response.headers), body.boxed_unsync()))
}

/// Waits and ends as the recorded response did, if it broke off.
async fn ended(end: End) -> Cut {
    match end {
        // The client leaves, as it did before.
        End::Left => pending().await,
        End::Complete | End::Cut => Cut,
    }
}

/// The rest of a response.
struct Rest {
    chunks: vec::IntoIter<Chunk>,
    end: End,
    replays_pauses: bool,
}

async fn next(rest: Option<Rest>) -> Option<(Result<Frame<Bytes>, Cut>, Option<Rest>)> {
    let mut rest = rest?;
    match rest.chunks.next() {
        Some(chunk) => {
            rest.pause(chunk.ms).await;
            Some((Ok(Frame::data(chunk.bytes.into())), Some(rest)))
        }
        None if rest.end == End::Complete => None,
        None => {
            rest.pause(0).await;
            Some((Err(ended(rest.end).await), None))
        }
    }
}

impl Rest {
    async fn pause(&self, ms: u64) {
        // The chunks before go out while this waits: hyper flushes when the body is pending.
        yield_now().await;
        if self.replays_pauses && ms > 0 {
            sleep(Duration::from_millis(ms)).await;
        }
    }
}

/// Converts headers of a tape to those of a response.
pub(super) fn map(headers: &BTreeMap<String, String>) -> HeaderMap {
    let valid = |(name, value): (&String, &String)| {
        Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
    };
    headers.iter().filter_map(valid).collect()
}
