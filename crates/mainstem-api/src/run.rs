//! Requests to start and to cancel runs, and their state.

use std::{fmt, marker::PhantomData, time::Duration};

use mainstem_event::{Background, CancelReason, OnLost, Outcome, Rollup, Timestamp};
use mainstem_message::{ContentBlock, Failure, Message, RunId, SessionId};
use mainstem_policy::{Budget, Rules};
use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error as _, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value, json};

/// A run to begin: with an input, by resuming the session's last turn, or to compact the
/// conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = one_of()))]
#[expect(clippy::exhaustive_structs, reason = "a request is built with a literal")]
pub struct NewRun {
    /// The id of the agent that leads it, which is `runnable` in `GET /v1/agents`. Default: `runs`
    /// there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model of that agent, which is `selectable` in `GET /v1/models`; agents that name no
    /// model inherit it. Default: the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Input>,
    /// Instead of an input: resume the last turn, which was cut off, failed or was cancelled.
    #[serde(default, skip_serializing_if = "is_default")]
    pub resume: bool,
    /// Instead of an input: compact the conversation, however short it is. The run has no reply.
    #[serde(default, skip_serializing_if = "is_default")]
    pub compact: bool,
    /// Wait for the end of the session's active run. Otherwise a second run is refused
    /// (`run_active`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub queue: bool,
    /// Settings of the run.
    #[serde(default, deserialize_with = "object", skip_serializing_if = "is_default")]
    pub options: RunOptions,
}

/// Reads an object. serde would read a list as one, too, by the order of the keys.
pub(crate) fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct Object<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_map(Object(PhantomData))
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Returns the schema of "an input, `resume` or `compact`".
fn one_of() -> Value {
    let one = |name: &str| {
        let others = ["resume", "compact"].into_iter().filter(|other| *other != name);
        let mut properties: Map<_, _> =
            others.map(|other| (other.to_owned(), json!({ "const": false }))).collect();
        let own = match name {
            "input" => json!({ "not": { "type": "null" } }),
            _ => json!({ "const": true }),
        };
        properties.insert("input".to_owned(), json!({ "type": "null" }));
        properties.insert(name.to_owned(), own);
        json!({ "required": [name], "properties": properties })
    };
    json!([one("input"), one("resume"), one("compact")])
}

impl NewRun {
    /// What a request that has none or several of the three is told.
    pub const ONE_OF: &str = "exactly one of `input`, `resume: true` and `compact: true` is required";

    /// Returns `true` if it has exactly one of `input`, `resume` and `compact`.
    pub fn is_valid(&self) -> bool {
        usize::from(self.input.is_some()) + usize::from(self.resume) + usize::from(self.compact) == 1
    }

    /// Creates a run that compacts the conversation.
    pub fn compacting() -> Self {
        Self { compact: true, ..Self::default() }
    }

    /// Creates a run with this input.
    pub fn new(input: impl Into<Message>) -> Self {
        Self { input: Some(Input(input.into())), ..Self::default() }
    }

    /// Creates a run that resumes the session's last turn.
    pub fn resuming() -> Self {
        Self { resume: true, ..Self::default() }
    }

    /// Sets the options.
    #[must_use]
    pub fn with_options(mut self, options: RunOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets whether the run waits for the end of the session's active run.
    #[must_use]
    pub fn with_queue(mut self, queue: bool) -> Self {
        self.queue = queue;
        self
    }
}

/// A text, or a whole message.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the schema of what is deserialized by hand below")]
enum AnyInput {
    Text(#[schemars(length(min = 1))] String),
    Message(Box<Message>),
}

/// A text, or a whole message, whose role is `user` or another that the operator allows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(transparent)]
#[serde(transparent)]
#[expect(clippy::exhaustive_structs, reason = "a message with checks")]
pub struct Input(#[schemars(with = "AnyInput")] pub Message);

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) if text.trim().is_empty() => Err(D::Error::custom("the input is empty")),
            Value::String(text) => Ok(Self(text.into())),
            message => Message::deserialize(message).map(Self).map_err(D::Error::custom),
        }
    }
}

/// The most bytes of data that a message refers to: services of models take little more.
pub const MAX_DATA: usize = 20 << 20;

impl Input {
    /// Returns the first part that a caller can't send: a JSON pointer into [`NewRun`], and the
    /// reason. Text and data blocks are allowed.
    pub fn problem(&self) -> Option<(String, &'static str)> {
        let is_allowed =
            |block: &ContentBlock| matches!(block, ContentBlock::Text { .. } | ContentBlock::Data { .. });
        if let Some(place) = self.0.content.iter().position(|block| !is_allowed(block)) {
            return Some((format!("/input/content/{place}"), "an input has `text` and `data` blocks only"));
        }
        let is_blank =
            |block: &ContentBlock| matches!(block, ContentBlock::Text { text, .. } if text.trim().is_empty());
        let is_empty = self.0.content.iter().all(is_blank);
        is_empty.then(|| ("/input/content".to_owned(), "the input is empty"))
    }
}

/// Settings of a run; all have defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a request is built with a literal")]
pub struct RunOptions {
    /// On whose behalf the run works; tools and children see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Further data for tools and children.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub attributes: Map<String, Value>,
    /// What the run may spend.
    #[serde(deserialize_with = "object", skip_serializing_if = "is_default")]
    pub budget: Budget,
    /// Sets the session's plan mode from this run on: agents only read until a person has accepted
    /// a plan. Default: unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_mode: Option<bool>,
    /// Rules that narrow what the run's agents may call: a list of sets, of which the strictest
    /// verdict counts, such as `[{"deny": ["shell"], "ask": ["write_file"]}]`.
    #[serde(skip_serializing_if = "is_default")]
    pub permissions: Rules,
    /// Children that exceed their time are stopped instead of becoming background tasks.
    #[serde(skip_serializing_if = "is_default")]
    pub force_sync: bool,
    /// Whether a person answers requests for approval. Default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<bool>,
    /// The depth of the deepest agent; the one that leads the run is at 0. The default and the
    /// maximum are the server's limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u16>,
    /// The number of children that run at once. The default and the maximum are the server's limit.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_children: Option<usize>,
    /// What becomes of background tasks when the agent has answered.
    #[serde(skip_serializing_if = "is_default")]
    pub background: Background,
    /// The JSON Schema of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What becomes of the run when the client that started it disconnects.
    #[serde(skip_serializing_if = "is_default")]
    pub on_disconnect: OnDisconnect,
    /// What becomes of the run when the server that has it ends, where servers share a database.
    /// Default: the setting of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_lost: Option<OnLost>,
}

/// What becomes of a run when the client that started it disconnects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "the run goes on or it does not")]
pub enum OnDisconnect {
    /// The run continues.
    #[default]
    Continue,
    /// The run is cancelled.
    Cancel,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunState {
    /// It waits for the end of the session's active run.
    Queued,
    /// It is the session's active run.
    Running,
    /// The program dropped it before its end.
    Dropped,
    /// It has an answer.
    Success,
    /// It failed.
    Error,
    /// It was cancelled.
    Cancelled,
    /// It exceeded its time.
    Timeout,
    /// It used up its iterations; there may be an answer.
    MaxIterations,
    /// It waits for the results of tools that the caller runs.
    Suspended,
}

impl RunState {
    /// Returns how the run ended; `None` if it has not ended, or was dropped.
    pub fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Queued | Self::Running | Self::Dropped => None,
            Self::Success => Some(Outcome::Success),
            Self::Error => Some(Outcome::Error),
            Self::Cancelled => Some(Outcome::Cancelled),
            Self::Timeout => Some(Outcome::Timeout),
            Self::MaxIterations => Some(Outcome::MaxIterations),
            Self::Suspended => Some(Outcome::Suspended),
        }
    }

    /// Returns `true` if the run has ended or was dropped.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

impl From<Outcome> for RunState {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Success => Self::Success,
            Outcome::Cancelled => Self::Cancelled,
            Outcome::Timeout => Self::Timeout,
            Outcome::MaxIterations => Self::MaxIterations,
            Outcome::Suspended => Self::Suspended,
            // An outcome of a later version.
            _ => Self::Error,
        }
    }
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::exhaustive_structs, reason = "built by servers and sessions in other crates")]
pub struct RunView {
    /// Its id.
    pub id: RunId,
    /// Its session.
    pub session_id: SessionId,
    /// Its state.
    pub status: RunState,
    /// A lower bound of the sequence number of its first event.
    pub first_seq: u64,
    /// When it began; while it is queued, when it was requested.
    pub created_at: Timestamp,
    /// The earlier run whose turn it takes up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes: Option<RunId>,
    /// The text of its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// Its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// What it used, with all its agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Rollup>,
}

/// Why a run is cancelled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a request is built with a literal")]
pub struct CancelQuery {
    /// The reason.
    pub reason: CancelCode,
    /// For `timeout`, how long the caller waited, in milliseconds. Default: since the run was
    /// requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
}

/// A reason of [`CancelQuery`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CancelCode {
    /// A person cancelled the run.
    #[default]
    User,
    /// The time that the caller had set is over.
    Timeout,
    /// The caller's process ends.
    Signal,
}

impl CancelQuery {
    /// Returns the reason for the run's agents; `waited` is the time since the run was requested.
    pub fn reason(&self, waited: Duration) -> CancelReason {
        match self.reason {
            CancelCode::User => CancelReason::user("over HTTP"),
            CancelCode::Timeout => {
                CancelReason::Timeout { after: self.after_ms.map_or(waited, Duration::from_millis) }
            }
            CancelCode::Signal => CancelReason::Signal { name: "a signal to the client".into() },
        }
    }
}

impl From<&CancelReason> for CancelQuery {
    fn from(reason: &CancelReason) -> Self {
        match reason {
            CancelReason::Timeout { after } => {
                Self { reason: CancelCode::Timeout, after_ms: u64::try_from(after.as_millis()).ok() }
            }
            CancelReason::Signal { .. } => Self { reason: CancelCode::Signal, after_ms: None },
            _ => Self::default(),
        }
    }
}

#[cfg(test)]
mod tests;
