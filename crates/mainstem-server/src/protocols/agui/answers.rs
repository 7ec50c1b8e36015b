//! Answers to what a run waits for: `resume` entries, and messages of the role `tool`.

use mainstem::{
    encode::agui::{Asked, vendors_call_id},
    event::Decision,
    message::ConfirmId,
    prelude::Session,
    session::refusal,
};
use mainstem_api::{AnySession, Code, NewToolResult};
use serde_json::Value;

use super::input::{Message, ResumeEntry, ResumeStatus, RunAgentInput, wrong};
use crate::problem::Problem;

/// The answers of a request, all of which were asked for.
pub(super) struct Answers<'a> {
    asked: Asked,
    /// Those that are open.
    decisions: Vec<(ConfirmId, Decision)>,
    results: Vec<&'a Message>,
    /// All, also those that were given before.
    ids: Vec<&'a str>,
}

impl<'a> Answers<'a> {
    /// Reads the answers. One that was given before, here or elsewhere, is passed over: a request
    /// can be repeated, and the stream has the answer that counts.
    ///
    /// # Errors
    /// An answer has the wrong form, or nothing has asked for it.
    pub(super) fn of(input: &'a RunAgentInput, session: &Session, asked: Asked) -> Result<Self, Problem> {
        let mut answers = Self { asked, decisions: Vec::new(), results: Vec::new(), ids: Vec::new() };
        for (place, entry) in input.resume.iter().enumerate() {
            answers.add_entry(entry, session, place)?;
        }
        let results = input.messages.iter().filter(|message| message.role == "tool");
        for message in results {
            answers.add_result(message);
        }
        if answers.ids.is_empty() {
            let detail = "no call of the thread waits for the result of a tool";
            return Err(Problem::new(Code::NotAsked, detail));
        }
        Ok(answers)
    }

    fn add_entry(&mut self, entry: &'a ResumeEntry, session: &Session, place: usize) -> Result<(), Problem> {
        let id = &*entry.interrupt_id;
        let decision = decision(entry).map_err(|why| wrong(&format!("/resume/{place}/payload"), why))?;
        let unknown = || Problem::not_found("interrupt", id);
        let confirm: ConfirmId = id.parse().map_err(|_| unknown())?;
        // An agent in the background may ask in an earlier run.
        let is_open = self.asked.open.contains(id) || session.fleet().confirmations.contains_key(&confirm);
        if is_open {
            self.decisions.push((confirm, decision));
        } else if !self.asked.answered.contains(id) {
            return Err(unknown());
        }
        self.ids.push(id);
        Ok(())
    }

    fn add_result(&mut self, message: &'a Message) {
        let Some(id) = message.tool_call_id.as_deref() else { return };
        if self.asked.open.contains(id) {
            self.results.push(message);
            self.ids.push(id);
        } else if self.asked.answered.contains(id) {
            self.ids.push(id);
        }
    }

    /// Gives the answers. Returns what the run waits for then, and the number of the last event
    /// that the client has: `position`, if it says so, or else that of the first question.
    ///
    /// # Errors
    /// A question was answered or withdrawn in the meantime.
    pub(super) async fn give(
        self,
        session: &Session,
        position: Option<u64>,
    ) -> Result<(Asked, u64), Problem> {
        let Self { mut asked, decisions, results, ids } = self;
        for (id, decision) in decisions {
            session.confirm(&id, decision).map_err(|error| refusal::no_answer(&error))?;
        }
        for message in results {
            let call = vendors_call_id(message.tool_call_id.as_deref().unwrap_or_default());
            let failure = message.error.clone();
            let is_error = failure.is_some();
            let content = failure.filter(|_| message.content.is_null()).unwrap_or_else(|| message.text());
            AnySession::submit(session, &call, &NewToolResult { content, is_error }).await?;
        }
        let first = ids.iter().filter_map(|id| asked.seqs.get(*id)).min().copied();
        let last = asked.seq;
        asked.open.retain(|id| !ids.contains(&id.as_str()));
        let after = position.filter(|seq| (first.unwrap_or(0)..=last).contains(seq));
        Ok((asked, after.or(first).unwrap_or(last)))
    }
}

/// Reads an answer: `{ "approved": …, "reason"?, "editedArgs"? }`, or the bare `true` or `false`.
fn decision(entry: &ResumeEntry) -> Result<Decision, &'static str> {
    if entry.status == ResumeStatus::Cancelled {
        return Ok(Decision::Deny("the user cancelled the request".to_owned()));
    }
    let payload = &entry.payload;
    let approved = payload.as_bool().or_else(|| payload.get("approved")?.as_bool());
    let edited = ["editedArgs", "arguments"].iter().find_map(|name| payload.get(name));
    match (approved, edited) {
        (Some(true), None | Some(Value::Null)) => Ok(Decision::Allow),
        (Some(true), Some(arguments)) => Ok(Decision::AllowWith(arguments.clone())),
        (Some(false), _) => {
            let reason = payload.get("reason").and_then(Value::as_str).unwrap_or("the user said no");
            Ok(Decision::Deny(reason.to_owned()))
        }
        (None, _) => Err("an answer has `approved`, which is true or false"),
    }
}
