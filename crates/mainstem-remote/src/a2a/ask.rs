//! What a task waits for, as calls that a person here approves, and the answers to it. Pure.
//!
//! A server of ours says which calls it asks about. Others ask in words: then the call is one of
//! `request_input`, whose arguments have the question and an empty answer. A person answers by
//! editing the answer; to approve it as it is means yes, to deny it means no.

use mainstem_a2a::sdk::{Message, Part, PartContent};
use mainstem_event::Decision;
use mainstem_message::{ConfirmId, ContentBlock, ToolCall, ToolCallId, ToolState};
use mainstem_tool::ToolOutput;
use serde_json::{Value, json};

/// The tool that stands for a question.
pub(super) const REQUEST_INPUT: &str = "request_input";

/// The most requests of one status.
const MAX_ASKS: usize = 64;

/// Something that a task waits for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ask {
    pub(super) kind: Kind,
    /// The calls as they are here.
    pub(super) calls: Vec<ToolCall>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A question in words.
    Question(ConfirmId),
    /// Approval of the calls of a Mainstem server, by its id.
    Approval(ConfirmId),
    /// The result of one call of a Mainstem server, with its id there.
    Result(ToolCallId),
}

impl Kind {
    /// Returns what tells a request from another.
    pub(super) fn id(&self) -> String {
        match self {
            Self::Question(id) | Self::Approval(id) => id.to_string(),
            Self::Result(call) => call.to_string(),
        }
    }
}

impl Ask {
    /// Returns the id of the request for approval, if it is one.
    pub(super) fn confirm(&self) -> Option<&ConfirmId> {
        match &self.kind {
            Kind::Question(id) | Kind::Approval(id) => Some(id),
            Kind::Result(_) => None,
        }
    }
}

/// Reads what a status asks. `number` makes the ids of its calls unique.
pub(super) fn asks(message: Option<&Message>, number: usize) -> Vec<Ask> {
    let parts = message.map(|message| &*message.parts).unwrap_or_default();
    let data = parts.iter().filter_map(|part| match &part.content {
        PartContent::Data(data) => Some(data),
        _ => None,
    });
    let known: Vec<_> = data.flat_map(|data| from_data(data, number)).take(MAX_ASKS).collect();
    if known.is_empty() { vec![question(parts, number)] } else { known }
}

fn question(parts: &[Part], number: usize) -> Ask {
    let texts: Vec<_> = parts.iter().filter_map(Part::as_text).collect();
    let id = format!("input-{number}");
    let arguments = json!({ "question": texts.join("\n"), "answer": "" }).to_string();
    let calls = vec![ToolCall::new(&*id, REQUEST_INPUT, arguments)];
    Ask { kind: Kind::Question(ConfirmId::from_lossy(id)), calls }
}

fn from_data(data: &Value, number: usize) -> Vec<Ask> {
    let given = data["toolCalls"].as_array().map(Vec::as_slice).unwrap_or_default();
    let call = |given: &Value| {
        let (id, name) = (given["id"].as_str()?, given["name"].as_str()?);
        Some((id.to_owned(), ToolCall::new(format!("{number}-{id}"), name, given["input"].to_string())))
    };
    let calls: Vec<_> = given.iter().filter_map(call).take(MAX_ASKS).collect();
    match (data["kind"].as_str(), data["confirmId"].as_str().map(str::parse::<ConfirmId>)) {
        (Some("approval"), Some(Ok(id))) if !calls.is_empty() => {
            let calls = calls.into_iter().map(|(_, call)| call).collect();
            vec![Ask { kind: Kind::Approval(id), calls }]
        }
        (Some("results"), _) => {
            let ask =
                |(id, call): (String, ToolCall)| Ask { kind: Kind::Result(id.into()), calls: vec![call] };
            calls.into_iter().map(ask).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the part that answers a request for approval, and what is said of it here.
pub(super) fn decided(ask: &Ask, decision: &Decision) -> (Part, String) {
    let text = match decision {
        Decision::Allow => "yes".to_owned(),
        Decision::AllowWith(input) => {
            let answer =
                input.get("answer").filter(|_| matches!(ask.kind, Kind::Question(_))).unwrap_or(input);
            answer.as_str().map_or_else(|| answer.to_string(), str::to_owned)
        }
        Decision::Deny(reason) => format!("no: {reason}"),
    };
    match &ask.kind {
        Kind::Approval(id) => (approval(id, decision), text),
        Kind::Question(_) | Kind::Result(_) => (Part::text(&text), text),
    }
}

/// Returns the part that answers a Mainstem server's request for approval.
pub(super) fn approval(id: &ConfirmId, decision: &Decision) -> Part {
    let mut answer = json!({ "confirmId": id, "approved": !matches!(decision, Decision::Deny(_)) });
    match decision {
        Decision::Allow => {}
        Decision::AllowWith(input) => answer["input"] = input.clone(),
        Decision::Deny(reason) => answer["reason"] = json!(reason),
    }
    Part::data(answer)
}

/// Returns the text of a result, and whether the call has failed.
pub(super) fn text_of(output: ToolOutput) -> (String, bool) {
    let (content, state) = output.into_parts();
    (content.iter().filter_map(ContentBlock::as_text).collect(), state != ToolState::Success)
}

/// Returns the part that has the result of a call.
pub(super) fn ran(call: &ToolCallId, text: &str, is_error: bool) -> Part {
    Part::data(json!({ "toolCallId": call, "content": text, "isError": is_error }))
}
