//! What requests say and answers tell, as JSON.

use std::time::Duration;

use mainstem::{
    event::{CancelReason, Rollup, Timestamp},
    message::{ContentBlock, Failure, Message, RunId, SessionId},
    policy::Limits as Budget,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value, json};

/// A list.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Items<T> {
    pub(crate) items: Vec<T>,
}

/// A run to begin: with an input, or by taking up the session's last turn.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = either()))]
pub(crate) struct NewRun {
    /// Which agent leads it, one of those in `/agents` that are `runnable`, with the model that is served; by default the one that `/agents` says
    /// `runs`.
    pub(crate) agent: Option<String>,
    /// What to do.
    pub(crate) input: Option<Input>,
    /// Instead of an input: take up the last turn, which was cut off, failed or was cancelled.
    #[serde(default)]
    pub(crate) resume: bool,
    /// Whether the run waits for the end of the session's active run; without it a second run is refused (`run_active`).
    #[serde(default)]
    pub(crate) queue: bool,
    #[serde(default)]
    pub(crate) options: Options,
}

/// That there is an input, or that a turn is taken up.
fn either() -> Value {
    json!([
        { "required": ["input"], "properties": { "input": { "not": { "type": "null" } }, "resume": { "const": false } } },
        { "required": ["resume"], "properties": { "input": { "type": "null" }, "resume": { "const": true } } },
    ])
}

/// A text, or a whole message.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the schema of what is read by hand below")]
enum AnyInput {
    Text(#[schemars(length(min = 1))] String),
    Message(Box<Message>),
}

/// A text, or a whole message, whose role is `user` or another that the operator allows.
#[derive(JsonSchema)]
#[schemars(transparent)]
pub(crate) struct Input(#[schemars(with = "AnyInput")] pub(crate) Message);

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) if text.trim().is_empty() => Err(D::Error::custom("the input is empty")),
            Value::String(text) => Ok(Self(text.into())),
            message => Message::deserialize(message).map(Self).map_err(D::Error::custom),
        }
    }
}

impl Input {
    /// What of it a user can't say: where, as a JSON pointer into the body, and what. Texts and data are what a user says.
    pub(crate) fn problem(&self) -> Option<(String, &'static str)> {
        let is_said =
            |block: &ContentBlock| matches!(block, ContentBlock::Text { .. } | ContentBlock::Data { .. });
        if let Some(place) = self.0.content.iter().position(|block| !is_said(block)) {
            return Some((format!("/input/content/{place}"), "an input has `text` and `data` blocks only"));
        }
        let is_blank =
            |block: &ContentBlock| matches!(block, ContentBlock::Text { text, .. } if text.trim().is_empty());
        let is_empty = self.0.content.iter().all(is_blank);
        is_empty.then(|| ("/input/content".to_owned(), "the input is empty"))
    }
}

/// Why a run is stopped.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Cancel {
    /// `user`, the default: a person wants it to end. `timeout`: the caller waited long enough. `signal`: the caller's process is to end.
    reason: CancelWord,
    /// For `timeout`, how long the caller waited, in milliseconds; by default since the run was requested.
    after_ms: Option<u64>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CancelWord {
    #[default]
    User,
    Timeout,
    Signal,
}

impl Cancel {
    /// The reason for a run's agents; `waited` is the time since the run was requested.
    pub(crate) fn reason(self, waited: Duration) -> CancelReason {
        match self.reason {
            CancelWord::User => CancelReason::user("over HTTP"),
            CancelWord::Timeout => {
                CancelReason::Timeout { after: self.after_ms.map_or(waited, Duration::from_millis) }
            }
            CancelWord::Signal => CancelReason::Signal { name: "a signal to the client".into() },
        }
    }
}

/// How a run goes.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Options {
    /// On whose behalf; tools and children see it.
    pub(crate) user: Option<String>,
    /// Whatever tools and children should know besides.
    pub(crate) attributes: Map<String, Value>,
    /// What it may spend.
    pub(crate) budget: Budget,
    /// Whether the session plans from now on, so that agents only look until a person has accepted a plan; as it is without.
    pub(crate) plan_mode: Option<bool>,
    /// Children that are out of time are stopped, and never become background tasks.
    pub(crate) force_sync: bool,
    /// Whether a person answers confirmations; true by default.
    pub(crate) people: Option<bool>,
    /// The deepest agent, the one that runs being at 0; at most what the server allows, which is the default.
    pub(crate) max_depth: Option<u16>,
    /// How many children run at once. The default and the maximum are the server's limit.
    #[schemars(range(min = 1))]
    pub(crate) max_children: Option<usize>,
    /// What becomes of background tasks when the agent has its answer.
    pub(crate) background: Leftover,
    /// The JSON Schema of the answer.
    pub(crate) output_schema: Option<Value>,
    /// What becomes of the run when the reader of this answer leaves.
    pub(crate) on_disconnect: OnDisconnect,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Leftover {
    #[default]
    Detach,
    Wait,
    Cancel,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnDisconnect {
    #[default]
    Continue,
    Cancel,
}

/// A run.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RunView {
    pub(crate) id: RunId,
    pub(crate) session_id: SessionId,
    /// `queued`, `running`, `dropped`, or how it ended: `success`, `error`, `cancelled`, `timeout`, `max_iterations`.
    pub(crate) status: String,
    /// None of its events is before this one.
    pub(crate) first_seq: u64,
    /// When it began; while it is queued, when it was requested.
    pub(crate) created_at: Timestamp,
    /// The text of its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reply: Option<String>,
    /// Its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<Message>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Failure>,
    /// What it cost, with all its agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Rollup>,
}

/// A session.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionView {
    pub(crate) id: String,
    pub(crate) created_at: Timestamp,
    /// The number of its latest event.
    pub(crate) last_seq: u64,
    /// When that was.
    pub(crate) updated_at: Timestamp,
    /// The active run.
    pub(crate) active_run: Option<RunId>,
    /// The runs that wait for it to end, in order.
    pub(crate) queued_runs: Vec<RunId>,
    /// How many runs it had, without queued ones.
    pub(crate) runs: u64,
}

/// What an agent was told and said.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Transcript {
    pub(crate) agent_key: String,
    pub(crate) messages: Vec<Message>,
}

/// Something to tell a child.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    pub(crate) content: String,
    #[serde(default)]
    pub(crate) mode: Mode,
}

/// When a child reads it: after its present turn, before its next step, or at once.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    #[default]
    Queue,
    Steer,
    Interrupt,
}

/// A person's answer.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Answer {
    Allow {
        /// In the place of the model's.
        arguments: Option<Value>,
    },
    Deny {
        /// The agent reads it.
        reason: Option<String>,
    },
}

/// Whether there was something to stop.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Stopped {
    pub(crate) was_at_work: bool,
}

/// Which question was answered.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Answered {
    pub(crate) confirm_id: String,
}

/// An agent, and what can be done with it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AgentView {
    pub(crate) id: String,
    pub(crate) description: String,
    /// Its own model; the parent's without.
    pub(crate) model: Option<String>,
    pub(crate) spawnable: bool,
    /// Whether a caller may choose it to lead a run.
    pub(crate) runnable: bool,
}

/// The agent that runs, and those it can spawn.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Agents {
    pub(crate) runs: String,
    pub(crate) items: Vec<AgentView>,
}

/// A model, and who asks it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ModelView {
    pub(crate) id: String,
    pub(crate) agents: Vec<String>,
}

/// A token to store in a cookie.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Login {
    pub(crate) token: String,
}
