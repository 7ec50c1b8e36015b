//! An answer as a stream of deltas.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use mainstem_model::{ModelDelta, ModelError};

use crate::{
    Server,
    answer::{Answer, Cut, Payloads},
};

/// Decoded deltas that wait to be polled.
pub type Deltas = VecDeque<ModelDelta>;

/// What a vendor's answer means: one payload in, deltas out. No I/O.
pub trait Decode: Send + Unpin + 'static {
    /// Reads one payload: the data of one event, or one line.
    ///
    /// # Errors
    /// If it is not what the API sends, or says that the answer failed. Nothing is read after that.
    fn decode(&mut self, payload: &str, deltas: &mut Deltas) -> Result<(), ModelError>;

    /// Reads an answer of one piece, and ends it.
    ///
    /// # Errors
    /// The same.
    fn decode_whole(&mut self, body: &str, deltas: &mut Deltas) -> Result<(), ModelError>;

    /// Returns `true` if the payload just read was the last.
    fn is_done(&self) -> bool;

    /// Ends the answer: what it cost and why it stopped.
    ///
    /// # Errors
    /// If it broke off.
    fn finish(&mut self, deltas: &mut Deltas) -> Result<(), ModelError>;
}

/// One call. Nothing is sent before the first poll; dropping it closes the connection.
pub(crate) struct Exchange<D> {
    state: State,
    decoder: D,
    server: Arc<Server>,
    /// What one payload brought and was not polled yet.
    deltas: Deltas,
}

enum State {
    Opening(Pin<Box<dyn Future<Output = Result<Answer, ModelError>> + Send>>),
    Reading(Payloads),
    Over,
}

impl<D: Decode> Exchange<D> {
    /// Returns the exchange that begins with `opening` and is read by `decoder`.
    pub(crate) fn new(
        server: Arc<Server>,
        decoder: D,
        opening: impl Future<Output = Result<Answer, ModelError>> + Send + 'static,
    ) -> Self {
        Self { state: State::Opening(Box::pin(opening)), decoder, server, deltas: Deltas::new() }
    }

    /// Goes on by one payload; ready when something was decoded or the answer is over.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ModelError>> {
        Poll::Ready(match &mut self.state {
            State::Opening(opening) => match ready!(opening.as_mut().poll(cx))? {
                Answer::Payloads(payloads) => {
                    self.state = State::Reading(payloads);
                    Ok(())
                }
                Answer::Whole { body, reason } => {
                    self.state = State::Over;
                    self.deltas.push_back(ModelDelta::NotStreaming { reason: (*reason).to_owned() });
                    self.decoder.decode_whole(&body, &mut self.deltas)
                }
            },
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

    fn finish(&mut self) -> Result<(), ModelError> {
        self.state = State::Over;
        self.decoder.finish(&mut self.deltas)
    }

    /// Returns the connection failed, which does no harm to an answer that was complete.
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
