//! One session of a live stream: the state of its fleet, then its events, until it becomes idle.

use std::sync::Arc;

use futures_util::{Stream, StreamExt, stream};
use mainstem::{
    Harness,
    event::{AgentEvent, Cursor, FleetState},
    session::{LiveSession, view},
};
use mainstem_api::{AnySession, SessionView};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{
    feed::is_gap,
    readers::{Source, fleet_of_copy},
};

/// What a live stream says of a session.
pub(super) enum Update {
    /// Its state; the events after it follow.
    Begun { node: Option<String>, session: Box<SessionView>, fleet: Box<FleetState> },
    /// An event that is not content.
    Event(AgentEvent),
    /// It has become idle, or can't be read. This is the last update.
    Left,
}

/// Returns the updates of a session. When `over` is cancelled they end after the events that are
/// committed.
pub(super) fn follow(
    harness: Harness,
    live: LiveSession,
    folds: Arc<Semaphore>,
    over: CancellationToken,
) -> impl Stream<Item = Update> + Send {
    let session = Follow { harness, live, folds, over, phase: Phase::Begin };
    stream::unfold(session, |mut session| async move {
        let update = session.next().await?;
        Some((update, session))
    })
}

struct Follow {
    harness: Harness,
    live: LiveSession,
    /// Limits how many states are computed at once.
    folds: Arc<Semaphore>,
    over: CancellationToken,
    phase: Phase,
}

enum Phase {
    Begin,
    /// The source stays open meanwhile.
    Events {
        source: Source,
        cursor: Cursor,
    },
    /// What is committed is still read.
    Ending {
        _source: Source,
        cursor: Cursor,
    },
    Over,
}

impl Follow {
    async fn next(&mut self) -> Option<Update> {
        loop {
            let update = match &mut self.phase {
                Phase::Begin => Some(self.begin().await),
                Phase::Events { cursor, .. } => {
                    let next = tokio::select! {
                        biased;
                        next = cursor.next() => Some(next),
                        () = self.over.cancelled() => None,
                    };
                    match next {
                        Some(next) => self.update(next),
                        None => {
                            self.end().await;
                            None
                        }
                    }
                }
                Phase::Ending { cursor, .. } => {
                    let next = cursor.at_hand().await;
                    self.update(next)
                }
                Phase::Over => return None,
            };
            if update.is_some() {
                return update;
            }
        }
    }

    /// Reads on to the last event that is committed.
    async fn end(&mut self) {
        let phase = std::mem::replace(&mut self.phase, Phase::Over);
        let Phase::Events { source, cursor } = phase else { return };
        // A copy may not have the last events yet.
        if matches!(source, Source::Elsewhere(_)) {
            let _ = self.harness.sessions().copy(&self.live.view.id).await;
        }
        self.phase = Phase::Ending { _source: source, cursor };
    }

    /// Returns the state of the fleet; the session is followed from there on.
    async fn begin(&mut self) -> Update {
        let Some((source, view, mut fleet)) = state(&self.harness, &self.live, &self.folds).await else {
            return self.leave();
        };
        // Content is not sent, so a last line would not change.
        fleet.agents.iter_mut().for_each(|agent| agent.last_line.clear());
        let cursor = source.log().committed_from(fleet.seq + 1);
        self.phase = Phase::Events { source, cursor };
        Update::Begun { node: self.live.node.clone(), session: Box::new(view), fleet: Box::new(fleet) }
    }

    /// Returns what the next event is for the reader; `None` if it is content.
    fn update(&mut self, next: Option<AgentEvent>) -> Option<Update> {
        match next {
            None => Some(self.leave()),
            Some(event) if is_gap(&event) => {
                self.phase = Phase::Begin;
                None
            }
            Some(event) => event.kind.is_lifecycle().then_some(Update::Event(event)),
        }
    }

    fn leave(&mut self) -> Update {
        self.phase = Phase::Over;
        Update::Left
    }
}

/// Returns where the events of a session come from, the session, and the state of its fleet after
/// the events that are committed.
async fn state(
    harness: &Harness,
    live: &LiveSession,
    folds: &Arc<Semaphore>,
) -> Option<(Source, SessionView, FleetState)> {
    let (sessions, id) = (harness.sessions(), &live.view.id);
    if live.is_here {
        let session = sessions.get(id)?;
        let fleet = AnySession::fleet(&session).await.ok()?;
        let view = view::open(&session);
        return Some((Source::Open(session), view, fleet));
    }
    let copy = sessions.copy(id).await.ok()??;
    let fleet = fleet_of_copy(folds, &copy, copy.log().last_seq()).await?;
    Some((Source::Elsewhere(copy), live.view.clone(), fleet))
}
