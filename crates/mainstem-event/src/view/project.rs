//! Streams that map each event: to prose, v1 events, or lines of JSON.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use pin_project::pin_project;

use crate::{AgentEvent, EventKind, StreamOptions, event::Event, event::Projector};

/// The stream of [`EventStreamExt::text`](super::EventStreamExt::text).
#[pin_project]
#[derive(Clone, Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct Text<S>(#[pin] S);

impl<S> Text<S> {
    pub(super) fn new(stream: S) -> Self {
        Self(stream)
    }
}

impl<S: Stream<Item = AgentEvent>> Stream for Text<S> {
    type Item = String;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<String>> {
        let mut stream = self.project().0;
        loop {
            let Some(event) = ready!(stream.as_mut().poll_next(cx)) else { return Poll::Ready(None) };
            if let EventKind::TextBlockDelta { delta, .. } = &event.kind {
                return Poll::Ready(Some(delta.clone()));
            }
        }
    }
}

/// The stream of [`EventStreamExt::into_events`](super::EventStreamExt::into_events).
#[pin_project]
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct Events<S> {
    #[pin]
    stream: S,
    projector: Projector,
}

impl<S> Events<S> {
    pub(super) fn new(stream: S, options: StreamOptions) -> Self {
        Self { stream, projector: Projector::new(options) }
    }
}

impl<S: Stream<Item = AgentEvent>> Stream for Events<S> {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut me = self.project();
        loop {
            let Some(event) = ready!(me.stream.as_mut().poll_next(cx)) else { return Poll::Ready(None) };
            if let Some(event) = me.projector.push(&event) {
                return Poll::Ready(Some(event));
            }
        }
    }
}

/// The stream of [`EventStreamExt::into_ndjson`](super::EventStreamExt::into_ndjson).
#[pin_project]
#[derive(Clone, Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct Ndjson<S>(#[pin] S);

impl<S> Ndjson<S> {
    pub(super) fn new(stream: S) -> Self {
        Self(stream)
    }
}

impl<S: Stream<Item = AgentEvent>> Stream for Ndjson<S> {
    type Item = String;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<String>> {
        let event = ready!(self.project().0.poll_next(cx));
        Poll::Ready(event.map(|event| {
            let mut line = event.to_json();
            line.push('\n');
            line
        }))
    }
}
