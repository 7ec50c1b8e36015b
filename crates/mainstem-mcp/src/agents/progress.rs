//! What a client is told about a run while it works. Pure.

use std::{collections::BTreeMap, time::Duration};

use mainstem_event::{AgentEvent, EventKind};
use mainstem_message::ToolState;

/// The interval of messages about text.
const INTERVAL: Duration = Duration::from_secs(1);

/// The longest text in a message, in characters.
const LONGEST: usize = 100;

/// The most agents whose text is held.
const MAX_AGENTS: usize = 256;

/// Turns events into lines for a person: beginnings and ends of agents and tool calls, and once a
/// second the latest text.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The latest text of each agent.
    texts: BTreeMap<u64, String>,
    /// When the last message about text was.
    said: Duration,
}

impl Progress {
    /// Returns the message about an event, `at` this time of the run; `None` if it is not worth
    /// one.
    pub(super) fn message(&mut self, event: &AgentEvent, at: Duration) -> Option<String> {
        use EventKind::*;
        let agent = event.agent_label();
        match &event.kind {
            AgentStart { input, .. } if !event.is_root() => {
                let task = input.last().map(|message| message.text()).unwrap_or_default();
                Some(format!("{agent} begins: {}", beginning(&task)))
            }
            AgentEnd { outcome, .. } => {
                self.texts.remove(&stream_id(event));
                (!event.is_root()).then(|| format!("{agent} has ended: {}", outcome.as_str()))
            }
            ToolResultStart { tool_call_name, input, .. } => {
                Some(format!("{agent}: {tool_call_name} {}", beginning(&input.to_string())))
            }
            ToolResultEnd { tool_call_name, state: ToolState::Error | ToolState::Denied, .. } => {
                Some(format!("{agent}: {tool_call_name} failed"))
            }
            RequireUserConfirm { tool_calls, .. } => {
                let names: Vec<_> = tool_calls.iter().map(|call| call.name.as_str()).collect();
                Some(format!("{agent} waits for the approval of {}", names.join(", ")))
            }
            TextBlockDelta { delta, .. } => self.text(event, delta, at),
            _ => None,
        }
    }

    fn text(&mut self, event: &AgentEvent, delta: &str, at: Duration) -> Option<String> {
        let key = stream_id(event);
        if self.texts.len() >= MAX_AGENTS && !self.texts.contains_key(&key) {
            return None;
        }
        let text = self.texts.entry(key).or_default();
        text.push_str(delta);
        *text = ending(text);
        if at < self.said + INTERVAL {
            return None;
        }
        self.said = at;
        Some(format!("{}: {}", event.agent_label(), text.trim()))
    }
}

fn stream_id(event: &AgentEvent) -> u64 {
    event.source().map_or(0, |source| source.stream_id)
}

/// Returns the first characters of a text, on one line.
fn beginning(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST {
        return line;
    }
    line.chars().take(LONGEST).chain(['…']).collect()
}

/// Returns the last characters of a text, on one line.
fn ending(text: &str) -> String {
    let line = text.replace(['\n', '\r'], " ");
    let skipped = line.chars().count().saturating_sub(LONGEST);
    line.chars().skip(skipped).collect()
}

#[cfg(test)]
mod tests {
    //! Which events have a message, and which.

    use std::sync::Arc;

    use mainstem_event::{Origin, Outcome, Rollup, Timestamp};
    use mainstem_message::{Message, Role, ToolCallId};
    use serde_json::json;

    use super::*;

    fn event(kind: EventKind) -> AgentEvent {
        let origin = Origin::session("s".parse().unwrap(), None);
        AgentEvent::new(1, Timestamp::default(), Arc::new(origin), kind)
    }

    fn text(delta: &str) -> EventKind {
        EventKind::TextBlockDelta { block_id: "b".parse().unwrap(), delta: delta.to_owned() }
    }

    #[test]
    fn text_is_told_once_a_second_and_calls_at_once() {
        let mut progress = Progress::default();
        let mut check = |kind: EventKind, millis: u64, expected: Option<&str>| {
            let message = progress.message(&event(kind), Duration::from_millis(millis));
            assert_eq!(message.as_deref(), expected);
        };
        let call = || ToolCallId::new("c");
        check(EventKind::agent_start("main", Role::User, vec![Arc::new(Message::user("go"))]), 0, None);
        check(text("Paris "), 10, None);
        check(text("has\n309 "), 1_000, Some("main: Paris has 309"));
        check(text("stations"), 1_999, None);
        check(text("."), 2_000, Some("main: Paris has 309 stations."));
        check(text(&"x".repeat(200)), 3_000, Some(&format!("main: {}", "x".repeat(100))));
        let long = json!({ "q": "y".repeat(200) });
        let shown = format!("main: search {{\"q\":\"{}…", "y".repeat(94));
        check(EventKind::tool_result_start(call(), "search", long), 3_001, Some(&shown));
        check(EventKind::tool_result_end(call(), "search", ToolState::Success, 1), 3_002, None);
        check(
            EventKind::tool_result_end(call(), "search", ToolState::Error, 1),
            3_003,
            Some("main: search failed"),
        );
        check(EventKind::agent_end(Outcome::Success, Rollup::default(), 1), 3_004, None);
    }
}
