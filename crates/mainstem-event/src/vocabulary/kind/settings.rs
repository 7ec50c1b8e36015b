//! The settings of a run, as the run's first event records them.

use std::sync::Arc;

use mainstem_message::RunId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What the caller has set for a run and for its children. Recorded, so that it is known after a
/// restart.
///
/// What the program sets for all runs of a session is left out: the next process sets it again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct RunSettings {
    /// The id of the agent that leads the run, if the caller has chosen it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<str>>,
    /// The model of the agent that leads the run, if the caller has chosen it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// Whether the run only compacts the conversation, without an input and an answer.
    #[serde(skip_serializing_if = "is_false")]
    pub compacts: bool,
    /// The earlier run of the session whose turn the run takes up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumes: Option<RunId>,
    /// The user on whose behalf the run works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// What the caller has attached to the run, for tools and children.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub attributes: Map<String, Value>,
    /// What the run may spend.
    #[serde(skip_serializing_if = "RunBudget::is_unlimited")]
    pub budget: RunBudget,
    /// Whether a call that is out of time stops its child.
    #[serde(skip_serializing_if = "is_false")]
    pub force_sync: bool,
    /// What becomes of background tasks when the root has its answer.
    #[serde(skip_serializing_if = "Background::is_default")]
    pub background: Background,
    /// What becomes of the run when its node ends; `None` for what the server does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_lost: Option<OnLost>,
    /// Whether approvals are refused at once, because the caller answers none.
    #[serde(skip_serializing_if = "is_false")]
    pub unattended: bool,
    /// Rules that narrow what the run's agents may call, in the form of `mainstem_policy::Rules`.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub permissions: Value,
    /// The deepest agent of the run; the root is at 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u16>,
    /// How many children of the run are running at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_children: Option<usize>,
}

/// What a run may spend, with all its agents and tasks; `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct RunBudget {
    /// Tokens, in and out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money, in millionths of a US dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// Children.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawns: Option<u64>,
    /// Seconds during which the run is polled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_seconds: Option<u64>,
}

/// What becomes of background tasks at the end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the three things one can do with work that is not done")]
pub enum Background {
    /// They continue, and the next turn is told of their end.
    #[default]
    Detach,
    /// The root waits for its tasks, reads their results, and answers again; then it waits for the
    /// tasks of its children.
    Wait,
    /// They are stopped.
    Cancel,
}

/// What becomes of a run whose node ends, where nodes share the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "a run is resumed or closed")]
pub enum OnLost {
    /// Another node resumes its turn in a new run: results that are recorded are used, and calls
    /// that were cut off have a result that says so. A turn in which three nodes in a row have
    /// ended is not resumed again.
    #[default]
    Resume,
    /// It ends with an error; a caller may resume it.
    Close,
}

impl RunSettings {
    /// Returns `true` if all settings are defaults.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl RunBudget {
    /// Returns `true` if it has no limit.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

impl Background {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(value: &bool) -> bool {
    !value
}
