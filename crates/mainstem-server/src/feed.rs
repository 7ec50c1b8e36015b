//! The events of a session as the body of a response.

mod subscription;

use std::{pin::Pin, sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::Response,
};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use mainstem::{
    encode::{Encoder, Ndjson, Sse},
    event::{AgentEvent, CancelReason, Cursor},
    prelude::RunHandle,
};
use mainstem_api::StreamForm;
use tokio::time::{Instant, sleep_until};

pub(crate) use self::subscription::{Available, Subscription, Until, available, is_gap};
use crate::{
    app::{App, unrecorded},
    large,
    prefix::Prefix,
    readers::ReaderPermit,
};

/// The interval of keep-alives on a stream without events.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);

/// The most events in one chunk of the body.
pub(crate) const CHUNK_EVENTS: usize = 64;

/// A response that streams.
struct Feed {
    app: Arc<App>,
    cursor: Cursor,
    encoder: Box<dyn Encoder>,
    subscription: Subscription,
    phase: Phase,
    /// Whether the last chunk was full.
    has_more: bool,
    /// When the last chunk was sent.
    sent: Instant,
    /// Released when the reader disconnects.
    permit: ReaderPermit,
    /// The run that is cancelled when the reader disconnects, if it asked for that.
    tied: Option<CancelOnDrop>,
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Begin,
    Events,
    /// The last event was sent.
    End,
    /// The run asks: the stream ends, and the run goes on.
    Asked,
    /// The record has failed. Later events are not sent, because a restart would lose them.
    Failed,
    /// The stream ends before its last event; the reader has to notice.
    Cut,
    Over,
}

/// The error that ends the response of a stream that is cut.
#[derive(Debug, thiserror::Error)]
#[error("the stream was cut")]
pub(crate) struct StreamCut;

/// Cancels its run when it is dropped, which is when the reader disconnects.
pub(crate) struct CancelOnDrop(Option<RunHandle>);

impl CancelOnDrop {
    pub(crate) fn new(run: RunHandle) -> Self {
        Self(Some(run))
    }

    /// Lets the run go on.
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(run) = &self.0 {
            run.cancel_because(CancelReason::user("the reader of the response disconnected"));
        }
    }
}

/// Returns the encoder of a form of `/v1`: without the operator's prompts, and with large events
/// cut. Links begin with the prefix.
pub(crate) fn encoder(form: StreamForm, prefix: Prefix) -> Box<dyn Encoder> {
    let json = move |event: &AgentEvent| large::json(&event.without_spec(), Some(&prefix.0));
    match form {
        StreamForm::Sse => Box::new(Sse::with(json)),
        StreamForm::Ndjson => Box::new(Ndjson::with(json)),
    }
}

/// Returns a response that streams the events of a subscription from the cursor's position on.
pub(crate) fn respond(
    app: &Arc<App>,
    cursor: Cursor,
    encoder: Box<dyn Encoder>,
    subscription: Subscription,
    permit: ReaderPermit,
    tied: Option<CancelOnDrop>,
) -> Response {
    let (app, media_type) = (app.clone(), encoder.media_type());
    let feed = Feed {
        app,
        cursor,
        encoder,
        subscription,
        phase: Phase::Begin,
        has_more: false,
        sent: Instant::now(),
        permit,
        tied,
    };
    let body = stream::unfold(Box::pin(feed), |mut feed: Pin<Box<Feed>>| async move {
        let chunk = feed.next().await?;
        Some((chunk, feed))
    });
    streamed(media_type, body)
}

/// Returns a response whose body is a stream.
pub(crate) fn streamed(
    media_type: &'static str,
    body: impl Stream<Item = Result<Bytes, StreamCut>> + Send + 'static,
) -> Response {
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Otherwise nginx buffers the events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl Feed {
    async fn next(&mut self) -> Option<Result<Bytes, StreamCut>> {
        loop {
            match self.phase {
                Phase::Begin => {
                    let frames = self.encoder.begin();
                    self.phase = if self.encoder.is_over() { Phase::End } else { Phase::Events };
                    if let Some(frames) = non_empty(frames) {
                        return Some(Ok(frames));
                    }
                }
                Phase::Events => {
                    let chunk = self.chunk().await;
                    if self.encoder.is_over() {
                        self.leave();
                    }
                    if let Some(chunk) = chunk {
                        return Some(Ok(chunk));
                    }
                }
                Phase::End => {
                    if self.subscription.follow && !self.encoder.is_over() {
                        self.subscription.until.released().await;
                    }
                    self.phase = Phase::Over;
                    return non_empty(self.encoder.end()).map(Ok);
                }
                Phase::Asked => {
                    self.leave();
                    return non_empty(self.encoder.end()).map(Ok);
                }
                Phase::Failed => {
                    self.phase = Phase::Cut;
                    if let Some(frames) = non_empty(self.encoder.fail(&unrecorded().json())) {
                        return Some(Ok(frames));
                    }
                }
                Phase::Cut => {
                    self.phase = Phase::Over;
                    return (!self.encoder.marks_end()).then_some(Err(StreamCut));
                }
                Phase::Over => return None,
            }
        }
    }

    /// Ends the stream before its run, which goes on.
    fn leave(&mut self) {
        self.phase = Phase::Over;
        self.release_run();
    }

    /// Lets the run go on without the reader.
    fn release_run(&mut self) {
        self.tied.take().into_iter().for_each(CancelOnDrop::disarm);
    }

    /// Returns `End`, or `Failed` if the record has failed.
    fn after_last(&self) -> Phase {
        if self.cursor.log().failure().is_some() { Phase::Failed } else { Phase::End }
    }

    /// Waits for the next events or a keep-alive; `None` if no events are left.
    async fn chunk(&mut self) -> Option<Bytes> {
        // A reader that is far behind yields to others.
        if std::mem::take(&mut self.has_more) {
            tokio::task::yield_now().await;
        }
        if let Some(link) = &mut self.permit.link {
            // A database that does not answer must not delay the end of the server.
            let is_over = self.app.stop.run_until_cancelled(link.is_over()).await.unwrap_or(true);
            if is_over {
                self.phase = Phase::Cut;
                return None;
            }
        }
        match self.first().await {
            Ok(Some(first)) => self.frames(first),
            Ok(None) => Some(self.keep_alive()),
            Err(phase) => {
                self.phase = phase;
                None
            }
        }
    }

    /// Waits for the first event of a chunk; `None` if a keep-alive is due. If no events are left,
    /// the error is the next phase.
    async fn first(&mut self) -> Result<Option<AgentEvent>, Phase> {
        if !self.subscription.follow {
            return self.cursor.at_hand().await.map(Some).ok_or_else(|| self.after_last());
        }
        if let Some(event) = self.cursor.try_next() {
            return Ok(Some(event));
        }
        let keep_alive_at = self.sent + self.encoder.patience().unwrap_or(HEARTBEAT);
        let until =
            self.permit.link.as_ref().map_or(keep_alive_at, |link| link.check_at().min(keep_alive_at));
        tokio::select! {
            biased;
            // The encoder's end is not sent, so that the reader reconnects after its last event.
            () = self.app.stop.cancelled() => {
                self.release_run();
                Err(Phase::Cut)
            }
            () = self.permit.left_to_others() => {
                self.release_run();
                Err(Phase::Cut)
            }
            event = self.cursor.next() => event.map(Some).ok_or_else(|| self.after_last()),
            () = sleep_until(until) => Ok(None),
        }
    }

    /// Encodes an event and those that are there already.
    fn frames(&mut self, first: AgentEvent) -> Option<Bytes> {
        let mut out = BytesMut::new();
        let (mut next, mut count, mut sent) = (Some(first), 0, 0);
        while let Some(event) = next.take() {
            if self.subscription.includes(&event) {
                out.extend_from_slice(&self.encode(&event));
                sent += 1;
            }
            if self.encoder.is_over() {
                break;
            }
            if self.subscription.until.is_asked_by(&event) {
                self.phase = Phase::Asked;
                break;
            }
            if self.subscription.is_reached_by(&event) {
                self.phase = Phase::End;
                break;
            }
            count += 1;
            self.has_more = count == CHUNK_EVENTS;
            if !self.has_more {
                next = self.cursor.try_next();
            }
        }
        self.app.metrics.sent(sent);
        if out.is_empty() {
            // The reader's filter may leave out all events for long.
            return (self.sent.elapsed() >= HEARTBEAT).then(|| self.keep_alive());
        }
        self.sent = Instant::now();
        Some(out.freeze())
    }

    fn keep_alive(&mut self) -> Bytes {
        self.sent = Instant::now();
        self.encoder.keep_alive()
    }

    /// Encodes an event, once for all readers of the form.
    fn encode(&mut self, event: &AgentEvent) -> Bytes {
        let Self { app, encoder, permit, .. } = self;
        let form = encoder.shared_as();
        let mut encode = || {
            app.metrics.encoded();
            encoder.event(event)
        };
        match (form, permit.shared()) {
            // A gap belongs to one reader.
            (Some(form), Some(encoded)) if !is_gap(event) => encoded.frame(form, event.seq, encode),
            _ => encode(),
        }
    }
}

/// Returns the frames, unless they are empty.
fn non_empty(frames: Bytes) -> Option<Bytes> {
    Some(frames).filter(|frames| !frames.is_empty())
}
