//! What a record says that each model, tool and person did, and when.

mod read;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use mainstem::policy::RuleSet;
use mainstem_event::{AgentEvent, RunSettings, SendMode};
use mainstem_message::{AgentKey, ContentBlock, Failure, Message, TaskId, ToolCallId, ToolState};
use mainstem_model::ModelDelta;
use serde_json::Value;

use super::RecordingError;

/// The key of the root among the instances.
pub(super) const ROOT: &str = "root";

/// An instance and one of its calls.
pub(super) type Caller = (String, ToolCallId);

/// All that is played.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) events: Vec<AgentEvent>,
    /// The id of the leading agent.
    pub(super) root: Arc<str>,
    /// The answers of each instance, in their order.
    pub(super) answers: HashMap<String, Vec<Answer>>,
    /// The instances whose last invocation was cancelled.
    pub(super) cancelled: HashSet<String>,
    /// The results of each call; a call has several if its id was given again.
    pub(super) results: HashMap<Caller, Vec<Found>>,
    /// The agents below the root.
    pub(super) agents: BTreeMap<Arc<str>, Declared>,
    /// The names of the called tools.
    pub(super) tools: BTreeSet<Arc<str>>,
    /// Those that the caller of the run executed.
    pub(super) external: BTreeSet<Arc<str>>,
    /// Those that needed approval because they may change something.
    pub(super) changing: BTreeSet<String>,
    /// By which the same calls need approval.
    pub(super) rules: RuleSet,
    /// The tools that are agents, each with the agent's id.
    pub(super) agent_tools: BTreeMap<Arc<str>, Arc<str>>,
    /// The limit of iterations of the root, if it was reached.
    pub(super) max_iterations: Option<u32>,
    /// The ids of instances and tasks, with the time of the call that created the instance.
    pub(super) ids: BTreeMap<String, Duration>,
    /// The session of each instance.
    pub(super) sessions: HashMap<String, String>,
    /// What callers and people did, in order.
    pub(super) acts: Vec<(Duration, Act)>,
    /// When the last event was recorded.
    pub(super) end: Duration,
}

/// A model's answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub(super) pieces: Vec<(Duration, ModelDelta)>,
    pub(super) ending: Ending,
}

#[derive(Clone, Debug, Default)]
pub(super) enum Ending {
    /// It is complete.
    #[default]
    Complete,
    /// The call failed, at this time.
    Failed(Duration, Option<Failure>),
    /// The call was cancelled.
    Cancelled,
}

/// A tool's result.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The number of its first event.
    pub(super) seq: u64,
    /// When its tool began.
    pub(super) began: Duration,
    /// When it was complete.
    pub(super) at: Duration,
    /// The pieces that came before the last one.
    pub(super) progress: Vec<String>,
    pub(super) content: Vec<ContentBlock>,
    pub(super) state: ToolState,
    /// Whether a person was asked first.
    pub(super) was_asked: bool,
    /// Whether a child began in it.
    pub(super) began_child: bool,
}

/// An agent below the root.
#[derive(Clone, Debug, Default)]
pub(super) struct Declared {
    /// Its declaration, as it was recorded.
    pub(super) spec: Option<Arc<Value>>,
    /// The limit of its iterations, if it was reached.
    pub(super) max_iterations: Option<u32>,
    /// Whether a further spawn found the same instance.
    pub(super) persists: bool,
    /// The tools that it called.
    pub(super) tools: BTreeSet<Arc<str>>,
}

/// What a caller or a person did.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Run {
        input: Arc<Message>,
        settings: Option<Arc<RunSettings>>,
    },
    Decide {
        call: Caller,
        decision: mainstem_event::Decision,
    },
    Submit {
        call: ToolCallId,
        content: Vec<ContentBlock>,
        state: ToolState,
    },
    Send {
        to: AgentKey,
        text: String,
        mode: SendMode,
    },
    /// Cancels the run, and its background tasks.
    CancelRun {
        how: Option<String>,
        with_tasks: bool,
    },
    /// Cancels an instance, and all below it.
    Cancel {
        key: String,
    },
    /// Cancels a background task.
    CancelTask {
        task: TaskId,
        /// Who does, in words that follow "cancelled by".
        by: String,
    },
}

impl Script {
    /// Reads the events of a session, which keep the laws.
    pub(super) fn of(events: Vec<AgentEvent>) -> Result<Self, RecordingError> {
        read::read(events)
    }
}

impl Answer {
    /// Returns an answer that says nothing until it is cancelled.
    pub(super) fn cancelled() -> Self {
        Self { pieces: Vec::new(), ending: Ending::Cancelled }
    }
}

/// Returns the key of the instance that an event is of.
pub(super) fn key_of(event: &AgentEvent) -> &str {
    event.agent_key().map_or(ROOT, AgentKey::as_str)
}
