//! A stream of events as a stream of frames.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;
use mainstem_event::AgentEvent;

use crate::{Encoder, Sse};

/// Encodes any stream of events.
pub trait EncodeExt: Stream<Item = AgentEvent> + Sized {
    /// Returns the frames of an encoder, from its beginning to its end. Empty frames are left out.
    fn encoded<E: Encoder>(self, encoder: E) -> Frames<Self, E> {
        Frames { stream: self, encoder, stage: Stage::First }
    }

    /// Returns the events as server-sent events.
    fn into_sse(self) -> Frames<Self, Sse> {
        self.encoded(Sse::new())
    }
}

impl<S: Stream<Item = AgentEvent>> EncodeExt for S {}

/// The stream of [`EncodeExt::encoded`]. Dropping it drops the stream of events.
#[derive(Clone, Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct Frames<S, E> {
    stream: S,
    encoder: E,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    First,
    Events,
    Over,
}

impl<S: Stream<Item = AgentEvent> + Unpin, E: Encoder + Unpin> Stream for Frames<S, E> {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            let frames = match self.stage {
                Stage::First => {
                    self.stage = Stage::Events;
                    self.encoder.begin()
                }
                Stage::Events => match ready!(Pin::new(&mut self.stream).poll_next(cx)) {
                    Some(event) => self.encoder.event(&event),
                    None => {
                        self.stage = Stage::Over;
                        self.encoder.end()
                    }
                },
                Stage::Over => return Poll::Ready(None),
            };
            if !frames.is_empty() {
                return Poll::Ready(Some(frames));
            }
        }
    }
}
