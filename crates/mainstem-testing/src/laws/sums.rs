//! Laws 6 and 12: the fold gives the answer, and usage adds up.

use mainstem_event::{EventKind, Rollup, fold::fold};
use mainstem_message::{Message, Role, Usage};

use super::{Invocation, Violation};

/// Law 6: the last assistant message of the fold is the `AGENT_RESULT`'s, and every call has its result.
pub(super) fn condensation(all: &[Invocation<'_>]) -> Result<(), Violation> {
    for one in all {
        let folded = fold(one.events.iter().copied());
        let messages = folded.first().map_or(&[][..], |folded| folded.messages());
        let broken = |message: &str| Err(Violation::new(6, one.end(), message));
        let result = one.kinds().find_map(|(_, kind)| match kind {
            EventKind::AgentResult { result } => Some(result),
            _ => None,
        });
        let last = messages.iter().rev().find(|message| message.role == Role::Assistant);
        if result.is_some_and(|result| last != Some(result)) {
            return broken("the fold's last answer is not the AGENT_RESULT's");
        }
        if !answered(messages) {
            return broken("a tool call of the fold has no result behind it");
        }
    }
    Ok(())
}

fn answered(messages: &[std::sync::Arc<Message>]) -> bool {
    messages.iter().enumerate().all(|(index, message)| {
        let mut calls = message.tool_calls().map(|call| &call.id);
        let results: Vec<_> = messages
            .get(index + 1)
            .iter()
            .flat_map(|next| next.tool_results())
            .map(|r| &r.tool_call_id)
            .collect();
        calls.all(|call| results.contains(&call))
    })
}

/// Law 12: inclusive usage is the own and that of every child that ended before.
pub(super) fn roll_up(all: &[Invocation<'_>]) -> Result<(), Violation> {
    for one in all {
        let Some((own, inclusive)) = rollup(one).map(|sum| (sum.own, sum.inclusive)) else { continue };
        let counted = one.kinds().fold(Usage::default(), |sum, (_, kind)| match kind {
            EventKind::ModelCallEnd { usage: Some(usage), .. } => sum + *usage,
            _ => sum,
        });
        if own != counted {
            return Err(Violation::new(12, one.end(), "own usage is not that of its model calls"));
        }
        let session = one.session();
        let children = all.iter().filter(|child| {
            let parent = child.source.map(|source| source.parent_session_id.as_str());
            parent == Some(session) && child.start() > one.start() && child.end() < one.end()
        });
        let sum = children.filter_map(rollup).fold(own, |sum, child| sum + child.inclusive);
        if inclusive != sum {
            return Err(Violation::new(12, one.end(), "inclusive usage is not own plus the children's"));
        }
    }
    Ok(())
}

fn rollup(one: &Invocation<'_>) -> Option<Rollup> {
    one.kinds().find_map(|(_, kind)| match kind {
        EventKind::AgentEnd { usage, .. } => Some(*usage),
        _ => None,
    })
}
