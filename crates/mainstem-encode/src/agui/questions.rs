//! What a run waits for from outside: approvals, and results of the frontend's tools.

use std::collections::{BTreeMap, BTreeSet};

use mainstem_event::{AgentEvent, EventKind, EventSource, Timestamp};
use mainstem_message::{ReplyId, ToolCall, ToolCallId};
use serde_json::{Value, json};

use super::{
    Children, subagent_id,
    wire::{Interrupt, OURS},
};

/// Returns AG-UI's id of a tool call. A vendor's id is unique within a reply only, and a frontend
/// looks for it in the whole conversation.
pub fn tool_call_id(reply: &ReplyId, call: &ToolCallId) -> String {
    format!("{reply}/{call}")
}

/// Returns the vendor's id of a tool call that [`tool_call_id`] has named.
pub fn vendors_call_id(id: &str) -> ToolCallId {
    ToolCallId::new(id.split_once('/').map_or(id, |(_, call)| call))
}

/// The questions of a run, from its events: by the id of the approval, or of the tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asked {
    /// Those without an answer.
    pub open: BTreeSet<String>,
    /// Those with an answer.
    pub answered: BTreeSet<String>,
    /// The number of the event that asked, for each.
    pub seqs: BTreeMap<String, u64>,
    /// The number of the latest event.
    pub seq: u64,
}

impl Asked {
    /// Applies the next event.
    pub fn apply(&mut self, event: &AgentEvent) {
        self.seq = event.seq;
        for id in asked(event) {
            self.seqs.insert(id.clone(), event.seq);
            self.open.insert(id);
        }
        for id in answered(event) {
            if self.open.remove(&id) {
                self.answered.insert(id);
            }
        }
    }
}

fn asked(event: &AgentEvent) -> Vec<String> {
    match &event.kind {
        EventKind::RequireUserConfirm { confirm_id, .. } => vec![confirm_id.to_string()],
        EventKind::RequireExternalExecution { tool_calls, .. } => {
            tool_calls.iter().filter_map(|call| named(event, &call.id)).collect()
        }
        _ => Vec::new(),
    }
}

fn answered(event: &AgentEvent) -> Vec<String> {
    match &event.kind {
        EventKind::UserConfirmResult { confirm_id, .. } => vec![confirm_id.to_string()],
        EventKind::ExternalExecutionResult { tool_results } => {
            tool_results.iter().filter_map(|result| named(event, &result.tool_call_id)).collect()
        }
        // A call of a frontend's tool that is stopped has no answer, only an end.
        EventKind::ToolResultEnd { tool_call_id, .. } => named(event, tool_call_id).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn named(event: &AgentEvent, call: &ToolCallId) -> Option<String> {
    Some(tool_call_id(event.reply_id()?, call))
}

/// A question that is open.
#[derive(Debug)]
struct Question {
    asked_at: Timestamp,
    /// `None` for the result of a frontend's tool.
    approval: Option<Approval>,
}

#[derive(Debug)]
struct Approval {
    source: Option<EventSource>,
    calls: Vec<ToolCall>,
    /// AG-UI's id of the first call.
    call: Option<String>,
    subagent: Option<String>,
}

/// The open questions of a stream.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: BTreeMap<String, Question>,
    /// Up to the event with this number, only these are open: others are answered, although the
    /// stream has not come to the answer yet.
    known: Option<(u64, BTreeSet<String>)>,
}

impl Questions {
    pub(super) fn know(&mut self, seq: u64, open: BTreeSet<String>) {
        self.known = Some((seq, open));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns when the oldest open question was asked.
    pub(super) fn since(&self) -> Option<Timestamp> {
        self.open.values().map(|question| question.asked_at).min()
    }

    pub(super) fn apply(&mut self, event: &AgentEvent) {
        for id in asked(event) {
            if self.known.as_ref().is_none_or(|(seq, open)| event.seq > *seq || open.contains(&id)) {
                self.open.insert(id, Question { asked_at: event.at, approval: Approval::of(event) });
            }
        }
        for id in answered(event) {
            self.open.remove(&id);
        }
    }

    /// Returns the ids of the calls of frontend's tools that have no result.
    pub(super) fn calls(&self) -> Vec<&str> {
        let calls = self.open.iter().filter(|(_, question)| question.approval.is_none());
        calls.map(|(id, _)| id.as_str()).collect()
    }

    /// Returns the approvals, which name what the stream shows of children.
    pub(super) fn interrupts(&self, children: Children) -> Vec<Interrupt<'_>> {
        let approvals = self.open.iter().filter_map(|(id, question)| Some((id, question.approval.as_ref()?)));
        approvals.map(|(id, approval)| approval.interrupt(id, children)).collect()
    }

    /// Returns the ids of the approvals that an agent, or one below it, waits for.
    pub(super) fn below(&self, path: &str, subagent: Option<&str>) -> Vec<&str> {
        let is_below = |approval: &Approval| {
            let below =
                approval.source.as_ref().is_some_and(|source| source.is_under(path) && *source.path != *path);
            below || approval.subagent.as_deref() == subagent
        };
        let approvals =
            self.open.iter().filter(|(_, question)| question.approval.as_ref().is_some_and(is_below));
        approvals.map(|(id, _)| id.as_str()).collect()
    }
}

impl Approval {
    fn of(event: &AgentEvent) -> Option<Self> {
        let EventKind::RequireUserConfirm { tool_calls, .. } = &event.kind else { return None };
        Some(Self {
            source: event.source().cloned(),
            calls: tool_calls.clone(),
            call: tool_calls.first().and_then(|call| named(event, &call.id)),
            subagent: event.source().map(subagent_id),
        })
    }

    fn interrupt<'a>(&'a self, id: &'a str, children: Children) -> Interrupt<'a> {
        let tools: Vec<_> = self.calls.iter().map(|call| format!("`{}`", call.name)).collect();
        let agent = self.source.as_ref().map(|source| source.agent_name.as_ref().unwrap_or(&source.agent_id));
        let agent = agent.map_or_else(|| "the agent".to_owned(), |name| format!("agent `{name}`"));
        let mut ours = json!({ "toolCalls": self.calls });
        if let Some(source) = &self.source {
            ours["source"] = json!(source);
        }
        let is_shown = self.source.is_none() || children != Children::Hide;
        Interrupt {
            id,
            reason: "tool_call",
            message: format!("{agent} asks to run {}", tools.join(", ")),
            tool_call_id: self.call.as_deref().filter(|_| is_shown),
            subagent_run_id: self.subagent.as_deref().filter(|_| children == Children::Subagents),
            response_schema: response_schema(),
            metadata: json!({ OURS: ours }),
        }
    }
}

/// Returns the schema of the answer to an approval.
fn response_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "approved": { "type": "boolean" },
            "reason": { "type": "string", "description": "why not; the agent reads it" },
            "editedArgs": { "type": "object", "description": "replaces the arguments of the call" },
        },
        "required": ["approved"],
    })
}
