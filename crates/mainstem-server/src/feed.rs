//! A session's events as the body of an answer.

use std::{pin::Pin, sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::Response,
};
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use mainstem::{
    encode::{Encoder, Ndjson, Sse},
    event::{AgentEvent, CancelReason, Cursor, EventFilter, EventKind},
    message::{RunId, TaskId},
    prelude::RunHandle,
};
use mainstem_api::StreamForm;
use tokio::time::{Instant, sleep_until};

use crate::{
    app::{App, unrecorded},
    large,
    prefix::Prefix,
    readers::Seat,
};

/// How often a reader that hears nothing is told that the connection is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How many events are sent in one piece at most, if they are there already.
const AT_ONCE: usize = 64;

/// What a reader wants.
pub(crate) struct Wish {
    pub(crate) form: StreamForm,
    pub(crate) filter: EventFilter,
    /// Leaves out what is said piece by piece.
    pub(crate) lifecycle: bool,
    /// Whose events, and how long.
    pub(crate) until: Until,
    /// Whether to wait for what comes.
    pub(crate) follow: bool,
    /// Before links.
    pub(crate) prefix: Prefix,
}

/// Whose events a reader wants, and when it has enough.
pub(crate) enum Until {
    /// All events of the session, without an end.
    Never,
    /// Those of a run, until that ends.
    EndOf(RunId, Option<RunHandle>),
    /// Those of a background task, until that is over.
    TaskIsOver(TaskId),
}

impl Until {
    fn wants(&self, event: &AgentEvent) -> bool {
        match self {
            Self::Never => true,
            Self::EndOf(run, _) => event.run_id() == Some(run),
            Self::TaskIsOver(task) => {
                event.source().and_then(|source| source.task_id.as_ref()) == Some(task)
                    || matches!(&event.kind, EventKind::TaskUpdated { task_id, .. } if task_id == task)
            }
        }
    }

    /// Waits until the session agrees with the end that the reader sees: another run can begin.
    async fn is_over(&self) {
        if let Self::EndOf(_, Some(run)) = self {
            run.released().await;
        }
    }

    fn is_reached_by(&self, event: &AgentEvent) -> bool {
        match self {
            Self::Never => false,
            // The end itself may be among what was missed.
            Self::EndOf(_, Some(run)) if is_gap(event) => {
                run.status().is_over() && event.seq >= run.session().log().last_seq()
            }
            Self::EndOf(run, _) => {
                event.run_id() == Some(run) && (event.is_run_end() || event.is_queued_run_cancel())
            }
            Self::TaskIsOver(task) => matches!(
                &event.kind,
                EventKind::TaskUpdated { task_id, to, .. } if task_id == task && to.is_terminal()
            ),
        }
    }
}

impl Wish {
    pub(crate) fn wants(&self, event: &AgentEvent) -> bool {
        let wanted = (!self.lifecycle || event.kind.is_lifecycle()) && self.filter.matches(event);
        is_gap(event) || (self.until.wants(event) && wanted)
    }

    /// Returns the encoder of the form: without the operator's prompts, and with large events cut.
    fn encoder(&self) -> Box<dyn Encoder> {
        let prefix = self.prefix.clone();
        let json = move |event: &AgentEvent| large::json(&event.without_spec(), &prefix.0);
        match self.form {
            StreamForm::Sse => Box::new(Sse::with(json)),
            StreamForm::Ndjson => Box::new(Ndjson::with(json)),
        }
    }
}

fn is_gap(event: &AgentEvent) -> bool {
    matches!(event.kind, EventKind::Gap { .. })
}

/// An answer under way.
struct Feed {
    app: Arc<App>,
    cursor: Cursor,
    encoder: Box<dyn Encoder>,
    wish: Wish,
    place: Place,
    /// Whether the last piece was full.
    has_more: bool,
    /// When the reader got something last.
    sent: Instant,
    /// Given back when the reader leaves.
    seat: Seat,
    /// Stopped when the reader leaves, if it asked for that.
    _tied: Option<Tied>,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    First,
    Events,
    /// The run is over, and the reader is told so.
    End,
    /// The record has failed: what comes is not shown, as a restart would forget it.
    Failed,
    Over,
}

/// A run that ends with its reader.
pub(crate) struct Tied(pub(crate) RunHandle);

impl Drop for Tied {
    fn drop(&mut self) {
        self.0.cancel_because(CancelReason::user("the reader of the answer left"));
    }
}

/// The answer that sends what a reader wants, from where the cursor stands.
pub(crate) fn answer(app: &Arc<App>, cursor: Cursor, wish: Wish, seat: Seat, tied: Option<Tied>) -> Response {
    let (app, encoder) = (app.clone(), wish.encoder());
    let media_type = encoder.media_type();
    let feed = Feed {
        app,
        cursor,
        encoder,
        wish,
        place: Place::First,
        has_more: false,
        sent: Instant::now(),
        seat,
        _tied: tied,
    };
    let body = stream::unfold(Box::pin(feed), |mut feed: Pin<Box<Feed>>| async move {
        let piece = feed.next().await?;
        Some((Ok::<_, std::convert::Infallible>(piece), feed))
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // nginx would collect the events before it passes them on.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl Feed {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            match self.place {
                Place::First => {
                    self.place = Place::Events;
                    if let Some(frames) = some(self.encoder.begin()) {
                        return Some(frames);
                    }
                }
                Place::Events => {
                    if let Some(piece) = self.piece().await {
                        return Some(piece);
                    }
                }
                Place::End => {
                    if self.wish.follow {
                        self.wish.until.is_over().await;
                    }
                    self.place = Place::Over;
                    return some(self.encoder.end());
                }
                Place::Failed => {
                    self.place = Place::Over;
                    return some(self.encoder.fail(&unrecorded().json()));
                }
                Place::Over => return None,
            }
        }
    }

    /// Returns `End`, or `Failed` if the record has failed.
    fn after_last(&self) -> Place {
        if self.cursor.log().failure().is_some() { Place::Failed } else { Place::End }
    }

    /// The next events, a sign of life, or nothing if it is over.
    async fn piece(&mut self) -> Option<Bytes> {
        // A reader that has much to catch up with lets others run in between.
        if std::mem::take(&mut self.has_more) {
            tokio::task::yield_now().await;
        }
        let there = if self.wish.follow { self.cursor.try_next() } else { self.cursor.at_hand().await };
        let first = match there {
            Some(event) => event,
            None if !self.wish.follow => {
                self.place = self.after_last();
                return None;
            }
            None => tokio::select! {
                biased;
                // A reader that is sent away comes back with what it saw last; this is no end.
                () = self.app.stop.cancelled() => {
                    self.place = Place::Over;
                    return None;
                }
                event = self.cursor.next() => match event {
                    Some(event) => event,
                    None => {
                        self.place = self.after_last();
                        return None;
                    }
                },
                () = sleep_until(self.sent + HEARTBEAT) => return Some(self.sign_of_life()),
            },
        };
        let mut out = BytesMut::new();
        let (mut next, mut count, mut sent) = (Some(first), 0, 0);
        while let Some(event) = next.take() {
            if self.wish.wants(&event) {
                out.extend_from_slice(&self.encode(&event));
                sent += 1;
            }
            if self.wish.until.is_reached_by(&event) {
                self.place = Place::End;
                break;
            }
            count += 1;
            self.has_more = count == AT_ONCE;
            if !self.has_more {
                next = self.cursor.try_next();
            }
        }
        self.app.metrics.sent(sent);
        if out.is_empty() {
            // Much may happen that this reader does not want to know.
            return (self.sent.elapsed() >= HEARTBEAT).then(|| self.sign_of_life());
        }
        self.sent = Instant::now();
        Some(out.freeze())
    }

    fn sign_of_life(&mut self) -> Bytes {
        self.sent = Instant::now();
        self.encoder.keep_alive()
    }

    /// Encodes an event, once for all readers of the form.
    fn encode(&mut self, event: &AgentEvent) -> Bytes {
        let Self { app, encoder, seat, .. } = self;
        let form = encoder.shared_as();
        let mut encode = || {
            app.metrics.encoded();
            encoder.event(event)
        };
        match (form, seat.shared()) {
            // A gap is one reader's.
            (Some(form), Some(encoded)) if !is_gap(event) => encoded.frame(form, event.seq, encode),
            _ => encode(),
        }
    }
}

/// The frames, unless there are none.
fn some(frames: Bytes) -> Option<Bytes> {
    Some(frames).filter(|frames| !frames.is_empty())
}

/// What was found before anything is sent: a reader that is behind the first stored event, or one
/// for which there is nothing more.
pub(crate) enum Look {
    Gone { oldest: u64 },
    Nothing,
    Something,
}

/// Looks at what there is, from where the cursor stands; `over` says whether nothing more will
/// come.
pub(crate) async fn look(mut cursor: Cursor, wish: &Wish, over: bool) -> Look {
    let mut next = cursor.at_hand().await;
    if let Some(EventKind::Gap { to_seq, .. }) = next.as_ref().map(|event| &event.kind) {
        return Look::Gone { oldest: to_seq + 1 };
    }
    if !over {
        return Look::Something;
    }
    while let Some(event) = next {
        if wish.wants(&event) {
            return Look::Something;
        }
        next = cursor.at_hand().await;
    }
    Look::Nothing
}
