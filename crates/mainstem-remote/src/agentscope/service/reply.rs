//! A reply as far as it was read: from the events of its session, and from its message where events
//! are missing. Pure but for the approvals that wait.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use mainstem_encode::agent_protocol::{Snapshot, Status};
use mainstem_event::{
    EventKind, Outcome,
    fold::{RecordedCall, RecordedInvocation},
};
use mainstem_message::{Role, SessionId, ToolCall, ToolCallId, Usage};
use serde_json::Value;

use super::{
    super::{
        decode::{Statement, state},
        fold::TaskFold,
    },
    decode::{data, hint, statement, texts, tool_call, usage},
    questions::Questions,
    remote_id::RemoteId,
    wire::{Block, Event, Failed, Message},
};
use crate::RemoteEvent;

/// The end of the name of a call that is made again, because it was discarded.
const AGAIN: &str = "-again";

/// How much of a block is said that is complete.
const COMPLETE: usize = usize::MAX;

/// The code of the end of a reply that has used up its iterations, and its name in messages.
const EXCEEDED: &str = "exceed_max_iters";

/// A reply so far.
#[derive(Debug)]
pub(super) struct Reply {
    session: String,
    /// Its id, once it has begun.
    id: Option<String>,
    fold: TaskFold,
    questions: Arc<Questions>,
    /// How much of each block was said, in bytes.
    said: HashMap<String, usize>,
    /// The calls that are discarded in the record. They come again, under another id.
    discarded: HashSet<ToolCallId>,
    /// What the model calls that were read have used.
    used: Usage,
    /// Whether another process has recorded a part of it.
    is_recorded: bool,
    /// What the agent was told in the record: its task, and hints.
    told: Vec<String>,
    /// Whether the present model call has said something that is not in the record.
    has_said: bool,
    events: Vec<RemoteEvent>,
}

impl Reply {
    /// Creates a reply that has not begun: of this agent, in a session of the service.
    pub(super) fn new(agent: &str, session: &str, own: SessionId, questions: Arc<Questions>) -> Self {
        let fold = TaskFold::new(agent, own, questions.approvals());
        let (id, said, discarded, used, events) = Default::default();
        let (is_recorded, told, has_said) = Default::default();
        let session = session.to_owned();
        Self { session, id, fold, questions, said, discarded, used, is_recorded, told, has_said, events }
    }

    /// Creates a reply of which another process has recorded a part.
    pub(super) fn recorded(
        agent: &str,
        session: &str,
        own: SessionId,
        questions: Arc<Questions>,
        recorded: &RecordedInvocation,
    ) -> Self {
        let fold = TaskFold::recorded(agent, own.clone(), questions.approvals(), recorded);
        let parts = &recorded.parts;
        let complete = parts.remote_ids.iter().filter_map(|id| RemoteId::parse(id));
        let before = parts.calls.iter().filter(|(_, call)| **call == RecordedCall::Discarded);
        let now = parts.attempt.iter().flat_map(|said| said.tool_calls.iter().cloned());
        Self {
            fold,
            said: complete.map(|id| (id.part.to_owned(), COMPLETE)).collect(),
            discarded: before.map(|(id, _)| id.clone()).chain(now).collect(),
            used: recorded.usage.own,
            is_recorded: true,
            told: told(recorded),
            ..Self::new(agent, session, own, questions)
        }
    }

    /// Returns the id, once the reply has begun.
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns `true` once it has ended.
    pub(super) fn is_over(&self) -> bool {
        self.fold.is_over()
    }

    /// Takes the events so far.
    pub(super) fn take(&mut self) -> Vec<RemoteEvent> {
        std::mem::take(&mut self.events)
    }

    /// Takes in an event of the session; `text` is all of it. Events of other replies say nothing.
    pub(super) fn read(&mut self, event: &Event, text: &str) {
        // One that is followed by another without a word has not been this turn's.
        if event.kind == "REPLY_START" && (self.id.is_none() || self.said.is_empty()) {
            self.id.clone_from(&event.reply_id);
        }
        let is_own = event.reply_id.is_some() && event.reply_id == self.id;
        let is_of_application = event.reply_id.is_none() && self.id.is_some();
        if !is_own && !is_of_application {
            return;
        }
        match &*event.kind {
            "REPLY_START" => {}
            "REPLY_END" => self.end(event.finished_reason.as_deref(), event.error.as_ref()),
            "EXTERNAL_EXECUTION_RESULT" => event.execution_results.iter().for_each(|one| self.result(one)),
            "REQUIRE_EXTERNAL_EXECUTION" => self.require(&event.tool_calls),
            _ => self.say(event, text),
        }
    }

    fn say(&mut self, event: &Event, text: &str) {
        if event.kind == "REQUIRE_USER_CONFIRM" {
            self.note(&event.tool_calls);
        }
        let said = self.renamed(statement(event, text));
        let Some(place) = place(event) else { return self.say_of_call(said) };
        let length =
            [&event.delta, &event.data, &event.url].into_iter().flatten().map(String::len).sum::<usize>();
        let so_far = self.said.entry(place.clone()).or_default();
        if *so_far == COMPLETE {
            return;
        }
        *so_far = if event.kind == "TOOL_RESULT_END" { COMPLETE } else { *so_far + length };
        self.has_said |= length > 0;
        match &*event.kind {
            "HINT_BLOCK" => return self.hint(said, &place),
            // Its beginning may be lost.
            "DATA_BLOCK_DELTA" if event.data.is_some() => {
                self.apply(Statement::DataStart(event.media_type.clone().unwrap_or_default()), &place);
            }
            _ => {}
        }
        self.apply(said, &place);
    }

    /// Adds a hint, unless it is in the record.
    fn hint(&mut self, hint: Statement, place: &str) {
        self.said.insert(place.to_owned(), COMPLETE);
        if let Statement::Other(kind) = &hint
            && let EventKind::HintBlock { hint, .. } = &**kind
            && self.told.contains(hint)
        {
            return;
        }
        self.apply(hint, place);
    }

    /// Takes in the beginning or the end of a model call, or what is of no block. A call that is in
    /// the record says nothing new.
    fn say_of_call(&mut self, statement: Statement) {
        match &statement {
            Statement::ModelStart(_) if self.is_recorded => return,
            Statement::ModelEnd(_) if self.is_recorded && !self.has_said => return,
            Statement::ModelEnd(Some(usage)) => {
                self.used += *usage;
                self.has_said = false;
            }
            _ => {}
        }
        self.apply(statement, "");
    }

    /// Takes in the message of the reply: what of it was not said.
    pub(super) fn catch_up(&mut self, message: &Message) {
        self.id.get_or_insert_with(|| message.id.clone());
        for block in &message.content {
            self.block(block);
        }
        self.count(message);
        let asking = message.content.iter().filter(|block| block.kind == "tool_call");
        let (mut confirm, mut execute) = (Vec::new(), Vec::new());
        for block in asking {
            match block.state.as_deref() {
                Some("asking") => confirm.push(raw(block)),
                Some("submitted") => execute.push(raw(block)),
                _ => {}
            }
        }
        self.note(&confirm);
        // A request each, as the stream has them: one may be answered elsewhere.
        for call in confirm.iter().filter_map(tool_call) {
            self.apply(self.renamed(Statement::Ask(vec![call])), "");
        }
        self.require(&execute);
        if let Some(reason) = &message.finished_reason {
            self.end(Some(reason), message.error.as_ref());
        }
    }

    fn block(&mut self, block: &Block) {
        let Block { id, name, .. } = block;
        let call = || ToolCallId::new(id.as_str());
        match &*block.kind {
            "text" => self.rest(id, &block.text, Statement::EndBlock, Statement::Text),
            "thinking" => self.rest(id, &block.thinking, Statement::EndBlock, Statement::Thinking),
            "hint" if !self.said.contains_key(id) => self.hint(hint(&block.hint, block.source.as_str()), id),
            "data" if self.said.get(id).copied().unwrap_or_default() == 0 => {
                if let Some(url) = block.source["url"].as_str() {
                    return self.rest(id, url, Statement::EndBlock, Statement::Text);
                }
                let media_type = block.source["media_type"].as_str().unwrap_or_default().to_owned();
                let bytes = block.source["data"].as_str().unwrap_or_default().to_owned();
                self.apply(Statement::DataStart(media_type), id);
                self.said.insert(id.clone(), bytes.len());
                self.apply(Statement::Data(bytes), id);
                self.apply(Statement::EndBlock, id);
            }
            "tool_call" => {
                let name = name.clone().unwrap_or_default();
                let input = block.input.as_str().unwrap_or("{}");
                let begin = Statement::Call { id: call(), name };
                self.rest(id, input, begin, |delta| Statement::Arguments { id: call(), delta });
            }
            "tool_result" => self.result(block),
            _ => {}
        }
    }

    /// Says what is missing of a block, or of a call, behind its beginning; the next one ends it.
    fn rest(&mut self, place: &str, whole: &str, begin: Statement, say: impl Fn(String) -> Statement) {
        let said = self.said.get(place).copied();
        let Some(rest) = whole.get(said.unwrap_or_default()..) else { return };
        if said.is_none() {
            self.apply(self.renamed(begin), place);
        }
        self.apply(self.renamed(say(rest.to_owned())), place);
        self.said.insert(place.to_owned(), whole.len());
    }

    fn result(&mut self, block: &Block) {
        let id = ToolCallId::new(block.id.as_str());
        let (name, place) = (block.name.clone().unwrap_or_default(), part(&block.id, true));
        let said = self.said.get(&place).copied().unwrap_or_default();
        if said == COMPLETE {
            return;
        }
        let text = texts(&block.output);
        let mut all = vec![Statement::BeginResult { id: id.clone(), name: name.clone(), input: None }];
        let delta = text.get(said..).unwrap_or_default().to_owned();
        all.push(Statement::Result { id: id.clone(), delta });
        let parts = block.output.as_array().into_iter().flatten().filter(|_| said <= text.len());
        let parts = parts.filter_map(|part| data(&part["source"]));
        all.extend(parts.map(|data| Statement::ResultData { id: id.clone(), data }));
        let state = state(block.state.as_deref());
        if block.state.as_deref() != Some("running") {
            all.push(Statement::EndResult { id, name, state });
            self.said.insert(place.clone(), COMPLETE);
        }
        for statement in all {
            let statement = self.renamed(statement);
            self.apply(statement, &place);
        }
    }

    /// Lets the caller run calls.
    fn require(&mut self, blocks: &[Value]) {
        self.note(blocks);
        let calls: Vec<_> = blocks.iter().filter_map(tool_call).map(|call| self.call_renamed(call)).collect();
        let new: Vec<_> = calls.into_iter().filter(|call| self.questions.is_new(&call.id)).collect();
        if !new.is_empty() {
            self.apply(Statement::Execute(new), "");
        }
    }

    /// Says why what follows does not come live.
    pub(super) fn fall_back(&mut self, reason: &str) {
        self.fold.fall_back(reason.to_owned());
        self.drain("");
    }

    /// Ends the reply as it says.
    fn end(&mut self, reason: Option<&str>, error: Option<&Failed>) {
        let status = match reason {
            Some("interrupted") => Status::Cancelled,
            Some("error") => Status::Error,
            Some(EXCEEDED) => {
                let end = Statement::End { outcome: Some(Outcome::MaxIterations), error: None };
                self.apply(end, "");
                Status::Success
            }
            _ => Status::Success,
        };
        let error = error.map(|error| format!("{} ({})", error.message, error.kind));
        self.fold.end(Snapshot { status: Some(status), error, ..Snapshot::default() });
        self.drain("");
    }

    /// Adds what model calls have used whose events were not read.
    fn count(&mut self, message: &Message) {
        let Some(whole) = message.usage.map(usage) else { return };
        let mut missing = Usage::new(
            whole.input_tokens.saturating_sub(self.used.input_tokens),
            whole.output_tokens.saturating_sub(self.used.output_tokens),
        );
        missing.cache_read_tokens = whole.cache_read_tokens.saturating_sub(self.used.cache_read_tokens);
        missing.cache_write_tokens = whole.cache_write_tokens.saturating_sub(self.used.cache_write_tokens);
        if missing != Usage::default() {
            self.used += missing;
            self.apply(Statement::Used(missing), "");
        }
    }

    /// Notes what the service asks about, as it wants it back.
    fn note(&self, calls: &[Value]) {
        for call in calls {
            let Some(ToolCall { id, .. }) = tool_call(call).map(|call| self.call_renamed(call)) else {
                continue;
            };
            self.questions.note(id, self.id.as_deref().unwrap_or_default(), call.clone());
        }
    }

    fn apply(&mut self, statement: Statement, place: &str) {
        self.fold.say(statement);
        self.drain(place);
    }

    fn drain(&mut self, place: &str) {
        let Some(reply) = &self.id else {
            return self.events.extend(self.fold.take());
        };
        let id = RemoteId { session: &self.session, reply, part: place }.to_string();
        self.events.extend(self.fold.take().into_iter().map(|event| event.with_id(&*id)));
    }

    /// Gives a call that was discarded another id.
    fn renamed(&self, statement: Statement) -> Statement {
        use Statement::*;
        if self.discarded.is_empty() {
            return statement;
        }
        let new = |id: ToolCallId| self.id_renamed(id);
        match statement {
            Call { id, name } => Call { id: new(id), name },
            Arguments { id, delta } => Arguments { id: new(id), delta },
            EndCall(id) => EndCall(new(id)),
            BeginResult { id, name, input } => BeginResult { id: new(id), name, input },
            Result { id, delta } => Result { id: new(id), delta },
            ResultData { id, data } => ResultData { id: new(id), data },
            EndResult { id, name, state } => EndResult { id: new(id), name, state },
            Ask(calls) => Ask(calls.into_iter().map(|call| self.call_renamed(call)).collect()),
            Answered(all) => {
                Answered(all.into_iter().map(|(id, is_confirmed)| (new(id), is_confirmed)).collect())
            }
            other => other,
        }
    }

    fn call_renamed(&self, call: ToolCall) -> ToolCall {
        ToolCall { id: self.id_renamed(call.id), ..call }
    }

    fn id_renamed(&self, id: ToolCallId) -> ToolCallId {
        let mut id = id;
        while self.discarded.contains(&id) {
            id = ToolCallId::new(format!("{id}{AGAIN}"));
        }
        id
    }
}

/// Returns what an agent was told.
fn told(recorded: &RecordedInvocation) -> Vec<String> {
    let messages = recorded.transcript.messages().iter().filter(|message| message.role == Role::User);
    messages.map(|message| message.text()).collect()
}

/// Returns the block, the call, or the result of a call that an event is of.
fn place(event: &Event) -> Option<String> {
    let is_result = event.kind.starts_with("TOOL_RESULT");
    let block = event.block_id.as_deref().filter(|_| !is_result).map(str::to_owned);
    block.or_else(|| event.tool_call_id.as_deref().map(|id| part(id, is_result)))
}

/// Returns the place of a call, or of its result.
fn part(call: &str, is_result: bool) -> String {
    if is_result { format!("{call}/result") } else { call.to_owned() }
}

/// Returns a call as the service has it, as far as it was read.
fn raw(block: &Block) -> Value {
    let Block { id, name, input, state, .. } = block;
    serde_json::json!({ "type": "tool_call", "id": id, "name": name, "input": input, "state": state })
}

#[cfg(test)]
mod tests;
