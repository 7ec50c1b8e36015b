//! A model that plays a script: for tests, and for the demo.
//!
//! A script belongs to an agent and has turns. The request alone determines which turn is played
//! (by the number of answers that it has), so that concurrent twins play the same script without
//! interference, and a run plays the same twice.
//!
//! ```
//! use mainstem_model::scripted::{ScriptedModel, Turn};
//! use serde_json::json;
//!
//! let model = ScriptedModel::new()
//!     .agent("main", [
//!         Turn::new().text("Let me see.").call("search", json!({ "query": "rust" })),
//!         Turn::new().text("Found."),
//!     ])
//!     .agent_on("reviewer", "security", [Turn::new().text("No holes.")])
//!     .agent("reviewer", [Turn::new().text("Reads well.")]);
//! # let _ = model;
//! ```

mod play;
mod turn;

use std::sync::Arc;

use mainstem_message::Role;

pub use self::turn::Turn;
use crate::{ErrorKind, Model, ModelError, ModelRequest, ModelStream};

/// A [`Model`] that plays a script. Cheap to clone; clones share their scripts.
///
/// ```
/// use mainstem_model::{Model, ScriptedModel, scripted::Turn};
///
/// let model = ScriptedModel::new()
///     .agent("main", [Turn::new().text("First answer."), Turn::new().text("Second answer.")]);
/// assert_eq!(model.name(), "scripted");
/// ```
#[derive(Clone, Debug)]
pub struct ScriptedModel {
    name: Arc<str>,
    scripts: Vec<Script>,
}

#[derive(Clone, Debug)]
struct Script {
    agent: String,
    task: Option<String>,
    turns: Vec<Arc<Turn>>,
}

impl Script {
    fn fits(&self, request: &ModelRequest) -> bool {
        let agent_fits = self.agent == *request.agent;
        agent_fits && self.task.as_ref().is_none_or(|task| first_task(request).contains(task.as_str()))
    }
}

/// Returns the first task of the agent.
fn first_task(request: &ModelRequest) -> String {
    request.messages.iter().find(|message| message.role == Role::User).map(|m| m.text()).unwrap_or_default()
}

impl Default for ScriptedModel {
    fn default() -> Self {
        Self::named("scripted")
    }
}

impl ScriptedModel {
    /// Creates a model named `scripted`, without scripts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a model of another name, without scripts.
    pub fn named(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), scripts: Vec::new() }
    }

    /// Sets the script of the agent with this id, turn by turn.
    #[must_use]
    pub fn agent(self, agent: impl Into<String>, turns: impl IntoIterator<Item = Turn>) -> Self {
        self.script(agent.into(), None, turns)
    }

    /// Sets a script for those instances of an agent whose first task contains a text. The first
    /// script that matches is played.
    #[must_use]
    pub fn agent_on(
        self,
        agent: impl Into<String>,
        task: impl Into<String>,
        turns: impl IntoIterator<Item = Turn>,
    ) -> Self {
        self.script(agent.into(), Some(task.into()), turns)
    }

    fn script(mut self, agent: String, task: Option<String>, turns: impl IntoIterator<Item = Turn>) -> Self {
        self.scripts.push(Script { agent, task, turns: turns.into_iter().map(Arc::new).collect() });
        self
    }

    fn turn(&self, request: &ModelRequest) -> Result<Arc<Turn>, ModelError> {
        let number = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
        let script = self.scripts.iter().find(|script| script.fits(request)).ok_or_else(|| {
            ModelError::new(ErrorKind::InvalidRequest, format!("no script for agent {:?}", request.agent))
        })?;
        script.turns.get(number).cloned().ok_or_else(|| {
            let turns = script.turns.len();
            let message =
                format!("the script of agent {:?} has {turns} turns, not {}", request.agent, number + 1);
            ModelError::new(ErrorKind::InvalidRequest, message)
        })
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn provider(&self) -> Option<&str> {
        Some("scripted")
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        match self.turn(&request) {
            Ok(turn) => Box::pin(play::Play::new(turn, &request)),
            Err(error) => Box::pin(futures_util::stream::iter([Err(error)])),
        }
    }
}

#[cfg(test)]
mod tests;
