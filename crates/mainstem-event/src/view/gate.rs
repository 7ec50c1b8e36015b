//! The root's prose of a turn that delegates, as one status line.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use pin_project::pin_project;
use serde_json::json;

use crate::{AgentEvent, EventKind};

/// The stream of [`EventStreamExt::gate_root_text`](super::EventStreamExt::gate_root_text).
///
/// Whether a turn delegates is known at its first tool call or at its end, so the root's prose is held until then, and whatever the
/// session does meanwhile behind it. Of a turn that delegates, the prose comes as one `CUSTOM` event `delegating` (with the text in its
/// value) that has the number of the first piece it stands for.
#[pin_project]
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct GateRootText<S> {
    #[pin]
    stream: S,
    held: VecDeque<AgentEvent>,
    ready: VecDeque<AgentEvent>,
}

impl<S> GateRootText<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, held: VecDeque::new(), ready: VecDeque::new() }
    }
}

fn is_text(event: &AgentEvent) -> bool {
    use EventKind::{TextBlockDelta, TextBlockEnd, TextBlockStart};
    event.is_root()
        && matches!(event.kind, TextBlockStart { .. } | TextBlockDelta { .. } | TextBlockEnd { .. })
}

/// Replaces the held prose by one status line.
fn condense(held: VecDeque<AgentEvent>) -> VecDeque<AgentEvent> {
    let mut text = String::new();
    for event in held.iter().filter(|event| is_text(event)) {
        if let EventKind::TextBlockDelta { delta, .. } = &event.kind {
            text.push_str(delta);
        }
    }
    let mut status = held.iter().find(|event| is_text(event)).map(|first| {
        let kind = EventKind::Custom { name: "delegating".into(), value: json!({ "text": text }) };
        AgentEvent::new(first.seq, first.at, Arc::clone(&first.origin), kind)
    });
    held.into_iter().filter_map(|event| if is_text(&event) { status.take() } else { Some(event) }).collect()
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
                *me.ready = std::mem::take(me.held);
                return Poll::Ready(me.ready.pop_front());
            };
            let decides = event.is_root()
                && matches!(event.kind, EventKind::ToolCallStart { .. } | EventKind::ModelCallEnd { .. });
            if !decides && (is_text(&event) || !me.held.is_empty()) {
                me.held.push_back(event);
                continue;
            }
            let held = std::mem::take(me.held);
            let delegates = matches!(event.kind, EventKind::ToolCallStart { .. });
            *me.ready = if delegates && decides { condense(held) } else { held };
            me.ready.push_back(event);
        }
    }
}
