//! A response as a stream of deltas.

use std::{
    collections::VecDeque,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_core::Stream;
use mainstem_model::{
    ModelDelta, ModelError,
    message::{RateLimits, Usage},
};
use tokio::time::Instant;

use crate::{
    Resumption, Server,
    response::{Cut, Payloads, ResponseBody},
    resumption::{Failed, Found, Resumer, Resuming},
};

/// How often a response is reported that is alive and says nothing.
const PULSE: Duration = Duration::from_secs(10);

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

    /// Reads the state of a response that was streamed until a cut: once the response is complete,
    /// adds what did not come before. Returns `false` if the body is not a state.
    ///
    /// # Errors
    /// If the response has failed.
    fn decode_state(&mut self, _body: &str, _deltas: &mut Deltas) -> Result<bool, ModelError> {
        Ok(false)
    }

    /// Returns how far a response that outlives its connection has come, as a number that grows;
    /// `None` for one that ends with its connection, and for one that is over.
    fn position(&self) -> Option<u64> {
        None
    }

    /// Returns where the response is read on after a cut; `None` for one that ends with its
    /// connection, and for one that is over.
    fn resumption(&self) -> Option<Resumption> {
        None
    }

    /// Returns the tokens that the response has reported so far. Those of a response that is cut
    /// off or fails count, too.
    fn usage(&mut self) -> Option<Usage>;

    /// Returns `true` if the last payload was the end.
    fn is_done(&self) -> bool;

    /// Ends the response: adds the usage and the reason to stop.
    ///
    /// # Errors
    /// If it is incomplete.
    fn finish(&mut self, deltas: &mut Deltas) -> Result<(), ModelError>;
}

/// One call. The first poll sends the request; dropping it closes the connection, and cancels a
/// response that outlives that.
pub(crate) struct Exchange<D: Decode> {
    state: State,
    decoder: D,
    server: Arc<Server>,
    resumer: Resumer,
    /// How far the response had come at the last payload.
    position: Option<u64>,
    /// The deltas of a payload that were not yielded yet.
    deltas: Deltas,
    /// When the first payload since the last delta came, or since the last report.
    quiet_since: Option<Instant>,
    /// Whether a payload was read.
    has_begun: bool,
    /// The usage that was yielded.
    counted: Option<Usage>,
}

/// A response that begins.
type Opened = Result<(RateLimits, ResponseBody), ModelError>;

enum State {
    Opening(Pin<Box<dyn Future<Output = Opened> + Send>>),
    Reading(Payloads),
    /// The connection was cut, and the rest is requested.
    Resuming(Resuming),
    /// It has failed, and what it has used is yielded before the error.
    Failed(ModelError),
    Over,
}

impl<D: Decode> Exchange<D> {
    /// Creates the exchange that begins with `opening` and is read by `decoder`.
    pub(crate) fn new(
        resumer: Resumer,
        decoder: D,
        server: Arc<Server>,
        opening: impl Future<Output = Opened> + Send + 'static,
    ) -> Self {
        Self {
            state: State::Opening(Box::pin(opening)),
            decoder,
            server,
            resumer,
            position: None,
            deltas: Deltas::new(),
            quiet_since: None,
            has_begun: false,
            counted: None,
        }
    }

    /// Reads one payload; ready when it was decoded or the response is over.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ModelError>> {
        Poll::Ready(match &mut self.state {
            State::Opening(opening) => {
                let (limits, body) = ready!(opening.as_mut().poll(cx))?;
                self.begin(limits, body)
            }
            State::Reading(payloads) => match payloads.poll_next(cx) {
                Poll::Ready(Some(Ok(payload))) => self.payload(&payload),
                Poll::Ready(Some(Err(cut))) => self.cut(Some(cut)),
                Poll::Ready(None) => self.cut(None),
                Poll::Pending if payloads.has_progress() && self.note_quiet() => Ok(()),
                Poll::Pending => {
                    ready!(self.resumer.poll_silence(cx));
                    let Some(from) = self.decoder.resumption() else { return Poll::Pending };
                    self.state = State::Resuming(self.resumer.resume_silent(from)?);
                    Ok(())
                }
            },
            State::Resuming(resuming) => match ready!(resuming.as_mut().poll(cx)) {
                Ok(found) => self.resumed(found),
                Err(failed) => self.resume_again(failed),
            },
            State::Failed(_) | State::Over => Ok(()),
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

    fn payload(&mut self, payload: &str) -> Result<(), ModelError> {
        self.decoder.decode(payload, &mut self.deltas)?;
        if self.decoder.is_done() {
            return self.finish();
        }
        // The prompt's tokens, which count if the reader stops.
        if !mem::replace(&mut self.has_begun, true) {
            self.yield_usage();
        }
        self.note_quiet();
        // Repeated events, and payloads other than events, do not move the position.
        let position = self.decoder.position();
        if position > self.position {
            self.position = position;
            self.resumer.came();
        }
        Ok(())
    }

    /// Reports every 10 s that a response without new content is still active: a vendor sends
    /// `ping`s, or comments, while it holds an answer back. Returns `true` if there are deltas to
    /// yield.
    fn note_quiet(&mut self) -> bool {
        if !self.deltas.is_empty() {
            self.quiet_since = None;
        } else if self.quiet_since.get_or_insert_with(Instant::now).elapsed() >= PULSE {
            self.deltas.push_back(ModelDelta::InProgress);
            self.quiet_since = Some(Instant::now());
        }
        !self.deltas.is_empty()
    }

    /// Yields what the response has used, if that is new.
    fn yield_usage(&mut self) {
        let usage = self.decoder.usage().filter(|usage| self.counted != Some(*usage));
        self.counted = usage.or(self.counted);
        self.deltas.extend(usage.map(ModelDelta::Usage));
    }

    fn finish(&mut self) -> Result<(), ModelError> {
        self.state = State::Over;
        self.decoder.finish(&mut self.deltas)
    }

    /// Goes on after the connection has ended. A response that was complete by then is fine.
    fn cut(&mut self, cut: Option<Cut>) -> Result<(), ModelError> {
        if let Some(from) = self.decoder.resumption() {
            let cut = cut.map_or_else(|| self.server.unfinished(), |cut| cut.into_error(&self.server));
            self.state = State::Resuming(self.resumer.resume(from, cut)?);
            return Ok(());
        }
        self.finish().map_err(|unfinished| cut.map_or(unfinished, |cut| cut.into_error(&self.server)))
    }

    fn resumed(&mut self, found: Found) -> Result<(), ModelError> {
        match found {
            Found::Rest(payloads) => {
                self.resumer.watch();
                self.state = State::Reading(payloads);
            }
            Found::State(body) => {
                if !self.decoder.decode_state(&body, &mut self.deltas)? {
                    return self.resume_again(Failed::Passing);
                }
                let Some(from) = self.decoder.resumption() else { return self.finish() };
                self.state = State::Resuming(self.resumer.go_on(from)?);
                self.deltas.push_back(ModelDelta::InProgress);
            }
        }
        Ok(())
    }

    /// Cancels a response that the server would go on with.
    fn cancel(&mut self) {
        if let Some(from) = self.decoder.resumption() {
            self.resumer.cancel(from);
        }
    }

    fn resume_again(&mut self, failed: Failed) -> Result<(), ModelError> {
        if let Some(from) = self.decoder.resumption() {
            self.state = State::Resuming(self.resumer.failed(from, failed)?);
        }
        Ok(())
    }
}

impl<D: Decode> Drop for Exchange<D> {
    fn drop(&mut self) {
        self.cancel();
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
            match mem::replace(&mut me.state, State::Over) {
                State::Failed(error) => return Poll::Ready(Some(Err(error))),
                State::Over => return Poll::Ready(None),
                state => me.state = state,
            }
            if let Err(error) = ready!(me.poll_step(cx)) {
                me.state = State::Failed(error);
                me.deltas.clear();
                me.cancel();
                me.yield_usage();
            }
        }
    }
}
