//! What the models of a run shall do; travels as JSON in the prompts, so that the server keeps no
//! state.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The text of a delta: as long as a usual token with some air, and as a time stamp.
pub(crate) const TEXT: &str = "0000000000000000000 ";

/// What the agent that gets this as its task does.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Script {
    /// It says something.
    Say(Say),
    /// It starts so many children at once, each with a task of its own, and says something when
    /// they have ended.
    Start { children: u32, each: Box<Self> },
}

/// Deltas, one after another.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Say {
    pub(crate) deltas: u32,
    /// Microseconds between two deltas; 0 is as fast as they are read.
    pub(crate) pace: u64,
    /// Never ends.
    pub(crate) hangs: bool,
}

/// A load: children that say the same at the same depth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) children: u32,
    pub(crate) depth: u16,
    pub(crate) say: Say,
}

impl Load {
    /// Children of the root that talk as fast as they are read.
    pub(crate) fn new(children: u32, deltas: u32) -> Self {
        Self { children, depth: 1, say: Say { deltas, ..Say::default() } }
    }

    pub(crate) fn paced(mut self, pace: Duration) -> Self {
        self.say.pace = pace.as_micros() as u64;
        self
    }

    /// Returns all children are silent after what they said.
    pub(crate) fn hanging(mut self) -> Self {
        self.say.hangs = true;
        self
    }

    /// Returns the children are this deep; one agent at each level above them.
    pub(crate) fn at_depth(self, depth: u16) -> Self {
        Self { depth, ..self }
    }

    /// Returns all deltas of all children.
    pub(crate) fn deltas(&self) -> u64 {
        u64::from(self.children) * u64::from(self.say.deltas)
    }

    /// Returns the root's task.
    pub(crate) fn script(&self) -> Script {
        let leaves = Script::Start { children: self.children, each: Box::new(Script::Say(self.say)) };
        (1..self.depth).fold(leaves, |each, _| Script::Start { children: 1, each: Box::new(each) })
    }
}

impl Script {
    /// As a task.
    pub(crate) fn to_task(&self) -> String {
        serde_json::json!(self).to_string()
    }

    /// Returns the agent that does it.
    pub(crate) fn agent(&self) -> &'static str {
        match self {
            Self::Say(_) => WORKER,
            Self::Start { .. } => LEAD,
        }
    }
}

/// The agent that talks.
pub(crate) const WORKER: &str = "worker";
/// The agent that starts others.
pub(crate) const LEAD: &str = "lead";
