//! One invocation as a stream shows it: what of it is open, and the frames of its events.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};

use mainstem_event::{AgentEvent, CallPurpose, EventKind, EventSource};
use mainstem_message::{BlockId, ReplyId, SessionId, ToolCallId};
use serde_json::{Value, json};

use super::{
    Children,
    questions::tool_call_id,
    results::ResultParts,
    subagent_id,
    wire::{Body, Out, SubagentOutcome, origin},
};

/// An invocation that has not ended.
#[derive(Debug)]
pub(super) struct Invocation {
    /// In the order of the starts.
    pub(super) order: usize,
    pub(super) reply: ReplyId,
    pub(super) session: SessionId,
    /// `{agent_key}#{turn}`; `None` for the root.
    pub(super) id: Option<String>,
    /// The id, where the stream has subagents.
    pub(super) tag: Option<String>,
    pub(super) source: Option<EventSource>,
    /// The answer so far.
    pub(super) answer: Option<String>,
    name: Option<Arc<str>>,
    /// The task, as the agent reads it.
    task: String,
    /// The call that caused it.
    cause: Option<String>,
    parent: Option<String>,
    /// Whether its start is on the wire.
    is_shown: bool,
    /// Open blocks of text and thinking, by the ids of their messages.
    blocks: BTreeMap<String, Block>,
    /// Calls whose arguments are open, and whether their start is on the wire.
    calls: BTreeMap<ToolCallId, (Arc<str>, bool)>,
    results: BTreeMap<ToolCallId, ResultParts>,
    step: Option<Step>,
    iteration: u32,
    /// The message that has the calls of the present model call.
    carrier: Option<String>,
}

#[derive(Debug)]
struct Block {
    is_thinking: bool,
    is_shown: bool,
}

#[derive(Debug)]
struct Step {
    name: String,
    model: Arc<str>,
    is_shown: bool,
}

/// Whose call caused an invocation.
pub(super) struct Cause {
    pub(super) parent: Option<String>,
    pub(super) call: Option<String>,
}

impl Invocation {
    pub(super) fn new(
        order: usize,
        reply: &ReplyId,
        event: &AgentEvent,
        children: Children,
        cause: Cause,
    ) -> Self {
        let source = event.source().cloned();
        let task = match &event.kind {
            EventKind::AgentStart { input, .. } => input.iter().map(|message| message.text()).collect(),
            _ => String::new(),
        };
        let id = source.as_ref().map(subagent_id);
        Self {
            order,
            reply: reply.clone(),
            session: source
                .as_ref()
                .map_or_else(|| event.session_id().clone(), |source| source.session_id.clone()),
            tag: id.clone().filter(|_| children == Children::Subagents),
            id,
            answer: None,
            name: source
                .as_ref()
                .map(|source| source.agent_name.as_ref().unwrap_or(&source.agent_id).clone()),
            source,
            task,
            cause: cause.call,
            parent: cause.parent,
            is_shown: false,
            blocks: BTreeMap::new(),
            calls: BTreeMap::new(),
            results: BTreeMap::new(),
            step: None,
            iteration: 0,
            carrier: None,
        }
    }

    /// Forgets its parent unless the stream has the parent's start.
    pub(super) fn keep_parent_of(&mut self, shown: &BTreeSet<String>) {
        self.parent = self.parent.take().filter(|parent| shown.contains(parent));
    }

    /// Returns `true` if the arguments of a call are being written: a reader must not see the end
    /// of a call before its arguments are complete.
    pub(super) fn is_calling(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Shows the start of a child, unless it is on the wire.
    pub(super) fn show(&mut self, out: &mut Out) {
        let (Some(tag), Some(source), false) = (&self.tag, &self.source, self.is_shown) else { return };
        let metadata = json!({ "source": source, "task": self.task });
        let body = Body::SubagentStarted {
            name: self.name.as_deref().unwrap_or_default(),
            description: source.title.as_deref(),
            parent_subagent_run_id: self.parent.as_deref(),
            parent_tool_call_id: self.cause.as_deref(),
        };
        out.write_with(Some(tag), metadata, body);
        self.is_shown = !out.is_muted;
    }

    pub(super) fn start_block(&mut self, block: &BlockId, is_thinking: bool, out: &mut Out) {
        let id = self.message_id(block);
        if !is_thinking {
            self.carrier = Some(id.clone());
        }
        self.blocks.entry(id.clone()).or_insert(Block { is_thinking, is_shown: false });
        self.show_block(&id, out);
    }

    pub(super) fn block_delta(&mut self, block: &BlockId, is_thinking: bool, delta: &str, out: &mut Out) {
        let id = self.message_id(block);
        self.blocks.entry(id.clone()).or_insert(Block { is_thinking, is_shown: false });
        self.show_block(&id, out);
        // Clients before 1.0 refuse a delta without a text.
        if delta.is_empty() {
            return;
        }
        out.write(
            self.tag.as_deref(),
            match is_thinking {
                true => Body::ReasoningMessageContent { message_id: &id, delta },
                false => Body::TextMessageContent { message_id: &id, delta },
            },
        );
    }

    fn show_block(&mut self, id: &str, out: &mut Out) {
        let Some(block) = self.blocks.get_mut(id).filter(|block| !block.is_shown) else { return };
        let tag = self.tag.as_deref();
        if block.is_thinking {
            out.write(tag, Body::ReasoningStart { message_id: id });
            out.write(tag, Body::ReasoningMessageStart { message_id: id, role: "reasoning" });
        } else {
            let name = self.name.as_deref();
            out.write(tag, Body::TextMessageStart { message_id: id, role: "assistant", name });
        }
        block.is_shown = !out.is_muted;
    }

    pub(super) fn end_block(&mut self, block: &BlockId, out: &mut Out) {
        let id = self.message_id(block);
        if let Some(block) = self.blocks.remove(&id) {
            close_block(&id, &block, self.tag.as_deref(), out);
        }
    }

    /// Returns the id of a block's message: unique in the conversation, as blocks of our own are.
    fn message_id(&self, block: &BlockId) -> String {
        if block.as_str().starts_with(self.reply.as_str()) {
            return block.to_string();
        }
        format!("{}/{block}", self.reply)
    }

    pub(super) fn start_call(&mut self, call: &ToolCallId, name: &Arc<str>, out: &mut Out) {
        self.calls.entry(call.clone()).or_insert_with(|| (name.clone(), false));
        self.show_call(call, out);
    }

    fn show_call(&mut self, call: &ToolCallId, out: &mut Out) {
        let Some((name, is_shown @ false)) = self.calls.get_mut(call) else { return };
        let carrier = self.carrier.get_or_insert_with(|| format!("{}/{}", self.reply, self.iteration));
        let id = tool_call_id(&self.reply, call);
        let body =
            Body::ToolCallStart { tool_call_id: &id, tool_call_name: name, parent_message_id: Some(carrier) };
        out.write(self.tag.as_deref(), body);
        *is_shown = !out.is_muted;
    }

    pub(super) fn call_delta(&mut self, call: &ToolCallId, delta: &str, out: &mut Out) {
        self.show_call(call, out);
        if self.calls.contains_key(call) && !delta.is_empty() {
            let id = tool_call_id(&self.reply, call);
            out.write(self.tag.as_deref(), Body::ToolCallArgs { tool_call_id: &id, delta });
        }
    }

    pub(super) fn end_call(&mut self, call: &ToolCallId, is_discarded: bool, out: &mut Out) {
        if let Some((_, true)) = self.calls.remove(call) {
            let (id, tag) = (tool_call_id(&self.reply, call), self.tag.as_deref());
            let body = Body::ToolCallEnd { tool_call_id: &id };
            match is_discarded {
                true => out.write_with(tag, json!({ "discarded": true }), body),
                false => out.write(tag, body),
            }
        }
    }

    /// Forgets the message that carries the calls of the present answer: the next attempt has
    /// another.
    pub(super) fn forget_carrier(&mut self) {
        self.carrier = None;
    }

    /// Returns the parts of a call's result, which comes in pieces and is shown as a whole.
    pub(super) fn result_of(&mut self, call: &ToolCallId) -> &mut ResultParts {
        match self.results.entry(call.clone()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(ResultParts::default()),
        }
    }

    pub(super) fn take_result(&mut self, call: &ToolCallId) -> ResultParts {
        self.results.remove(call).unwrap_or_default()
    }

    /// Begins a model call; an answer has a message of its own.
    pub(super) fn start_model_call(
        &mut self,
        model: &Arc<str>,
        iteration: u32,
        purpose: Option<CallPurpose>,
        event: &AgentEvent,
        out: &mut Out,
    ) {
        let name = match purpose {
            Some(purpose) => purpose.as_str().to_owned(),
            None => {
                (self.iteration, self.carrier) = (iteration, None);
                format!("model call {iteration}")
            }
        };
        self.start_step(&name, model, event, out);
    }

    fn start_step(&mut self, name: &str, model: &Arc<str>, event: &AgentEvent, out: &mut Out) {
        self.end_step(json!({}), out);
        // Without subagents, steps of different agents are open at once.
        let whose =
            self.id.as_ref().filter(|_| self.tag.is_none()).map(|id| format!("{id} ")).unwrap_or_default();
        let name = format!("{whose}{name}");
        let mut metadata = origin(event);
        metadata["modelName"] = json!(model);
        out.write_with(self.tag.as_deref(), metadata, Body::StepStarted { step_name: &name });
        self.step = Some(Step { name, model: model.clone(), is_shown: !out.is_muted });
    }

    pub(super) fn end_step(&mut self, mut metadata: Value, out: &mut Out) {
        let Some(step) = self.step.take().filter(|step| step.is_shown) else { return };
        metadata["modelName"] = json!(step.model);
        out.write_with(self.tag.as_deref(), metadata, Body::StepFinished { step_name: &step.name });
    }

    /// Closes what is open on the wire; what goes on is opened again by its next event.
    pub(super) fn close(&mut self, out: &mut Out) {
        let tag = self.tag.as_deref();
        for (id, block) in &mut self.blocks {
            close_block(id, block, tag, out);
            block.is_shown = false;
        }
        for (call, (_, is_shown)) in self.calls.iter_mut().filter(|(_, (_, is_shown))| *is_shown) {
            let id = tool_call_id(&self.reply, call);
            out.write_with(tag, json!({ "cut": true }), Body::ToolCallEnd { tool_call_id: &id });
            *is_shown = false;
        }
        if let Some(step) = self.step.as_mut().filter(|step| step.is_shown) {
            out.write_with(tag, json!({ "cut": true }), Body::StepFinished { step_name: &step.name });
            step.is_shown = false;
        }
    }

    /// Ends the part of a child that this stream shows; the child goes on.
    pub(super) fn suspend(&mut self, interrupt_ids: Vec<&str>, metadata: Value, out: &mut Out) {
        self.close(out);
        if std::mem::take(&mut self.is_shown) {
            let outcome = SubagentOutcome::Suspended { interrupt_ids };
            out.write_with(self.tag.as_deref(), metadata, Body::SubagentFinished { result: None, outcome });
        }
    }
}

fn close_block(id: &str, block: &Block, tag: Option<&str>, out: &mut Out) {
    match (block.is_shown, block.is_thinking) {
        (false, _) => {}
        (true, false) => out.write(tag, Body::TextMessageEnd { message_id: id }),
        (true, true) => {
            out.write(tag, Body::ReasoningMessageEnd { message_id: id });
            out.write(tag, Body::ReasoningEnd { message_id: id });
        }
    }
}
