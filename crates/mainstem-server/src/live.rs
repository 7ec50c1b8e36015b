//! `GET /live`: what all active sessions do, on one stream.

mod encode;
mod follow;
mod lists;

use std::{
    collections::{BTreeMap, HashMap},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use axum::{
    extract::State,
    http::{HeaderMap, header},
    response::Response,
};
use bytes::{Bytes, BytesMut};
use futures_util::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream, SelectAll},
};
use mainstem::{
    Harness,
    journal::Part,
    message::SessionId,
    policy::{Share, Shares, Tenant},
    session::LiveSession,
};
use mainstem_api::{Code, LiveFrame, LiveQuery, ServerView, StreamForm, Use};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

pub(crate) use self::lists::LiveLists;
use self::{
    encode::Frames,
    follow::{Update, follow},
    lists::Listed,
};
use crate::{
    app::App,
    body::Query,
    caller::Caller,
    feed::{CHUNK_EVENTS, HEARTBEAT, StreamCut, streamed},
    prefix::Prefix,
    problem::Problem,
};

/// How many sessions a stream follows at once.
pub(crate) const FOLLOWED: usize = 200;

/// How long it takes at most until a session that begins to work is on the stream.
const EVERY: Duration = Duration::from_millis(500);

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<LiveQuery>,
    prefix: Prefix,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if query.all && caller.tenant.is_some() {
        let detail = "the sessions of all tenants are for the operator; without `all` you get your own";
        return Err(Problem::new(Code::OperatorOnly, detail));
    }
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let form = StreamForm::accepted(accept).unwrap_or(StreamForm::Sse);
    let share = app.readers.admit(&caller.tenant)?;
    caller.release_permit();
    // A list that can't be read is a problem, and not an empty stream, which begins with this list.
    let listed = app.live.list(caller.harness.sessions(), &caller.tenant, &part(query.all)).await;
    listed.map_err(|error| app.unreadable(&error))?;
    let next_list = next_list(&app, &caller.harness, &caller.tenant, query.all, Instant::now());
    let live = Live {
        app,
        harness: caller.harness.clone(),
        tenant: caller.tenant,
        all: query.all,
        frames: Frames::new(form, prefix),
        updates: SelectAll::new(),
        followed: HashMap::new(),
        next_list,
        summary: None,
        sent: Instant::now(),
        is_over: false,
        _share: share,
    };
    let body = stream::unfold(Box::pin(live), |mut live: Pin<Box<Live>>| async move {
        let chunk = live.next().await?;
        Some((chunk, live))
    });
    Ok(streamed(form.media_type(), body))
}

fn part(all: bool) -> Part {
    if all { Part::All } else { Part::Of(None) }
}

/// Lists the sessions that are active, at a time.
fn next_list(
    app: &Arc<App>,
    harness: &Harness,
    tenant: &Tenant,
    all: bool,
    at: Instant,
) -> BoxFuture<'static, Listed> {
    let (app, sessions, tenant) = (app.clone(), harness.sessions().clone(), tenant.clone());
    async move {
        sleep_until(at).await;
        app.live.list(&sessions, &tenant, &part(all)).await
    }
    .boxed()
}

/// A session among those of all tenants.
type Key = (Tenant, SessionId);

/// A session that is followed. If its process ends within a run, it is followed until another
/// process has opened it: otherwise the stream would lack the events of a short run there.
struct Followed {
    place: (bool, Option<String>),
    /// Cancelled when the session becomes idle, or another process opens it.
    over: CancellationToken,
    /// The session in the process that has opened it since; it is followed there next.
    moved: Option<LiveSession>,
    /// Whether its process had ended when it was last listed. Another one opens it a moment before
    /// it takes the turn up, and the turn may be over at the next list.
    was_lost: bool,
}

/// A response that streams.
struct Live {
    app: Arc<App>,
    harness: Harness,
    tenant: Tenant,
    all: bool,
    frames: Frames,
    /// The updates of the sessions that are followed.
    updates: SelectAll<BoxStream<'static, (Key, Update)>>,
    followed: HashMap<Key, Followed>,
    /// The next list of the sessions, so that events are sent while it is read.
    next_list: BoxFuture<'static, Listed>,
    /// The last one that was sent.
    summary: Option<LiveFrame>,
    /// When the last chunk was sent.
    sent: Instant,
    is_over: bool,
    /// Released when the reader disconnects.
    _share: Share,
}

impl Live {
    async fn next(&mut self) -> Option<Result<Bytes, StreamCut>> {
        if self.is_over {
            return None;
        }
        let begin = self.frames.begin();
        if !begin.is_empty() {
            return Some(Ok(begin));
        }
        loop {
            let stop = self.app.stop.clone();
            let chunk = tokio::select! {
                biased;
                () = stop.cancelled() => {
                    self.is_over = true;
                    return Some(Err(StreamCut));
                }
                listed = &mut self.next_list => self.look(listed),
                Some(first) = self.updates.next(), if !self.updates.is_empty() => self.chunk(first),
                () = sleep_until(self.sent + HEARTBEAT) => self.frames.keep_alive(),
            };
            if !chunk.is_empty() {
                self.sent = Instant::now();
                return Some(Ok(chunk));
            }
        }
    }

    /// Encodes an update and those that are there already.
    fn chunk(&mut self, first: (Key, Update)) -> Bytes {
        let mut out = BytesMut::new();
        let mut next = Some(first);
        let mut count = 0;
        while let Some((key, update)) = next.take() {
            out.extend_from_slice(&self.frame(key, update));
            count += 1;
            if count < CHUNK_EVENTS {
                next = self.updates.next().now_or_never().flatten();
            }
        }
        self.app.metrics.sent(count as u64);
        out.freeze()
    }

    fn frame(&mut self, key: Key, update: Update) -> Bytes {
        // A reader knows its own tenant.
        let tenant = key.0.clone().filter(|_| self.tenant.is_none());
        match update {
            Update::Begun { node, session, fleet } => {
                self.frames.of(&LiveFrame::Session { tenant, node, session, fleet })
            }
            Update::Event(event) => self.frames.of_event(tenant.as_ref(), &event),
            Update::Left => {
                let followed = self.followed.remove(&key);
                if let Some(moved) = followed.and_then(|followed| followed.moved)
                    && self.follow(&moved)
                {
                    return Bytes::new();
                }
                self.frames.of(&LiveFrame::Left { tenant, session_id: key.1 })
            }
        }
    }

    /// Follows further sessions of a list, and ends those that have finished.
    fn look(&mut self, listed: Listed) -> Bytes {
        self.next_list = next_list(&self.app, &self.harness, &self.tenant, self.all, Instant::now() + EVERY);
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => {
                // Those that are followed fail by themselves.
                self.app.unreadable(&error);
                return Bytes::new();
            }
        };
        // Another node may serve tenants that this one does not.
        let listed: Vec<_> = listed.iter().filter(|live| self.app.serves(&live.tenant)).collect();
        let now: HashMap<_, _> = listed.iter().map(|live| (key(live), *live)).collect();
        for (key, followed) in &mut self.followed {
            let live = now.get(key).copied();
            let moved = live.filter(|live| !live.is_lost && place(live) != followed.place);
            if (live.is_none() && !followed.was_lost) || moved.is_some() {
                followed.over.cancel();
            }
            followed.was_lost = live.is_some_and(|live| live.is_lost);
            // It may be idle again before it is followed there.
            followed.moved = moved.cloned().or_else(|| followed.moved.take());
        }
        let mut count = 0;
        for live in listed {
            let is_followed = self.followed.contains_key(&key(live));
            count += usize::from(is_followed || !live.is_lost);
            if !is_followed && !live.is_lost && self.followed.len() < FOLLOWED {
                self.follow(live);
            }
        }
        self.summary(count)
    }

    /// Returns `false` if that is not possible; the reason is logged.
    fn follow(&mut self, live: &LiveSession) -> bool {
        let Ok(Caller { harness, .. }) = Caller::of(&self.app, live.tenant.clone()) else { return false };
        let (key, over) = (key(live), CancellationToken::new());
        let updates = follow(harness, live.clone(), self.app.folds.clone(), over.clone());
        let of = key.clone();
        self.updates.push(updates.map(move |update| (of.clone(), update)).boxed());
        self.followed.insert(key, Followed { place: place(live), over, moved: None, was_lost: false });
        true
    }

    /// Encodes how many sessions there are, if it has changed.
    fn summary(&mut self, live: usize) -> Bytes {
        let server = self.all.then(|| view(&self.app));
        let shown = self.followed.values().filter(|followed| !followed.over.is_cancelled()).count();
        let summary = LiveFrame::Summary { live, shown, server };
        if self.summary.as_ref() == Some(&summary) {
            return Bytes::new();
        }
        let frame = self.frames.of(&summary);
        self.summary = Some(summary);
        frame
    }
}

fn key(live: &LiveSession) -> Key {
    (live.tenant.clone(), live.view.id.clone())
}

/// Returns where a session is open: whether in this process, and the name of the node.
fn place(live: &LiveSession) -> (bool, Option<String>) {
    (live.is_here, live.node.clone())
}

/// Returns how much of the limits is in use.
fn view(app: &App) -> ServerView {
    let store = app.harness.sessions().store();
    let none = || Use { used: 0, most: 0, by_tenant: BTreeMap::new() };
    ServerView {
        node: app.harness.journal().and_then(|journal| journal.node()),
        runs: used(app.run_shares()),
        sessions: Use { used: store.len(), ..store.limit().map_or_else(none, |shares| used(shares)) },
        readers: used(app.readers.shares()),
    }
}

fn used(shares: &Shares) -> Use {
    let by_tenant = shares.by_tenant().into_iter();
    let by_tenant =
        by_tenant.map(|(tenant, count)| (tenant.map_or_else(String::new, |name| name.to_string()), count));
    Use { used: shares.taken(), most: shares.most(), by_tenant: by_tenant.collect() }
}
