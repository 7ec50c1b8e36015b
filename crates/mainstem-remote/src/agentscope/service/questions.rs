//! What the service asks of its caller: approvals, and calls that the caller runs.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mainstem_event::Decision;
use mainstem_message::{ConfirmId, ContentBlock, DataSource, ToolCallId, ToolState};
use mainstem_tool::ToolOutput;
use serde_json::{Value, json};

use super::super::approvals::Approvals;

/// The calls that wait, shared by what reads a reply and what steers it.
#[derive(Debug, Default)]
pub(super) struct Questions {
    approvals: Arc<Approvals>,
    calls: Mutex<HashMap<ToolCallId, Pending>>,
    /// The answers whose request was lost.
    lost: Mutex<Vec<Lost>>,
}

/// An answer that may not have arrived.
#[derive(Debug)]
struct Lost {
    event: Value,
    /// How often its call was seen to wait since.
    seen: u32,
}

/// How often a call is seen to wait before its answer is sent again: one that has arrived takes a
/// moment to have its effect, and a second one would fail the reply.
const PATIENCE: u32 = 2;

/// A call as the service wants it back.
#[derive(Clone, Debug)]
struct Pending {
    reply: String,
    call: Value,
    /// Whether the caller was asked to run it.
    is_required: bool,
}

impl Questions {
    /// Returns the questions of a reply about which an earlier process has asked at most so often.
    pub(super) fn after(requests: usize) -> Self {
        Self { approvals: Arc::new(Approvals::after(requests)), ..Self::default() }
    }

    pub(super) fn approvals(&self) -> Arc<Approvals> {
        self.approvals.clone()
    }

    /// Notes a call that the service asks about.
    pub(super) fn note(&self, id: ToolCallId, reply: &str, call: Value) {
        let pending = Pending { reply: reply.to_owned(), call, is_required: false };
        self.calls().entry(id).or_insert(pending);
    }

    /// Returns `true` the first time that the caller has to run a call.
    pub(super) fn is_new(&self, id: &ToolCallId) -> bool {
        self.calls().get_mut(id).is_some_and(|one| !std::mem::replace(&mut one.is_required, true))
    }

    /// Takes a decision; returns the event that tells the service all decisions of a request, once
    /// they are made.
    pub(super) fn decide(&self, id: &ConfirmId, decision: Decision) -> Option<Value> {
        let decisions = self.approvals.decide(id, decision)?;
        let calls = self.calls();
        let known = decisions.into_iter().filter_map(|(id, decision)| Some((calls.get(&id)?, decision)));
        let known: Vec<_> = known.collect();
        let (Pending { reply, .. }, _) = known.first()?;
        let results: Vec<_> = known.iter().map(|(one, decision)| result(&one.call, decision)).collect();
        Some(json!({ "type": "USER_CONFIRM_RESULT", "reply_id": reply, "confirm_results": results }))
    }

    /// Returns the event that tells the service the result of a call.
    pub(super) fn executed(&self, id: &ToolCallId, output: ToolOutput) -> Option<Value> {
        let Pending { reply, call, .. } = self.calls().get(id).cloned()?;
        let (content, state) = output.into_parts();
        let result = json!({
            "type": "tool_result",
            "id": call["id"],
            "name": call["name"],
            "output": content.iter().filter_map(block).collect::<Vec<_>>(),
            "state": word(state),
        });
        Some(json!({ "type": "EXTERNAL_EXECUTION_RESULT", "reply_id": reply, "execution_results": [result] }))
    }

    /// Notes that an answer may not have arrived.
    pub(super) fn lose(&self, event: Value) {
        self.lost().push(Lost { event, seen: 0 });
    }

    /// Returns the answers to send again, of the calls that still wait at the service.
    pub(super) fn overdue(&self, waiting: &[&str]) -> Vec<Value> {
        let mut overdue = Vec::new();
        self.lost().retain_mut(|one| {
            if !calls_of(&one.event).any(|call| waiting.contains(&call)) {
                return false;
            }
            one.seen += 1;
            let is_due = one.seen >= PATIENCE;
            overdue.extend(is_due.then(|| one.event.clone()));
            !is_due
        });
        overdue
    }

    fn lost(&self) -> MutexGuard<'_, Vec<Lost>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<ToolCallId, Pending>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the calls that an answer is about, by their ids at the service.
fn calls_of(event: &Value) -> impl Iterator<Item = &str> {
    let list = |name: &str| event[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let decided = list("confirm_results").iter().map(|one| &one["tool_call"]["id"]);
    let executed = list("execution_results").iter().map(|one| &one["id"]);
    decided.chain(executed).filter_map(Value::as_str)
}

/// Returns a decision about a call. The service has no field for the reason of a denial.
fn result(call: &Value, decision: &Decision) -> Value {
    let mut call = call.clone();
    if let (Decision::AllowWith(arguments), Some(fields)) = (decision, call.as_object_mut()) {
        fields.insert("input".to_owned(), Value::String(arguments.to_string()));
    }
    json!({ "confirmed": !matches!(decision, Decision::Deny(_)), "tool_call": call })
}

fn block(content: &ContentBlock) -> Option<Value> {
    match content {
        ContentBlock::Data { media_type, source, .. } => {
            let source = match source {
                DataSource::Base64(data) => {
                    json!({ "type": "base64", "data": data, "media_type": media_type })
                }
                DataSource::Url(url) => json!({ "type": "url", "url": url, "media_type": media_type }),
                _ => return None,
            };
            Some(json!({ "type": "data", "source": source }))
        }
        content => content.as_text().map(|text| json!({ "type": "text", "text": text })),
    }
}

/// Returns the word for the state of a result, which has ended.
fn word(state: ToolState) -> &'static str {
    match state {
        ToolState::Running => ToolState::Success.as_str(),
        state => state.as_str(),
    }
}
