//! The root's prose of a turn that delegates, as a status line.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use futures_util::stream::{Fuse, StreamExt as _};
use pin_project::pin_project;
use serde_json::json;

use crate::{AgentEvent, EventKind};

/// The stream of [`EventStreamExt::gate_root_text`](super::EventStreamExt::gate_root_text).
///
/// Whether a turn (one model call) delegates is known at its first tool call or at its end, so the
/// root's prose is held until then, with all events after it. In a turn that delegates, the prose
/// becomes one `CUSTOM` event `delegating` (with the text in its value) under the number of its
/// first piece; prose between two calls becomes another one.
#[pin_project]
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct GateRootText<S> {
    #[pin]
    stream: Fuse<S>,
    delegates: bool,
    held: VecDeque<AgentEvent>,
    ready: VecDeque<AgentEvent>,
}

impl<S: Stream<Item = AgentEvent>> GateRootText<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream: stream.fuse(), delegates: false, held: VecDeque::new(), ready: VecDeque::new() }
    }
}

impl<S: Stream<Item = AgentEvent>> Stream for GateRootText<S> {
    type Item = AgentEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        let mut me = self.project();
        loop {
            if let Some(event) = me.ready.pop_front() {
                return Poll::Ready(Some(event));
            }
            let Some(event) = ready!(me.stream.as_mut().poll_next(cx)) else {
                *me.ready = release(me.held, *me.delegates);
                return Poll::Ready(me.ready.pop_front());
            };
            let decision = decide(&event);
            if decision.is_none() && (is_text(&event) || !me.held.is_empty()) {
                me.held.push_back(event);
                continue;
            }
            *me.delegates |= decision == Some(true);
            *me.ready = release(me.held, *me.delegates);
            *me.delegates &= decision != Some(false);
            me.ready.push_back(event);
        }
    }
}

fn is_text(event: &AgentEvent) -> bool {
    use EventKind::{TextBlockDelta, TextBlockEnd, TextBlockStart};
    event.is_root()
        && matches!(event.kind, TextBlockStart { .. } | TextBlockDelta { .. } | TextBlockEnd { .. })
}

/// Returns whether the root's turn delegates, if this event decides it: a tool call, or the end of
/// the turn (which may be among missed events).
fn decide(event: &AgentEvent) -> Option<bool> {
    use EventKind::*;
    match event.kind {
        ToolCallStart { .. } if event.is_root() => Some(true),
        ModelCallStart { .. } | ModelCallEnd { .. } | AgentEnd { .. } if event.is_root() => Some(false),
        // What was said before is taken back, calls too.
        ModelRetry { .. } | ModelFallback { .. } if event.is_root() => Some(false),
        Gap { .. } => Some(false),
        _ => None,
    }
}

/// Returns the held events as they came, or with the prose replaced by a status line at the place
/// of its first piece.
fn release(held: &mut VecDeque<AgentEvent>, delegates: bool) -> VecDeque<AgentEvent> {
    let held = std::mem::take(held);
    let first = held.iter().find(|event| is_text(event)).cloned();
    let Some(first) = first.filter(|_| delegates) else { return held };
    let pieces = held.iter().filter(|event| is_text(event)).filter_map(|event| match &event.kind {
        EventKind::TextBlockDelta { delta, .. } => Some(delta.as_str()),
        _ => None,
    });
    let value = json!({ "text": pieces.collect::<String>() });
    let kind = EventKind::Custom { name: "delegating".into(), value };
    let mut status = Some(AgentEvent::new(first.seq, first.at, Arc::clone(&first.origin), kind));
    held.into_iter().filter_map(|event| if is_text(&event) { status.take() } else { Some(event) }).collect()
}
