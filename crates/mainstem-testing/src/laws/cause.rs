//! Law 3: a child comes after the call that caused it and ends before that call's result; children start in call order.

use std::collections::HashMap;

use mainstem_event::EventKind;
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
    for (index, child) in all.iter().enumerate() {
        let Some(source) = child.source else { continue };
        let Some(id) = &source.parent_tool_call_id else { continue };
        let parent = parent(&all[..index], child, id);
        let broken = |message: String| Err(Violation::new(3, child.start(), message));
        let Some(call) = parent else {
            return broken(format!("{} was caused by {id}, which nobody called before", source.agent_key));
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

/// The cause of a child, among the invocations that run while it starts.
fn parent(before: &[Invocation<'_>], child: &Invocation<'_>, id: &ToolCallId) -> Option<Call> {
    let runs = |one: &&Invocation<'_>| one.start() < child.start();
    before
        .iter()
        .filter(runs)
        .rev()
        .find_map(|one| calls(one).remove(id).filter(|call| call.called < child.start()))
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
    let mut last: HashMap<(&ReplyId, u64), usize> = HashMap::new();
    let mut seen: Vec<&ToolCallId> = Vec::new();
    for child in all {
        let Some(id) = child.source.and_then(|source| source.parent_tool_call_id.as_ref()) else { continue };
        if seen.contains(&id) {
            continue;
        }
        seen.push(id);
        let parent = all.iter().find(|one| one.start() < child.start() && calls(one).contains_key(id));
        let Some(parent) = parent else { continue };
        let Some(reply_id) = parent.events[0].reply_id() else { continue };
        let turn = parent.kinds().filter(|(event, kind)| {
            event.seq < child.start() && matches!(kind, EventKind::ModelCallStart { .. })
        });
        let order = calls(parent)[id].order;
        let before = last.insert((reply_id, turn.count() as u64), order);
        if before.is_some_and(|before| before > order) {
            return Err(Violation::new(3, child.start(), format!("the child of {id} starts out of order")));
        }
    }
    Ok(())
}
