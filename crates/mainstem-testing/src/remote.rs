//! What a protocol of remote agents must do, as a suite.
//!
//! A protocol has a [`FarSide`]: a server that speaks it, with an agent that [acts](Act) as the
//! suite says, and the way in which a harness declares that agent. The server is the protocol's
//! own, scripted for each act; or that of Mainstem with [`Act::harness`], if it speaks the
//! protocol.
//!
//! ```ignore
//! #[tokio::test]
//! async fn it_keeps_the_contract_of_remote_agents() {
//!     mainstem_testing::remote::check(&MyProtocol).await;
//! }
//! ```
//!
//! Whatever the act, the events of the child keep the laws, it begins and ends once, and the agent
//! that called it goes on.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "whatever goes wrong here fails the test that it runs in"
)]

mod act;
mod cut;

use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, future::join_all};
use mainstem::{
    message::{ToolCallId, ToolState},
    model::scripted::Turn,
    prelude::*,
};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

pub use self::act::{Abilities, Act};
use crate::{laws, render};

/// The id of the remote agent.
pub const FAR: &str = "far";

/// How long a run may take.
const LONGEST: Duration = Duration::from_secs(60);

/// How long the remote may be silent in [`Act::Silent`].
const IDLE: Duration = Duration::from_secs(1);

/// A server of a protocol, and how its agent is declared.
#[async_trait]
pub trait FarSide: Send + Sync {
    /// Serves an agent that acts like this until the test ends; returns the server's address,
    /// `http://host:port`.
    async fn serve(&self, act: Act) -> String;

    /// Adds the agent [`FAR`] at this address to a harness. The address may be that of a proxy.
    fn declare(&self, builder: HarnessBuilder, url: &str) -> HarnessBuilder;

    /// Returns what the protocol can say. The default is everything.
    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    /// Serves agents that break the protocol or the laws, each its own way; returns their
    /// addresses. A cut stream, a wrong type, an end without a beginning, too much of something and
    /// what is not in the protocol are among them.
    async fn broken(&self) -> Vec<String>;
}

/// Checks every promise.
pub async fn check(side: &impl FarSide) {
    text(side).await;
    tools(side).await;
    nested(side).await;
    failure(side).await;
    live(side).await;
    approvals(side).await;
    cancel(side).await;
    silence(side).await;
    cuts(side).await;
    broken(side).await;
}

/// Text and thinking arrive as they are said.
pub async fn text(side: &impl FarSide) {
    let seen = run(side, Act::Answers).await;
    assert_eq!(seen.answer(), "Paris has 309 stations.", "{seen}");
    let pieces = seen.of(FAR, |kind| matches!(kind, EventKind::TextBlockDelta { .. })).count();
    assert_eq!(pieces, if side.abilities().live { 2 } else { 1 }, "{seen}");
    if side.abilities().thinking {
        assert_eq!(seen.thinking(), "Hm.", "{seen}");
    }
    seen.ends_with(Outcome::Success);
}

/// Calls of tools have their names, arguments and results, in order.
pub async fn tools(side: &impl FarSide) {
    let seen = run(side, Act::Calls).await;
    assert_eq!(seen.answer(), "Seen.", "{seen}");
    seen.ends_with(Outcome::Success);
    if !side.abilities().tools {
        return;
    }
    let calls = seen.of(FAR, |kind| matches!(kind, EventKind::ToolCallStart { .. })).count();
    assert_eq!(calls, 2, "{seen}");
    let abilities = side.abilities();
    assert_eq!(
        seen.results(abilities),
        [("look", "a"), ("look", "b")].map(|(name, at)| {
            let input = if abilities.arguments { json!({ "at": at }) } else { Value::Null };
            let text = if abilities.results { format!("at {at}") } else { String::new() };
            (name.to_owned(), input, text, ToolState::Success)
        }),
        "{seen}"
    );
}

/// An agent below the remote one is below it here.
pub async fn nested(side: &impl FarSide) {
    if !side.abilities().nested {
        return;
    }
    let seen = run(side, Act::Delegates).await;
    let kid: Vec<_> = seen.events.iter().filter(|event| event.agent_id() == act::KID).collect();
    assert!(kid.iter().all(|event| event.depth() == 2), "{seen}");
    assert_eq!(seen.text_of(act::KID), "I am below.", "{seen}");
    seen.ends_with(Outcome::Success);
}

/// A failure is the child's, with its reason.
pub async fn failure(side: &impl FarSide) {
    let seen = run(side, Act::Fails).await;
    let why = seen.ends_with(Outcome::Error);
    assert!(why.contains(act::FAILURE), "{why:?}");
}

/// What is said is seen at once, not when the turn ends.
pub async fn live(side: &impl FarSide) {
    if !side.abilities().live {
        return;
    }
    let url = side.serve(Act::Slow).await;
    let mut first = None;
    let seen = steered(side, &url, IDLE * 60, |_, event| {
        if event.agent_id() == FAR && matches!(event.kind, EventKind::TextBlockDelta { .. }) {
            first.get_or_insert_with(Instant::now);
        }
    })
    .await;
    let after = first.expect("a text").elapsed();
    assert!(after >= act::PAUSE / 2, "the first text came {after:?} before the end\n{seen}");
    seen.ends_with(Outcome::Success);
}

/// A person here decides about a call there.
pub async fn approvals(side: &impl FarSide) {
    if !side.abilities().approvals {
        return;
    }
    for (decision, state) in
        [(Decision::Allow, ToolState::Success), (Decision::Deny("no".to_owned()), ToolState::Denied)]
    {
        let url = side.serve(Act::Asks).await;
        let mut asked = 0;
        let seen = steered(side, &url, IDLE * 60, |run, event| {
            if let EventKind::RequireUserConfirm { confirm_id, tool_calls, .. } = &event.kind {
                assert_eq!((event.agent_id(), tool_calls[0].name.as_str()), (FAR, "look"));
                assert_eq!(tool_calls[0].parsed_arguments().unwrap(), json!({ "at": "a" }));
                run.confirm(confirm_id, decision.clone()).unwrap();
                asked += 1;
            }
        })
        .await;
        assert_eq!(asked, 1, "{seen}");
        let state =
            if side.abilities().denials || state == ToolState::Success { state } else { ToolState::Error };
        assert_eq!(seen.results(side.abilities())[0].3, state, "{seen}");
        assert_eq!(seen.answer(), "Seen.", "{seen}");
    }
}

/// A cancel here stops the work there, within the grace of a remote agent.
pub async fn cancel(side: &impl FarSide) {
    let url = side.serve(Act::Hangs).await;
    let mut cancelled = None;
    let seen = steered(side, &url, IDLE * 60, |run, event| {
        if event.agent_id() == FAR && matches!(event.kind, EventKind::TextBlockDelta { .. }) {
            run.cancel_because(CancelReason::user("a test"));
            cancelled.get_or_insert_with(Instant::now);
        }
    })
    .await;
    let after = cancelled.expect("a text").elapsed();
    assert!(after < Duration::from_secs(5), "it took {after:?}");
    seen.ends_with(Outcome::Cancelled);
}

/// A remote that sends nothing is ended by the idle timeout.
pub async fn silence(side: &impl FarSide) {
    let url = side.serve(Act::Silent).await;
    let seen = steered(side, &url, IDLE, |_, _| {}).await;
    seen.ends_with(Outcome::Timeout);
}

/// A connection that is lost again and again shows everything once.
pub async fn cuts(side: &impl FarSide) {
    if !side.abilities().resumes {
        return;
    }
    let whole = run(side, Act::Calls).await;
    let least = side.abilities().largest;
    for bytes in (least..least + 3_600).step_by(450) {
        let url = side.serve(Act::Calls).await;
        let proxy = cut::Proxy::start(&url, bytes).await;
        let seen = steered(side, &proxy.url, IDLE * 60, |_, _| {}).await;
        assert_eq!(seen.story(), whole.story(), "{bytes} bytes a connection");
    }
}

/// A remote that breaks its protocol fails alone.
pub async fn broken(side: &impl FarSide) {
    let urls = side.broken().await;
    let all = join_all(urls.iter().map(|url| steered(side, url, IDLE * 60, |_, _| {}))).await;
    for seen in all {
        let why = seen.ends_with(Outcome::Error);
        assert!(!why.is_empty(), "{seen}");
    }
}

async fn run(side: &impl FarSide, act: Act) -> Seen {
    let url = side.serve(act).await;
    steered(side, &url, IDLE * 60, |_, _| {}).await
}

/// Runs a harness whose agent calls the remote one, and calls a function with each event.
async fn steered(
    side: &impl FarSide,
    url: &str,
    idle: Duration,
    mut steer: impl FnMut(&RunHandle, &AgentEvent),
) -> Seen {
    let task = json!({ "agent_id": FAR, "task": "go", "timeout_seconds": 600 });
    let main = [Turn::new().call("agent_spawn", task), Turn::new().text("All done.")];
    let model = ScriptedModel::new().agent("main", main);
    let builder = Harness::builder("main", model).with_remote_host("127.0.0.1".parse().unwrap());
    let harness = side.declare(builder, url).with_idle_timeout(idle).build().unwrap();
    let mut run = harness.stream_events("go");
    let (handle, mut events) = (run.handle(), Vec::new());
    let read = async {
        while let Some(event) = run.next().await {
            steer(&handle, &event);
            events.push(event);
        }
    };
    timeout(LONGEST, read).await.expect("the run ends");
    let seen = Seen { events };
    laws(&seen.events).unwrap_or_else(|error| panic!("{error}\n{seen}"));
    seen
}

/// The events of a run.
struct Seen {
    events: Vec<AgentEvent>,
}

impl Seen {
    fn of<'a>(
        &'a self,
        agent: &'a str,
        is_one: impl Fn(&EventKind) -> bool + 'a,
    ) -> impl Iterator<Item = &'a AgentEvent> {
        self.events.iter().filter(move |event| event.agent_id() == agent && is_one(&event.kind))
    }

    /// Returns the text of an agent's answers.
    fn text_of(&self, agent: &str) -> String {
        let texts = self.of(agent, |_| true).filter_map(|event| match &event.kind {
            EventKind::TextBlockDelta { delta, .. } => Some(delta.as_str()),
            _ => None,
        });
        texts.collect()
    }

    fn thinking(&self) -> String {
        let texts = self.of(FAR, |_| true).filter_map(|event| match &event.kind {
            EventKind::ThinkingBlockDelta { delta, .. } => Some(delta.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Returns the answer of the remote agent, as its caller has it.
    fn answer(&self) -> String {
        let results = self.of(FAR, |_| true).filter_map(|event| match &event.kind {
            EventKind::AgentResult { result } => Some(result.text()),
            _ => None,
        });
        results.last().unwrap_or_default()
    }

    /// Returns the results of the remote agent's calls: the tool, its arguments, the text, the
    /// state.
    fn results(&self, abilities: Abilities) -> Vec<(String, Value, String, ToolState)> {
        let mut results: Vec<(ToolCallId, (String, Value, String, ToolState))> = Vec::new();
        for event in self.of(FAR, |_| true) {
            match &event.kind {
                EventKind::ToolResultStart { tool_call_id, tool_call_name, input, .. } => {
                    let input = if abilities.arguments { input.clone() } else { Value::Null };
                    let begun = (tool_call_name.to_string(), input, String::new(), ToolState::Running);
                    results.push((tool_call_id.clone(), begun));
                }
                EventKind::ToolResultTextDelta { tool_call_id, delta } => {
                    let one = results.iter_mut().rfind(|(id, _)| id == tool_call_id).expect("it has begun");
                    one.1.2.push_str(delta);
                }
                EventKind::ToolResultEnd { tool_call_id, state, .. } => {
                    let one = results.iter_mut().rfind(|(id, _)| id == tool_call_id).expect("it has begun");
                    one.1.3 = *state;
                }
                _ => {}
            }
        }
        results.into_iter().map(|(_, result)| result).collect()
    }

    /// Checks that the remote agent began and ended once, and its caller well; returns the reason
    /// of its end.
    #[track_caller]
    fn ends_with(&self, expected: Outcome) -> String {
        let starts = self.of(FAR, |kind| matches!(kind, EventKind::AgentStart { .. })).count();
        let ends: Vec<_> = self.of(FAR, |_| true).filter_map(end).collect();
        assert_eq!((starts, ends.len()), (1, 1), "{self}");
        let (outcome, why) = ends[0].clone();
        assert_eq!(outcome, expected, "{why:?}\n{self}");
        let root = self.events.iter().rev().find_map(end).expect("the run has ended").0;
        let is_cancelled = expected == Outcome::Cancelled;
        assert_eq!(root, if is_cancelled { Outcome::Cancelled } else { Outcome::Success }, "{self}");
        why
    }

    /// Returns what was said and done, without ids and times.
    fn story(&self) -> Vec<String> {
        let is_told = |kind: &EventKind| !matches!(kind, EventKind::StreamFallback { .. });
        let told = self.events.iter().filter(|event| event.depth() > 0 && is_told(&event.kind));
        told.map(|event| match &event.kind {
            EventKind::TextBlockDelta { delta, .. } | EventKind::ToolResultTextDelta { delta, .. } => {
                format!("{} {delta}", event.agent_id())
            }
            kind => format!("{} {}", event.agent_id(), kind.name()),
        })
        .collect()
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&render(&self.events))
    }
}

fn end(event: &AgentEvent) -> Option<(Outcome, String)> {
    match &event.kind {
        EventKind::AgentEnd { outcome, error, .. } => {
            Some((*outcome, error.as_ref().map_or_else(String::new, |error| error.message.clone())))
        }
        _ => None,
    }
}
