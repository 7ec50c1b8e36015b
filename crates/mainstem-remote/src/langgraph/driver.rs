//! Drives the runs of one turn: the only place of this protocol that waits.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::unfold};
use mainstem_event::{EventKind, fold::RecordedTurn};
use serde_json::Value;
use tokio::{
    sync::mpsc::Receiver,
    time::{sleep, timeout},
};

use super::{
    control::{Answer, Control, Shared},
    cursor::Cursor,
    graph::Graph,
    server::{Begun, FoundRun, Server},
};
use crate::{
    BegunTurn, RemoteError, RemoteEvent, RemoteTurn,
    http::{Frames, INTERVAL, RETRIES},
};

/// How often a graph that asks is looked at: another client may answer.
const LOOK: Duration = Duration::from_secs(5);

/// How long a stream may have no frame before the run is asked whether it goes on.
const SILENCE: Duration = Duration::from_secs(90);

/// Why a turn that is found again is not repeated.
const FALLBACK: &str = "LangGraph's server keeps the stream of a run only while the run is active";

/// Why a turn without a stream is not live.
const NO_STREAM: &str = "the LangGraph server does not stream the run";

/// The first frame of a run.
const FIRST: &str = "metadata";

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
    /// Whether a stream was requested.
    has_read: bool,
    /// Whether the server streams runs, and tells a stream again from its beginning.
    streams: bool,
    /// Whether the next frame has to be the first one of its run.
    is_first: bool,
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

impl Driver {
    /// Begins the first run of a turn.
    ///
    /// # Errors
    /// The server can't be reached, or refuses.
    pub(super) async fn begin(server: Server, turn: RemoteTurn) -> Result<BegunTurn, RemoteError> {
        let graph = Graph::new(turn.clone(), &server.assistant);
        let (mut driver, control) = Self::new(server, turn, graph);
        driver.begin_run(None).await?;
        Ok(driver.into_turn(control))
    }

    /// Goes on with a turn that another process has begun, at its latest run.
    pub(super) fn found(
        server: Server,
        turn: RemoteTurn,
        recorded: &RecordedTurn,
        run: FoundRun,
    ) -> BegunTurn {
        let graph = Graph::recorded(turn.clone(), &server.assistant, recorded);
        let (mut driver, control) = Self::new(server, turn, graph);
        driver.shared.with(|status| status.run.clone_from(&run.id));
        driver.graph.set_run(&run.id);
        (driver.runs, driver.is_first) = (run.number, true);
        driver.cursor = Cursor::recorded(&run.frame);
        driver.into_turn(control).with_fallback(FALLBACK)
    }

    fn new(server: Server, turn: RemoteTurn, graph: Graph) -> (Self, Control) {
        let shared = Arc::<Shared>::default();
        let (control, answers) = Control::new(server.clone(), shared.clone());
        let (cursor, ready) = Default::default();
        let phase = Phase::Ended;
        (
            Self {
                server,
                turn,
                graph,
                phase,
                cursor,
                losses: 0,
                runs: 0,
                has_read: false,
                streams: true,
                is_first: false,
                shared,
                answers,
                ready,
            },
            control,
        )
    }

    fn into_turn(self, control: Control) -> BegunTurn {
        let events = unfold(self, async |mut driver| Some((driver.next().await?, driver)));
        BegunTurn::new(events.boxed(), Arc::new(control))
    }

    async fn begin_run(&mut self, resume: Option<Value>) -> Result<(), RemoteError> {
        self.runs += 1;
        self.has_read = true;
        let key = format!("{}-{}", self.turn.id, self.runs);
        self.shared.with(|status| status.requested = Some(key.clone()));
        let Begun { run, frames } = self.server.begin(&self.turn, resume, &key).await?;
        let is_cancelled = self.shared.with(|status| {
            status.run.clone_from(&run);
            status.requested = None;
            status.is_cancelled
        });
        if is_cancelled {
            // The cancellation has reached the run before this one.
            let _ = self.server.cancel(&run).await;
        }
        self.graph.begin_run(&run);
        self.cursor = Cursor::default();
        self.phase = match frames {
            Some(frames) => Phase::Reading(frames),
            None => self.without_stream(),
        };
        Ok(())
    }

    /// Says that the rest is not live.
    fn without_stream(&mut self) -> Phase {
        if std::mem::replace(&mut self.streams, false) {
            self.graph.add(EventKind::StreamFallback { reason: NO_STREAM.to_owned() });
        }
        Phase::Joining
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
                Ok(Some(Ok(frame))) if std::mem::take(&mut self.is_first) && frame.event != FIRST => {
                    self.phase = self.without_stream();
                }
                Ok(Some(Ok(frame))) => {
                    self.losses = 0;
                    let is_shown = self.cursor.is_recorded(&frame) && is_told_once(&frame.event);
                    if self.cursor.accept(&frame) && !is_shown {
                        self.graph.set_frame(frame.id.as_deref());
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
                match self.server.join(&run).await {
                    // The state of the run says whether it is over.
                    Ok(()) | Err(RemoteError::Unreachable { .. } | RemoteError::Refused { .. }) => {}
                    Err(error) => return Err(error),
                }
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
        self.has_read = true;
        let after = self.cursor.resume();
        self.phase = match self.server.frames(&self.shared.run(), &after).await {
            Err(RemoteError::Refused { status: Some(404 | 405 | 501), .. }) => self.without_stream(),
            frames => Phase::Reading(frames?),
        };
        Ok(())
    }

    /// Ends the turn, asks, or goes on if the run does: a stream also ends when a proxy cuts it.
    async fn settle(&mut self) -> Result<(), RemoteError> {
        let run = self.server.run(&self.shared.run()).await?;
        if self.shared.is_cancelled() {
            if !run.is_over() {
                // The end of the turn drops the control's own request, which may be unsent.
                self.server.cancel(&self.shared.run()).await?;
            }
            self.graph.cancelled();
            self.phase = Phase::Over;
            return Ok(());
        }
        if !run.is_over() && !self.streams {
            sleep(INTERVAL).await;
            self.phase = Phase::Joining;
            return Ok(());
        }
        if !run.is_over() {
            // The stream of a run that was found is requested at once.
            self.losses = u32::from(self.has_read);
            self.phase = Phase::Lost(RemoteError::Ended);
            return Ok(());
        }
        let state = self.server.state().await?;
        let asks = self.graph.settle(&run, &state).map_err(|what| self.server.connection.invalid(&what))?;
        self.phase = if asks { Phase::Asking } else { Phase::Over };
        Ok(())
    }

    async fn await_answer(&mut self) -> Result<(), RemoteError> {
        let Ok(answer) = timeout(LOOK, self.answers.recv()).await else { return self.look().await };
        match answer.unwrap_or(Answer::Cancelled) {
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

    /// Goes on with the latest run if another client has answered.
    async fn look(&mut self) -> Result<(), RemoteError> {
        match resumed(&self.server, &self.shared.run()).await {
            Ok(Some(run)) => {
                self.graph.answered_elsewhere();
                if run != self.shared.run() {
                    self.graph.begin_run(&run);
                    self.cursor = Cursor::default();
                    self.shared.with(|status| status.run = run);
                }
                (self.losses, self.has_read) = (0, false);
                self.phase = Phase::Lost(RemoteError::Ended);
            }
            Ok(None) => {}
            // The answer may come when the server is back.
            Err(error) => tracing::debug!(%error, "can't read the state of a thread that waits"),
        }
        Ok(())
    }
}

/// Returns the run in which a thread goes on that waits for an answer in this run; `None` if it
/// still waits.
async fn resumed(server: &Server, run: &str) -> Result<Option<String>, RemoteError> {
    let Some(latest) = server.latest().await? else { return Ok(None) };
    if latest.run_id == run && latest.is_over() {
        let state = server.state().await?;
        let waits = state.tasks.iter().any(|task| !task.interrupts.is_empty());
        return Ok((!waits).then_some(latest.run_id));
    }
    Ok(Some(latest.run_id))
}

/// Returns `true` for frames whose events are shown as they come, and not as a part of a message.
fn is_told_once(event: &str) -> bool {
    !["messages", "tasks", "metadata", "error", "end"]
        .iter()
        .any(|mode| event.strip_prefix(mode).is_some_and(|rest| rest.is_empty() || rest.starts_with('|')))
}
