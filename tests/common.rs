//! What the binaries of tests share: calls, sessions, milliseconds.

use std::time::Duration;

use mainstem::{model::scripted::Turn, prelude::*};
use serde_json::{Value, json};

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Opens a session where nothing has to be waited for.
pub(crate) trait OpenNow {
    fn session(&self, id: &str) -> Session;
}

impl OpenNow for Harness {
    fn session(&self, id: &str) -> Session {
        futures_executor::block_on(self.open_session(id)).unwrap()
    }
}

/// A call of `agent_spawn`.
pub(crate) trait Spawns {
    fn spawn(self, agent_id: &str, task: &str) -> Self;
}

impl Spawns for Turn {
    fn spawn(self, agent_id: &str, task: &str) -> Self {
        self.call("agent_spawn", spawn_args(agent_id, task))
    }
}

pub(crate) fn spawn_args(agent_id: &str, task: &str) -> Value {
    json!({ "agent_id": agent_id, "task": task })
}
