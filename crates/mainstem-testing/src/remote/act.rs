//! What the agent on the far side does.

use std::time::Duration;

use mainstem::{
    model::{ModelError, scripted::Turn},
    prelude::*,
};
use serde_json::{Map, Value, json};

use super::FAR;

/// The agent below the remote one.
pub(super) const KID: &str = "kid";

/// A part of the reason of [`Act::Fails`].
pub(super) const FAILURE: &str = "out of order";

/// The pause between the texts of [`Act::Slow`].
pub(super) const PAUSE: Duration = Duration::from_millis(300);

/// What the remote agent does in one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Act {
    /// Thinks `Hm.`, then answers `Paris has ` and `309 stations.`
    Answers,
    /// Calls `look` twice, one after the other, with `{"at": "a"}` and `{"at": "b"}`, whose results
    /// are `at a` and `at b`; then answers `Seen.`
    Calls,
    /// Has an agent `kid` below it say `I am below.`, then answers `Done.`
    Delegates,
    /// Fails, with `out of order` in the reason.
    Fails,
    /// Says `One `, and 300 ms later `two.`
    Slow,
    /// Says `Half`, and then nothing until it is stopped.
    Hangs,
    /// Says nothing until it is stopped.
    Silent,
    /// Calls `look` with `{"at": "a"}`, which needs an approval, and answers `Seen.` whatever comes
    /// of it.
    Asks,
}

/// What a protocol can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "written by tests, with ..Default::default()")]
#[expect(clippy::struct_excessive_bools, reason = "each is its own")]
pub struct Abilities {
    /// Thinking.
    pub thinking: bool,
    /// Calls of tools, also those that need no approval.
    pub tools: bool,
    /// The arguments of calls.
    pub arguments: bool,
    /// The texts of results.
    pub results: bool,
    /// Agents below the remote one.
    pub nested: bool,
    /// Requests for approval.
    pub approvals: bool,
    /// Results of calls that were denied, and not only failed.
    pub denials: bool,
    /// Events as they happen.
    pub live: bool,
    /// Streams that go on where they were cut.
    pub resumes: bool,
    /// The bytes of its largest response that is not a stream, with its head: a connection that is
    /// cut has as many.
    pub largest: u64,
}

impl Default for Abilities {
    fn default() -> Self {
        Self {
            thinking: true,
            tools: true,
            arguments: true,
            results: true,
            nested: true,
            approvals: true,
            denials: true,
            live: true,
            resumes: true,
            largest: 1_200,
        }
    }
}

impl Act {
    /// Returns a harness whose agent [`FAR`] acts like this, for a server that speaks the protocol.
    pub fn harness(self) -> HarnessBuilder {
        let model =
            ScriptedModel::new().agent(FAR, self.turns()).agent(KID, [Turn::new().text("I am below.")]);
        let look = |_, given: Map<String, Value>| async move {
            Ok::<_, ToolError>(format!("at {}", given.get("at").and_then(Value::as_str).unwrap_or_default()))
        };
        let effect = if self == Self::Asks { Effect::Ask } else { Effect::Allow };
        let rules = RuleSet::default().with_pattern(effect, "look");
        Harness::builder(FAR, model)
            .with_tool(tool_fn("look", "Looks", look))
            .with_subagent(AgentSpec::new(KID, "Helps"))
            .with_permissions(rules.unwrap_or_default())
    }

    fn turns(self) -> Vec<Turn> {
        let look = |at: &str| Turn::new().call("look", json!({ "at": at }));
        match self {
            Self::Answers => vec![Turn::new().thinking("Hm.").text("Paris has ").text("309 stations.")],
            Self::Calls => vec![look("a"), look("b"), Turn::new().text("Seen.")],
            Self::Delegates => {
                let spawn = json!({ "agent_id": KID, "task": "say" });
                vec![Turn::new().call("agent_spawn", spawn), Turn::new().text("Done.")]
            }
            Self::Fails => vec![Turn::new().fail(ModelError::from_status(401, FAILURE))],
            Self::Slow => vec![Turn::new().text("One ").wait(PAUSE).text("two.")],
            Self::Hangs => vec![Turn::new().text("Half").hang()],
            Self::Silent => vec![Turn::new().hang()],
            Self::Asks => vec![look("a"), Turn::new().text("Seen.")],
        }
    }
}
