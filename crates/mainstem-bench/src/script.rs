//! The scripts of a run's models, which are sent as JSON in the prompts, so that the server is
//! stateless.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::wire::Wire;

/// The text of a delta: as long as a usual token, and as a time stamp.
pub(crate) const TEXT: &str = "0000000000000000000 ";

/// The script of an agent, which is its task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Script {
    /// It streams text.
    Say(Say),
    /// It starts so many children at once, each with a task of its own, and streams text when they
    /// have ended.
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

/// A load: children with the same script at the same depth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) children: u32,
    pub(crate) depth: u16,
    pub(crate) say: Say,
    /// The API of its models.
    pub(crate) wire: Wire,
}

impl Load {
    /// Creates a load of the root's children that stream as fast as they are read.
    pub(crate) fn new(children: u32, deltas: u32) -> Self {
        let say = Say { deltas, ..Say::default() };
        Self { children, depth: 1, say, wire: Wire::default() }
    }

    pub(crate) fn paced(mut self, pace: Duration) -> Self {
        self.say.pace = pace.as_micros() as u64;
        self
    }

    /// Leaves all streams pending after their text.
    pub(crate) fn hanging(mut self) -> Self {
        self.say.hangs = true;
        self
    }

    /// Moves the children to this depth, with one agent at each level above them.
    pub(crate) fn at_depth(self, depth: u16) -> Self {
        Self { depth, ..self }
    }

    pub(crate) fn over(self, wire: Wire) -> Self {
        Self { wire, ..self }
    }

    /// Returns the number of deltas of all children.
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
    /// Returns the script as a task.
    pub(crate) fn to_task(&self) -> String {
        serde_json::json!(self).to_string()
    }

    /// Returns the agent for the script.
    pub(crate) fn agent(&self) -> &'static str {
        match self {
            Self::Say(_) => WORKER,
            Self::Start { .. } => LEAD,
        }
    }
}

/// The agent that streams.
pub(crate) const WORKER: &str = "worker";
/// The agent that starts others.
pub(crate) const LEAD: &str = "lead";
