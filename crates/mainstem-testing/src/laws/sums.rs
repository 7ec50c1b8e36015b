//! Laws 6 and 12: the fold equals the answer, and usage adds up.

use std::{collections::HashSet, sync::Arc};

use mainstem_event::{EventKind, Outcome, Rollup, fold::fold};
use mainstem_message::{Message, Role, Usage};

use super::{Invocation, Violation, cause::Callers};

/// Law 6: the last assistant message of the fold is the `AGENT_RESULT`'s, and every call has its
/// result. A run that compacts has no `AGENT_RESULT`.
pub(super) fn condensation(all: &[Invocation<'_>]) -> Result<(), Violation> {
    all.iter().try_for_each(|one| {
        let folded = fold(one.events.iter().copied());
        let messages = folded.first().map_or(&[][..], |folded| folded.messages());
        result(one, messages).and_then(|()| answered(messages)).map_err(|message| {
            let message = format!("{message} of {}", one.key());
            Violation::new(6, one.end(), message)
        })
    })
}

fn result(one: &Invocation<'_>, messages: &[Arc<Message>]) -> Result<(), &'static str> {
    let result = one.kinds().enumerate().find_map(|(at, (_, kind))| match kind {
        EventKind::AgentResult { result } => Some((at, result)),
        _ => None,
    });
    let last = messages.iter().rev().find(|message| message.role == Role::Assistant);
    match result {
        None if compacts(one) => Ok(()),
        Some(_) if compacts(one) => Err("there is an AGENT_RESULT in a run that compacts"),
        None if is_success(one) => Err("there is no AGENT_RESULT in the success"),
        Some((at, _)) if at + 2 != one.events.len() => Err("the AGENT_RESULT is not right before the end"),
        Some((_, result)) if last != Some(result) => Err("the AGENT_RESULT is not the fold's last answer"),
        _ => Ok(()),
    }
}

/// Returns `true` for the root of a run that only compacts the conversation, and gives no answer.
fn compacts(one: &Invocation<'_>) -> bool {
    let is_start = |kind: &EventKind| matches!(kind, EventKind::AgentStart { settings: Some(settings), .. } if settings.compacts);
    one.kinds().next().is_some_and(|(_, kind)| is_start(kind))
}

fn answered(messages: &[Arc<Message>]) -> Result<(), &'static str> {
    let is_answered = |(index, message): (usize, &Arc<Message>)| {
        let next = messages.get(index + 1).into_iter().flat_map(|next| next.tool_results());
        let results: HashSet<_> = next.map(|result| &result.tool_call_id).collect();
        message.tool_calls().all(|call| results.contains(&call.id))
    };
    if messages.iter().enumerate().all(is_answered) {
        return Ok(());
    }
    Err("a tool call has no result behind it in the fold")
}

/// Law 12: inclusive usage and cost are the own and those of every child that ended before; what is
/// unknown in part is unknown.
pub(super) fn roll_up(all: &[Invocation<'_>], callers: &Callers) -> Result<(), Violation> {
    let mut sums: Vec<_> = all.iter().map(own).collect();
    let mut costs: Vec<_> = all.iter().map(|one| usage(one).own_cost).collect();
    for (one, counted) in all.iter().zip(&sums) {
        if usage(one).own != *counted {
            return Err(broken(one, "own usage is not that of its model calls"));
        }
        if usage(one).own_cost.is_some() && has_uncounted(one) {
            return Err(broken(one, "own cost is known, although not what all model calls used"));
        }
    }
    for (child, caller) in all.iter().zip(callers) {
        if let Some(caller) = caller.filter(|caller| child.end() < all[*caller].end()) {
            sums[caller] += usage(child).inclusive;
            costs[caller] = plus(costs[caller], usage(child).inclusive_cost);
        }
    }
    if let Some((one, _)) = all.iter().zip(&costs).find(|(one, cost)| usage(one).inclusive_cost != **cost) {
        return Err(broken(one, "inclusive cost is not own plus the children's"));
    }
    match all.iter().zip(&sums).find(|(one, sum)| usage(one).inclusive != **sum) {
        Some((one, _)) => Err(broken(one, "inclusive usage is not own plus the children's")),
        None => Ok(()),
    }
}

fn broken(one: &Invocation<'_>, what: &str) -> Violation {
    Violation::new(12, one.end(), format!("{what}: {}", one.key()))
}

/// Returns the usage of its model calls.
fn own(one: &Invocation<'_>) -> Usage {
    one.kinds().fold(Usage::default(), |sum, (_, kind)| match kind {
        EventKind::ModelCallEnd { usage: Some(usage), .. } => sum + *usage,
        _ => sum,
    })
}

/// Returns `true` if it made a model call without a reported usage. An answer of a middleware is
/// not a model call.
fn has_uncounted(one: &Invocation<'_>) -> bool {
    let mut is_asked = false;
    one.kinds().any(|(_, kind)| match kind {
        EventKind::ModelCallStart { model_name, .. } => {
            is_asked = &**model_name != "middleware";
            false
        }
        EventKind::ModelCallEnd { usage, .. } => is_asked && usage.is_none(),
        _ => false,
    })
}

fn plus(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.saturating_add(b?))
}

/// Returns the usage in its `AGENT_END`.
fn usage(one: &Invocation<'_>) -> Rollup {
    match one.ending() {
        EventKind::AgentEnd { usage, .. } => **usage,
        _ => Rollup::default(),
    }
}

fn is_success(one: &Invocation<'_>) -> bool {
    matches!(one.ending(), EventKind::AgentEnd { outcome: Outcome::Success, .. })
}
