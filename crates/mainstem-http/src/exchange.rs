//! A response as a stream of deltas.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use mainstem_model::{ModelDelta, ModelError, message::RateLimits};

use crate::{
    Server,
    response::{Cut, Payloads, ResponseBody},
};

/// Decoded deltas that were not yielded yet.
pub type Deltas = VecDeque<ModelDelta>;

/// The decoder of a vendor's response: one payload in, deltas out. No I/O.
pub trait Decode: Send + Unpin + 'static {
    /// Reads one payload: the data of one event, or one line.
    ///
    /// # Errors
    /// If it is not valid in the API, or reports a failure. No payload is read after that.
    fn decode(&mut self, payload: &str, deltas: &mut Deltas) -> Result<(), ModelError>;

    /// Reads a response of one piece, and ends it.
    ///
    /// # Errors
    /// As for [`decode`](Self::decode).
    fn decode_whole(&mut self, body: &str, deltas: &mut Deltas) -> Result<(), ModelError>;

    /// Returns `true` if the last payload was the end.
    fn is_done(&self) -> bool;

    /// Ends the response: adds the usage and the reason to stop.
    ///
    /// # Errors
    /// If it is incomplete.
    fn finish(&mut self, deltas: &mut Deltas) -> Result<(), ModelError>;
}

/// One call. The first poll sends the request; dropping it closes the connection.
pub(crate) struct Exchange<D> {
    state: State,
    decoder: D,
    server: Arc<Server>,
    /// The deltas of a payload that were not yielded yet.
    deltas: Deltas,
}

/// A response that begins.
type Opened = Result<(RateLimits, ResponseBody), ModelError>;

enum State {
    Opening(Pin<Box<dyn Future<Output = Opened> + Send>>),
    Reading(Payloads),
    Over,
}

impl<D: Decode> Exchange<D> {
    /// Creates the exchange that begins with `opening` and is read by `decoder`.
    pub(crate) fn new(
        server: Arc<Server>,
        decoder: D,
        opening: impl Future<Output = Opened> + Send + 'static,
    ) -> Self {
        Self { state: State::Opening(Box::pin(opening)), decoder, server, deltas: Deltas::new() }
    }

    /// Reads one payload; ready when it was decoded or the response is over.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ModelError>> {
        Poll::Ready(match &mut self.state {
            State::Opening(opening) => {
                let (limits, body) = ready!(opening.as_mut().poll(cx))?;
                self.begin(limits, body)
            }
            State::Reading(payloads) => match ready!(payloads.poll_next(cx)) {
                Some(Ok(payload)) => {
                    self.decoder.decode(&payload, &mut self.deltas)?;
                    if self.decoder.is_done() { self.finish() } else { Ok(()) }
                }
                Some(Err(cut)) => self.cut(cut),
                None => self.finish(),
            },
            State::Over => Ok(()),
        })
    }

    fn begin(&mut self, limits: RateLimits, body: ResponseBody) -> Result<(), ModelError> {
        if !limits.is_empty() {
            self.deltas.push_back(ModelDelta::RateLimits(Box::new(limits)));
        }
        match body {
            ResponseBody::Payloads(payloads) => {
                self.state = State::Reading(payloads);
                Ok(())
            }
            ResponseBody::Whole { body, reason } => {
                self.state = State::Over;
                self.deltas.push_back(ModelDelta::NotStreaming { reason: (*reason).to_owned() });
                self.decoder.decode_whole(&body, &mut self.deltas)
            }
        }
    }

    fn finish(&mut self) -> Result<(), ModelError> {
        self.state = State::Over;
        self.decoder.finish(&mut self.deltas)
    }

    /// Ends after the connection failed. A response that was complete by then is fine.
    fn cut(&mut self, cut: Cut) -> Result<(), ModelError> {
        self.finish().map_err(|_| cut.into_error(&self.server))
    }
}

impl<D: Decode> Stream for Exchange<D> {
    type Item = Result<ModelDelta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let me = &mut *self;
        loop {
            if let Some(delta) = me.deltas.pop_front() {
                return Poll::Ready(Some(Ok(delta)));
            }
            if let State::Over = me.state {
                return Poll::Ready(None);
            }
            if let Err(error) = ready!(me.poll_step(cx)) {
                me.state = State::Over;
                me.deltas.clear();
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}
