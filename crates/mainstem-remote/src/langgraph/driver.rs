//! Drives the runs of one turn: the only place of this protocol that waits.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream::unfold};
use mainstem_event::{CancelReason, Decision, EventKind};
use mainstem_message::{ConfirmId, ToolCallId};
use mainstem_tool::ToolOutput;
use serde_json::Value;
use tokio::{
    sync::mpsc::{self, Receiver, Sender},
    time::{sleep, timeout},
};

use super::{
    cursor::Cursor,
    graph::Graph,
    server::{Begun, Server},
};
use crate::{
    BegunTurn, RemoteControl, RemoteError, RemoteEvent, RemoteTurn,
    http::{Frames, INTERVAL, RETRIES},
};

/// How long a stream may have no frame before the run is asked whether it goes on.
const SILENCE: Duration = Duration::from_secs(90);

/// How many answers wait to be taken in.
const ANSWERS: usize = 8;

/// Why a turn without a stream is not live.
const NO_STREAM: &str = "the LangGraph server does not stream runs";

/// A turn, from its first run to its end.
pub(super) struct Driver {
    server: Server,
    turn: RemoteTurn,
    graph: Graph,
    phase: Phase,
    cursor: Cursor,
    /// How often the connection was lost without a frame since.
    losses: u32,
    /// How many runs the turn has had.
    runs: u32,
    shared: Arc<Shared>,
    answers: Receiver<Answer>,
    ready: VecDeque<RemoteEvent>,
}

enum Phase {
    /// The run's stream; it may have to be requested again.
    Reading(Frames),
    Lost(RemoteError),
    /// The run is awaited, because the server does not stream.
    Joining,
    /// The stream has ended.
    Ended,
    /// The graph asks a person.
    Asking,
    Over,
}

/// What the control and the driver share.
#[derive(Debug, Default)]
struct Shared(Mutex<Status>);

#[derive(Clone, Debug, Default)]
struct Status {
    run: String,
    is_cancelled: bool,
}

#[derive(Debug)]
enum Answer {
    Decided(ConfirmId, Decision),
    Cancelled,
}

impl Driver {
    /// Begins the first run of a turn.
    ///
    /// # Errors
    /// The server can't be reached, or refuses.
    pub(super) async fn begin(server: Server, turn: RemoteTurn) -> Result<BegunTurn, RemoteError> {
        let (sender, answers) = mpsc::channel(ANSWERS);
        let shared = Arc::<Shared>::default();
        let control = Control { server: server.clone(), shared: shared.clone(), answers: sender };
        let graph = Graph::new(turn.clone(), &server.assistant);
        let (cursor, ready) = Default::default();
        let phase = Phase::Ended;
        let mut driver =
            Self { server, turn, graph, phase, cursor, losses: 0, runs: 0, shared, answers, ready };
        driver.begin_run(None).await?;
        let events = unfold(driver, async |mut driver| Some((driver.next().await?, driver)));
        Ok(BegunTurn::new(events.boxed(), Arc::new(control)))
    }

    async fn begin_run(&mut self, resume: Option<Value>) -> Result<(), RemoteError> {
        self.runs += 1;
        let key = format!("{}-{}", self.turn.id, self.runs);
        let Begun { run, frames } = self.server.begin(&self.turn, resume, &key).await?;
        let is_cancelled = self.shared.with(|status| {
            status.run.clone_from(&run);
            status.is_cancelled
        });
        if is_cancelled {
            // The cancellation has reached the run before this one.
            let _ = self.server.cancel(&run).await;
        }
        self.cursor = Cursor::default();
        self.phase = match frames {
            Some(frames) => Phase::Reading(frames),
            None => {
                self.graph.add(EventKind::StreamFallback { reason: NO_STREAM.to_owned() });
                Phase::Joining
            }
        };
        Ok(())
    }

    /// Returns the next event; `None` after the end.
    async fn next(&mut self) -> Option<Result<RemoteEvent, RemoteError>> {
        loop {
            self.ready.extend(self.graph.take());
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if let Phase::Over = self.phase {
                return None;
            }
            if let Err(error) = self.step().await {
                self.phase = Phase::Over;
                return Some(Err(error));
            }
        }
    }

    async fn step(&mut self) -> Result<(), RemoteError> {
        match &mut self.phase {
            Phase::Reading(frames) => match timeout(SILENCE, frames.next()).await {
                Ok(Some(Ok(frame))) => {
                    self.losses = 0;
                    if self.cursor.accept(&frame) {
                        let taken = self.graph.take_in(&frame.event, &frame.data);
                        taken.map_err(|what| self.server.connection.invalid(&what))?;
                    }
                }
                Ok(Some(Err(error))) => {
                    self.phase = Phase::Lost(self.server.connection.unreachable(&error));
                }
                // The run says whether it goes on.
                Ok(None) | Err(_) => self.phase = Phase::Ended,
            },
            Phase::Lost(error) => {
                let error = error.clone();
                self.reconnect(error).await?;
            }
            Phase::Joining => {
                let run = self.shared.run();
                self.server.join(&run).await?;
                self.phase = Phase::Ended;
            }
            Phase::Ended => self.settle().await?,
            Phase::Asking => self.await_answer().await?,
            Phase::Over => {}
        }
        Ok(())
    }

    /// Requests the stream again, after a while unless it is the first time.
    async fn reconnect(&mut self, error: RemoteError) -> Result<(), RemoteError> {
        if self.losses > RETRIES {
            return Err(error);
        }
        if self.losses > 0 {
            sleep(INTERVAL).await;
        }
        self.losses += 1;
        let after = self.cursor.resume();
        self.phase = Phase::Reading(self.server.frames(&self.shared.run(), &after).await?);
        Ok(())
    }

    /// Ends the turn, asks, or goes on if the run does: a stream also ends when a proxy cuts it.
    async fn settle(&mut self) -> Result<(), RemoteError> {
        let run = self.server.run(&self.shared.run()).await?;
        if self.shared.is_cancelled() {
            self.graph.cancelled();
            self.phase = Phase::Over;
            return Ok(());
        }
        if !run.is_over() {
            self.losses = 1;
            self.phase = Phase::Lost(RemoteError::Ended);
            return Ok(());
        }
        let state = self.server.state().await?;
        let asks = self.graph.settle(&run, &state).map_err(|what| self.server.connection.invalid(&what))?;
        self.phase = if asks { Phase::Asking } else { Phase::Over };
        Ok(())
    }

    async fn await_answer(&mut self) -> Result<(), RemoteError> {
        let answer = self.answers.recv().await.unwrap_or(Answer::Cancelled);
        match answer {
            Answer::Decided(id, decision) => match self.graph.answer(&id, decision) {
                Some(value) => self.begin_run(Some(value)).await,
                None => Ok(()),
            },
            Answer::Cancelled => {
                self.graph.cancelled();
                self.phase = Phase::Over;
                Ok(())
            }
        }
    }
}

impl Shared {
    fn with<T>(&self, work: impl FnOnce(&mut Status) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn run(&self) -> String {
        self.with(|status| status.run.clone())
    }

    fn is_cancelled(&self) -> bool {
        self.with(|status| status.is_cancelled)
    }
}

struct Control {
    server: Server,
    shared: Arc<Shared>,
    answers: Sender<Answer>,
}

#[async_trait]
impl RemoteControl for Control {
    async fn cancel(&self, _: &CancelReason) -> Result<(), RemoteError> {
        self.shared.with(|status| status.is_cancelled = true);
        // A graph that asks has no run to stop.
        let _ = self.answers.try_send(Answer::Cancelled);
        self.server.cancel(&self.shared.run()).await
    }

    async fn confirm(&self, id: &ConfirmId, decision: Decision) -> Result<(), RemoteError> {
        let answer = Answer::Decided(id.clone(), decision);
        self.answers.send(answer).await.map_err(|_| RemoteError::Ended)
    }

    async fn submit(&self, _: &ToolCallId, _: ToolOutput) -> Result<(), RemoteError> {
        Err(RemoteError::refused("LangGraph's API has no calls that the caller runs"))
    }
}
