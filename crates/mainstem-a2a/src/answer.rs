//! What a task waits for, and what a client replies.
//!
//! A status that requires input has a text and a data part for each request:
//!
//! ```json
//! {"kind": "approval", "confirmId": "…", "agent": "tester",
//!  "toolCalls": [{"id": "…", "name": "…", "input": {}}]}
//! {"kind": "results", "agent": "main",
//!  "toolCalls": [{"id": "…", "name": "…", "input": {}}]}
//! ```
//!
//! A client replies with a message to the task. Its data parts answer one request each:
//!
//! ```json
//! {"confirmId": "…", "approved": true, "input": {}, "reason": "…"}
//! {"toolCallId": "…", "content": "…", "isError": false}
//! ```
//!
//! `input` replaces the arguments of the call, `reason` says why it is denied; both are optional.
//! Without data parts the text answers all requests: `yes`, or `no` and a reason; for a single
//! call that the client runs, the text is its result.

use std::fmt;

use a2a::{Message, Part, PartContent};
use mainstem_event::Decision;
use mainstem_message::{ConfirmId, ReplyId, ToolCall, ToolCallId};
use serde_json::{Value, json};

/// Something that a task waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The invocation that asks.
    pub(crate) asker: Option<ReplyId>,
    /// The name of its agent.
    pub(crate) agent: String,
    /// The request for approval; `None` if the client has to run the calls.
    pub(crate) confirm: Option<ConfirmId>,
    pub(crate) calls: Vec<ToolCall>,
}

/// A client's answer to one request.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a decision or a result")]
pub enum Answer {
    /// To a request for approval.
    Decided(ConfirmId, Decision),
    /// The result of a call that the client has run.
    Result {
        /// The call.
        call: ToolCallId,
        /// The text of the result.
        content: String,
        /// Whether the call has failed.
        is_error: bool,
    },
}

/// A message does not answer what a task waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAnswer(String);

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoAnswer {}

impl Request {
    /// Returns the parts that show it to a client.
    pub(crate) fn parts(&self) -> [Part; 2] {
        let calls: Vec<_> =
            self.calls.iter().map(|call| format!("{}({})", call.name, call.arguments)).collect();
        let (agent, calls) = (&self.agent, calls.join(", "));
        let (kind, text) = match &self.confirm {
            Some(_) => ("approval", format!("{agent} asks for approval of {calls}: answer yes or no")),
            None => ("results", format!("{agent} waits for the result of {calls}")),
        };
        let call = |call: &ToolCall| json!({ "id": call.id, "name": call.name, "input": input(call) });
        let calls: Vec<_> = self.calls.iter().map(call).collect();
        let mut data = json!({ "kind": kind, "agent": agent, "toolCalls": calls });
        if let Some(id) = &self.confirm {
            data["confirmId"] = json!(id);
        }
        [Part::text(text), Part::data(data).with_media_type("application/json")]
    }
}

/// The arguments as JSON, or as the model wrote them.
fn input(call: &ToolCall) -> Value {
    call.parsed_arguments().unwrap_or_else(|_| Value::from(call.arguments.as_str()))
}

/// Reads the answers to pending requests from a client's message.
///
/// # Errors
/// The message contains no answer, or answers a request that is not pending.
pub fn answers(message: &Message, pending: &[Request]) -> Result<Vec<Answer>, NoAnswer> {
    let data = message.parts.iter().filter_map(|part| match &part.content {
        PartContent::Data(data) => Some(data),
        _ => None,
    });
    let decided = data.map(|data| from_data(data, pending)).collect::<Result<Vec<_>, _>>()?;
    if !decided.is_empty() {
        return Ok(decided);
    }
    let text: Vec<_> = message.parts.iter().filter_map(Part::as_text).collect();
    from_text(text.join("\n").trim(), pending)
}

fn from_data(data: &Value, pending: &[Request]) -> Result<Answer, NoAnswer> {
    let unknown = |id: &str| NoAnswer(format!("the task does not wait for an answer to {id:?}"));
    if let Some(id) = data["confirmId"].as_str() {
        let request = pending.iter().find_map(|request| request.confirm.as_ref().filter(|one| **one == *id));
        let id = request.ok_or_else(|| unknown(id))?.clone();
        let approved = data["approved"].as_bool();
        let approved = approved.ok_or_else(|| NoAnswer("`approved` has to be true or false".to_owned()))?;
        let decision = match (approved, data.get("input")) {
            (true, Some(input)) if !input.is_null() => Decision::AllowWith(input.clone()),
            (true, _) => Decision::Allow,
            (false, _) => Decision::Deny(data["reason"].as_str().unwrap_or("the user said no").to_owned()),
        };
        return Ok(Answer::Decided(id, decision));
    }
    let Some(id) = data["toolCallId"].as_str() else {
        return Err(NoAnswer("a data part needs a `confirmId` or a `toolCallId`".to_owned()));
    };
    let call = external(pending).find(|call| call.id == *id).ok_or_else(|| unknown(id))?.id.clone();
    let content = data["content"].as_str().map_or_else(|| data["content"].to_string(), str::to_owned);
    Ok(Answer::Result { call, content, is_error: data["isError"].as_bool().unwrap_or_default() })
}

fn from_text(text: &str, pending: &[Request]) -> Result<Vec<Answer>, NoAnswer> {
    let confirms: Vec<_> = pending.iter().filter_map(|request| request.confirm.clone()).collect();
    let mut calls = external(pending);
    if let (true, Some(call), None) = (confirms.is_empty(), calls.next(), calls.next()) {
        return Ok(vec![Answer::Result { call: call.id.clone(), content: text.to_owned(), is_error: false }]);
    }
    let decision = decision(text).filter(|_| !confirms.is_empty());
    let decision = decision.ok_or_else(|| {
        NoAnswer("the task waits for `yes` or `no`, or for data parts that answer its requests".to_owned())
    })?;
    Ok(confirms.into_iter().map(|id| Answer::Decided(id, decision.clone())).collect())
}

/// Reads a decision: its first word, and the reason after a no.
fn decision(text: &str) -> Option<Decision> {
    let end = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let reason = rest.trim_start_matches(|c: char| !c.is_alphanumeric()).trim();
    match &*word.to_lowercase() {
        "yes" | "y" | "ok" | "okay" | "approve" | "approved" | "allow" if reason.is_empty() => {
            Some(Decision::Allow)
        }
        "no" | "n" | "deny" | "denied" | "reject" | "rejected" => {
            Some(Decision::Deny(if reason.is_empty() { "the user said no" } else { reason }.to_owned()))
        }
        _ => None,
    }
}

/// The calls that the client has to run.
fn external(pending: &[Request]) -> impl Iterator<Item = &ToolCall> {
    pending.iter().filter(|request| request.confirm.is_none()).flat_map(|request| &request.calls)
}
