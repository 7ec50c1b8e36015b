//! Law 3: a child comes after the call that caused it and ends before that call's result; children start in call order.

use std::collections::{HashMap, HashSet};

use mainstem_event::{AgentEvent, EventKind};
use mainstem_message::{ReplyId, ToolCallId, ToolState};

use super::{Invocation, Violation};

/// Of one call: where it ended, where its result ended, how.
#[derive(Default)]
struct Call {
    order: usize,
    called: u64,
    result: Option<(u64, ToolState)>,
}

pub(super) fn check(all: &[Invocation<'_>]) -> Result<(), Violation> {
    for child in all {
        let Some(source) = child.source else { continue };
        let Some(id) = &source.parent_tool_call_id else { continue };
        let call = caller(all, child, id).and_then(|one| calls(one).remove(id));
        let Some(call) = call else {
            let message = format!("{} was caused by {id}, which nobody called before", source.agent_key);
            return Err(Violation::new(3, child.start(), message));
        };
        match call.result {
            Some((_, ToolState::Running)) | None => {}
            Some((seq, _)) if seq > child.end() => {}
            Some((seq, _)) => {
                return Err(Violation::new(
                    3,
                    seq,
                    format!("the result of {id} ends before {}", source.agent_key),
                ));
            }
        }
    }
    order(all)
}

/// The invocation that made the call, among those at work when the child starts: the parent's own, or that of whoever sent the child
/// a further message. Ids of calls are unique within a reply only.
fn caller<'a, 'e>(
    all: &'a [Invocation<'e>],
    child: &Invocation<'_>,
    id: &ToolCallId,
) -> Option<&'a Invocation<'e>> {
    let parent = child.source.map(|source| source.parent_session_id.as_str());
    let made = |one: &&Invocation<'_>| {
        one.start() < child.start()
            && one.end() > child.start()
            && calls(one).get(id).is_some_and(|call| call.called < child.start())
    };
    all.iter().filter(made).max_by_key(|one| Some(one.session()) == parent)
}

fn calls(one: &Invocation<'_>) -> HashMap<ToolCallId, Call> {
    let mut calls: HashMap<ToolCallId, Call> = HashMap::new();
    for (event, kind) in one.kinds() {
        match kind {
            EventKind::ToolCallEnd { tool_call_id, .. } => {
                let order = calls.len();
                calls.insert(tool_call_id.clone(), Call { order, called: event.seq, result: None });
            }
            EventKind::ToolResultEnd { tool_call_id, state, .. } => {
                if let Some(call) = calls.get_mut(tool_call_id) {
                    call.result = Some((event.seq, *state));
                }
            }
            _ => {}
        }
    }
    calls
}

/// The first children of the calls of one turn start in the order of the calls.
fn order(all: &[Invocation<'_>]) -> Result<(), Violation> {
    let mut last: HashMap<(&ReplyId, usize), usize> = HashMap::new();
    let mut seen: HashSet<(&ReplyId, &ToolCallId)> = HashSet::new();
    for child in all {
        let Some(id) = child.source.and_then(|source| source.parent_tool_call_id.as_ref()) else { continue };
        let Some(caller) = caller(all, child, id) else { continue };
        let Some(reply_id) = caller.events[0].reply_id() else { continue };
        if !seen.insert((reply_id, id)) {
            continue;
        }
        let is_turn = |(event, kind): &(&AgentEvent, &EventKind)| {
            event.seq < child.start() && matches!(kind, EventKind::ModelCallStart { .. })
        };
        let order = calls(caller)[id].order;
        let before = last.insert((reply_id, caller.kinds().filter(is_turn).count()), order);
        if before.is_some_and(|before| before > order) {
            return Err(Violation::new(3, child.start(), format!("the child of {id} starts out of order")));
        }
    }
    Ok(())
}
