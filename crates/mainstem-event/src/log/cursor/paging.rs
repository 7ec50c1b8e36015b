//! A page of the record for one cursor, with gaps where the record lacks events.

use std::{
    collections::VecDeque,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use futures_util::{FutureExt, future::BoxFuture};

use crate::{AgentEvent, EventKind, Origin, Page, SessionLog, Timestamp, log::session_log::ReaderId};

pub(super) enum Paging {
    Asked { from: u64, through: u64, page: BoxFuture<'static, Page> },
    Given(VecDeque<AgentEvent>),
}

impl Paging {
    /// Returns the next event of the page, once it is loaded; `None` after the last.
    pub(super) fn poll_next(
        &mut self,
        log: &SessionLog,
        reader: ReaderId,
        waker: Option<&Waker>,
    ) -> Poll<Option<AgentEvent>> {
        if let Self::Asked { from, through, page } = self {
            let mut page = ready!(page.poll_unpin(&mut Context::from_waker(waker.unwrap_or(Waker::noop()))));
            page.through = page.through.clamp(*from, *through);
            log.filled(reader, page.through);
            *self = Self::Given(with_gaps(*from, page, log));
        }
        Poll::Ready(match self {
            Self::Asked { .. } => None,
            Self::Given(events) => events.pop_front(),
        })
    }

    /// Returns the number of the next event, if it is known.
    pub(super) fn next_seq(&self) -> Option<u64> {
        let Self::Given(events) = self else { return None };
        events.front().map(|event| match event.kind {
            EventKind::Gap { from_seq, .. } => from_seq,
            _ => event.seq,
        })
    }
}

/// Returns the events of a page, with exactly one gap for each missing range.
fn with_gaps(from: u64, page: Page, log: &SessionLog) -> VecDeque<AgentEvent> {
    let mut next = from;
    let mut given = VecDeque::with_capacity(page.events.len());
    let skip_to = |given: &mut VecDeque<_>, next: u64, to: u64, at: Timestamp| {
        if next < to {
            let origin = Arc::new(Origin::session(log.session_id().clone(), None));
            let (missed, per_agent) = (to - next, Default::default());
            let kind = EventKind::Gap { from_seq: next, to_seq: to - 1, missed, per_agent, reason: None };
            given.push_back(AgentEvent::new(to - 1, at, origin, kind));
        }
    };
    for event in page.events {
        if event.seq < next || event.seq > page.through {
            continue;
        }
        skip_to(&mut given, next, event.seq, event.at);
        next = event.seq + 1;
        given.push_back(event);
    }
    skip_to(&mut given, next, page.through + 1, log.clock().now());
    given
}
