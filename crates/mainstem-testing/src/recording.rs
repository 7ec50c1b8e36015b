//! A recorded session as a test: the models and the tools answer what they answered then.
//!
//! `mainstem sessions export ID --test` and the page write a test of this form. The record is the
//! cassette: it has the answers of the models and the results of the tools. The loop, subagents,
//! approvals and background tasks are not played from it. They run, and [`Recording::check`]
//! compares what they do with the record.

mod answers;
mod cast;
mod difference;
mod ids;
mod lanes;
mod model;
mod play;
mod rules;
mod schedule;
mod script;

use std::{fmt, sync::Arc};

use mainstem::{Harness, HarnessBuilder, model::Model};
use mainstem_event::{AgentEvent, Ids};

pub use self::difference::Difference;
use self::{ids::RecordedIds, model::RecordedModel, schedule::Stage, script::Script};
use crate::{Violation, laws};

/// A recorded session, to be run again without models, tools and people.
///
/// What is played: the complete answers of models, the results of tools, a person's decisions,
/// messages and cancels, each at the time when it came. What is not: attempts of a model call that
/// failed and were repeated, waits for rate limits, and events of the application.
///
/// The test needs tokio's paused clock, so that it takes no time and all happens in the order of
/// the record.
///
/// ```
/// use mainstem::prelude::*;
/// use mainstem_testing::Recording;
///
/// # async fn record() -> Vec<AgentEvent> {
/// #     let model = ScriptedModel::new().agent("main", [Turn::new().text("Hello.")]);
/// #     Harness::builder("main", model).build().unwrap().stream_events("Hi").collect().await
/// # }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let text: String = record().await.iter().map(|event| event.to_json() + "\n").collect();
/// # let text = &*text;
/// // `text` is a line of JSON for each event, as `mainstem sessions export` writes it.
/// let recording = Recording::parse(text)?;
/// // The recorded agents and tools …
/// recording.check(&recording.harness().build()?).await;
/// // … or your own, with the recorded answers of the models.
/// let harness = Harness::builder("main", recording.model()).with_ids(recording.ids()).build()?;
/// recording.check(&harness).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Recording {
    script: Arc<Script>,
    stage: Stage,
}

/// Why a record can't be played. `Debug` is the sentence of `Display`, which `unwrap` prints in a
/// test.
#[non_exhaustive]
pub enum RecordingError {
    /// A line is not an event.
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it, and in which column.
        error: serde_json::Error,
    },
    /// The events break a law, such as those of a run that has not ended.
    Law(Violation),
    /// An event can't be played.
    Unplayable {
        /// Its number.
        seq: u64,
        /// What it is.
        what: String,
    },
    /// No run began.
    Empty,
}

impl Recording {
    /// Reads a record: a line of JSON for each event, from the first of the session.
    ///
    /// # Errors
    /// A line is not an event; else as [`new`](Self::new).
    pub fn parse(record: &str) -> Result<Self, RecordingError> {
        let lines = record.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let event = |(index, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| RecordingError::Line { line: index + 1, error })
        };
        Self::new(lines.map(event).collect::<Result<_, _>>()?)
    }

    /// Takes the events of a session, from its first one to one where all runs and tasks have
    /// ended.
    ///
    /// # Errors
    /// A law is broken, or the session has what can't be played: a compaction, whose summary is not
    /// in the record; plan mode; an output schema that is not in the record; rules that differ
    /// between agents; runs that were taken up after a restart; a gap.
    pub fn new(events: Vec<AgentEvent>) -> Result<Self, RecordingError> {
        laws(&events).map_err(RecordingError::Law)?;
        Ok(Self { script: Arc::new(Script::of(events)?), stage: Stage::default() })
    }

    /// Returns the recorded events.
    pub fn events(&self) -> &[AgentEvent] {
        &self.script.events
    }

    /// Returns a model for all agents: each instance gets the answers that it got then, in their
    /// order. An instance that asks for more gets an error.
    pub fn model(&self) -> impl Model {
        RecordedModel::new(self.script.clone(), self.stage.clone())
    }

    /// Returns the recorded ids of instances and tasks, in the order of their creation; a harness
    /// needs them to find the answers of its instances.
    pub fn ids(&self) -> impl Ids {
        RecordedIds::new(self.script.clone())
    }

    /// Returns a builder of a harness with the recorded agents and tools: each call has the result
    /// that it had then, and needs approval if it needed it then.
    ///
    /// Agents have their recorded declarations, or, if the record is without declarations, the
    /// defaults. What the program sets is not in a record: if the recorded harness had other limits
    /// than the defaults, such as [`with_wait`](HarnessBuilder::with_wait), set them.
    pub fn harness(&self) -> HarnessBuilder {
        cast::harness(self)
    }

    /// Runs the session again and returns its events: for a snapshot of your own, by
    /// [`timeline`](crate::timeline).
    ///
    /// A harness is for one play: answers and ids are used up. A recording is played by one harness
    /// at a time.
    ///
    /// Its runs begin, and the person acts, when they did then. It returns once the runs have
    /// ended, or an hour after the end of the record. The events that background tasks emit later
    /// are missing.
    pub async fn play(&self, harness: &Harness) -> Vec<AgentEvent> {
        play::play(&self.script, &self.stage, harness).await
    }

    /// Runs the session again and checks that each agent does what it did then. Times, ids of
    /// blocks, costs and names of models make no difference, and neither does the order of results
    /// of parallel calls.
    ///
    /// # Panics
    /// If a law is broken, or an agent does something else; the message has both.
    pub async fn check(&self, harness: &Harness) {
        let events = self.play(harness).await;
        if let Err(different) = self.compare(&events) {
            #[expect(clippy::panic, reason = "an assertion")]
            {
                panic!("{different}");
            }
        }
    }

    /// Compares events with the recorded ones, as [`check`](Self::check) does.
    ///
    /// # Errors
    /// The first difference of an agent.
    pub fn compare(&self, events: &[AgentEvent]) -> Result<(), Difference> {
        difference::between(&self.script.events, events)
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("events", &self.script.events.len()).finish_non_exhaustive()
    }
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { line, error } => write!(f, "line {line} of the record is not an event: {error}"),
            Self::Law(broken) => {
                write!(f, "{broken}; a recording needs all events of a session whose runs have ended")
            }
            Self::Unplayable { seq, what } => write!(f, "event {seq} can't be played: {what}"),
            Self::Empty => f.write_str("the record has no run"),
        }
    }
}

impl fmt::Debug for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for RecordingError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Line { error, .. } => Some(error),
            Self::Law(broken) => Some(broken),
            Self::Unplayable { .. } | Self::Empty => None,
        }
    }
}
