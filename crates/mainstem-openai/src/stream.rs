//! The answer as a stream of deltas.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use mainstem_model::{ErrorKind, ModelDelta, ModelError, ModelRequest};
use mainstem_sse::{SseError, SseStream};

use crate::{
    OpenAi,
    decoder::{Decoder, Deltas},
    open::{Answer, open},
    server::Server,
    transport::{self, Body},
};

/// One call. Nothing is sent before the first poll; dropping it closes the connection.
pub(crate) struct Chat {
    state: State,
    decoder: Decoder,
    server: Arc<Server>,
    /// What one payload brought and was not polled yet.
    deltas: Deltas,
}

enum State {
    Opening(Pin<Box<dyn Future<Output = Result<Answer, ModelError>> + Send>>),
    Reading(SseStream<Body>),
    Over,
}

impl Chat {
    pub(crate) fn new(model: OpenAi, request: ModelRequest) -> Self {
        let server = model.server.clone();
        Self {
            decoder: Decoder::new(server.clone()),
            server,
            state: State::Opening(Box::pin(open(model, request))),
            deltas: Deltas::new(),
        }
    }

    /// Goes on by one event; ready when something was decoded or the answer is over.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ModelError>> {
        Poll::Ready(match &mut self.state {
            State::Opening(opening) => match ready!(opening.as_mut().poll(cx))? {
                Answer::Events(events) => {
                    self.state = State::Reading(events);
                    Ok(())
                }
                Answer::Whole { body, reason } => {
                    self.state = State::Over;
                    self.deltas.push_back(ModelDelta::NotStreaming { reason: (*reason).to_owned() });
                    self.decoder.decode_whole(&body, &mut self.deltas)
                }
            },
            State::Reading(events) => match ready!(Pin::new(events).poll_next(cx)) {
                Some(Ok(event)) => {
                    self.decoder.decode(&event.data, &mut self.deltas)?;
                    if self.decoder.is_done() { self.finish() } else { Ok(()) }
                }
                Some(Err(error)) => self.cut(error),
                None => self.finish(),
            },
            State::Over => Ok(()),
        })
    }

    fn finish(&mut self) -> Result<(), ModelError> {
        self.state = State::Over;
        self.decoder.finish(&mut self.deltas)
    }

    /// The connection failed, which does no harm to an answer that was complete.
    fn cut(&mut self, error: SseError<reqwest::Error>) -> Result<(), ModelError> {
        self.finish().map_err(|_| match error {
            SseError::Source(error) => transport::failure(&self.server, error),
            error => self.server.error(ErrorKind::Protocol, &format!("sent too much: {error}")),
        })
    }
}

impl Stream for Chat {
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
