//! The stream that plays a turn.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_core::Stream;
use mainstem_message::{ContentBlock, Message, StopReason, Usage};
use tokio::time::{Sleep, sleep};

use super::turn::{Step, Turn};
use crate::{ModelDelta, ModelError, ModelRequest};

pub(super) struct Play {
    turn: Arc<Turn>,
    next: usize,
    repeated: usize,
    sleep: Option<Pin<Box<Sleep>>>,
    failure: Option<ModelError>,
    end: End,
    input_bytes: usize,
    output_bytes: usize,
    called: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    Usage,
    Stop,
    Over,
}

impl Play {
    pub(super) fn new(turn: Arc<Turn>, request: &ModelRequest) -> Self {
        Self {
            failure: turn.take_failure(),
            turn,
            next: 0,
            repeated: 0,
            sleep: None,
            end: End::Usage,
            input_bytes: request.messages.iter().map(|message| text_bytes(message)).sum(),
            output_bytes: 0,
            called: false,
        }
    }

    fn deliver(&mut self, delta: ModelDelta) -> Poll<Option<Result<ModelDelta, ModelError>>> {
        self.output_bytes += match &delta {
            ModelDelta::Text(text) | ModelDelta::Thinking(text) => text.len(),
            ModelDelta::CallArguments { delta, .. } => delta.len(),
            _ => 0,
        };
        self.called |= matches!(delta, ModelDelta::CallStart { .. });
        Poll::Ready(Some(Ok(delta)))
    }

    fn fail(&mut self, error: ModelError) -> Poll<Option<Result<ModelDelta, ModelError>>> {
        self.next = usize::MAX;
        self.end = End::Over;
        Poll::Ready(Some(Err(error)))
    }

    /// Yields the usage, then the reason to stop, then the end.
    fn finish(&mut self) -> Poll<Option<Result<ModelDelta, ModelError>>> {
        let tokens = |bytes: usize| bytes.div_ceil(4) as u64;
        let delta = match self.end {
            End::Usage => {
                self.end = End::Stop;
                let counted = Usage::new(tokens(self.input_bytes), tokens(self.output_bytes));
                ModelDelta::Usage(self.turn.usage.unwrap_or(counted))
            }
            End::Stop => {
                self.end = End::Over;
                let natural = if self.called { StopReason::ToolCalls } else { StopReason::Stop };
                ModelDelta::Stop(self.turn.stop.clone().unwrap_or(natural))
            }
            End::Over => return Poll::Ready(None),
        };
        Poll::Ready(Some(Ok(delta)))
    }

    fn repeat(&mut self, text: String, times: usize) -> Option<ModelDelta> {
        if self.repeated == times {
            (self.next, self.repeated) = (self.next + 1, 0);
            return None;
        }
        self.repeated += 1;
        Some(ModelDelta::Text(text))
    }

    fn wait(&mut self, time: Duration, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep(time)));
        ready!(sleep.as_mut().poll(cx));
        (self.next, self.sleep) = (self.next + 1, None);
        Poll::Ready(())
    }
}

/// Returns the number of bytes of a message's text.
fn text_bytes(message: &Message) -> usize {
    message.content.iter().filter_map(ContentBlock::as_text).map(str::len).sum()
}

impl Stream for Play {
    type Item = Result<ModelDelta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let me = &mut *self;
        if let Some(error) = me.failure.take() {
            return me.fail(error);
        }
        loop {
            match me.turn.steps.get(me.next).cloned() {
                None => {
                    let is_at_end = me.end == End::Usage;
                    return match me.turn.take_cut_if(is_at_end) {
                        Some(error) => me.fail(error),
                        None => me.finish(),
                    };
                }
                Some(Step::Delta(delta)) => {
                    me.next += 1;
                    return me.deliver(delta);
                }
                Some(Step::Repeat { text, times }) => {
                    if let Some(delta) = me.repeat(text, times) {
                        return me.deliver(delta);
                    }
                }
                Some(Step::Wait(time)) => ready!(me.wait(time, cx)),
                Some(Step::Fail(error)) => return me.fail(error),
                Some(Step::Hang) => return Poll::Pending,
                #[expect(clippy::panic, reason = "a script may ask for one, to show that it is contained")]
                Some(Step::Panic(message)) => panic!("{message}"),
            }
        }
    }
}
