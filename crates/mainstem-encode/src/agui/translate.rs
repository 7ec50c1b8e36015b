//! What each of our kinds of events becomes.

use mainstem_event::{AgentEvent, EventKind, Outcome, Rollup};
use mainstem_message::{Failure, ReplyId, ToolCallId};
use serde_json::{Value, json};

use super::{
    Agui, Cause, Children, Ending, Invocation, in_order,
    questions::tool_call_id,
    wire::{Body, SubagentOutcome, custom, origin},
};
use crate::foreign::addressed;

impl Agui {
    pub(super) fn translate(&mut self, event: &AgentEvent) {
        if event.source().is_some() && self.requested.children == Children::Hide {
            return;
        }
        match event.reply_id() {
            Some(reply) => self.of_agent(event, reply),
            None => self.of_session(event),
        }
    }

    fn of_session(&mut self, event: &AgentEvent) {
        use EventKind::*;
        match &event.kind {
            // The run did not begin, because its agent can't lead it as it was asked for.
            RunCancelled { error, .. } => {
                let (outcome, error) = (Outcome::Error, Some(error.clone()));
                self.ending = Some(Ending { outcome, error, usage: Rollup::default(), answer: None });
            }
            Gap { .. } => {
                // Ends may be among the lost events.
                let Self { live, out, .. } = self;
                in_order(live).into_iter().for_each(|invocation| invocation.close(out));
                self.custom(event);
            }
            // Its messages are those of the conversation, once more.
            StateCheckpoint { agent_key, messages, .. } => {
                let value = json!({ "agentKey": agent_key, "messages": messages.len() });
                self.custom_with("mainstem.state_checkpoint", value, event);
            }
            _ => self.custom(event),
        }
    }

    fn of_agent(&mut self, event: &AgentEvent, reply: &ReplyId) {
        use EventKind::*;
        let is_known = self.live.contains_key(reply);
        if let (AgentEnd { .. }, false, None) = (&event.kind, is_known, event.source()) {
            self.end_root(event, None);
            return;
        }
        if !is_known {
            let invocation = self.started(event, reply);
            self.live.insert(reply.clone(), invocation);
        }
        let Self { live, out, .. } = self;
        let Some(agent) = live.get_mut(reply) else { return };
        agent.show(out);
        match &event.kind {
            AgentStart { .. } if agent.id.is_some() && agent.tag.is_none() => self.custom(event),
            AgentStart { .. } => {}
            AgentResult { result } => agent.answer = Some(result.text()),
            AgentEnd { .. } => self.end(event, reply),
            ModelCallStart { model_name, iteration, purpose, .. } => {
                agent.start_model_call(model_name, *iteration, *purpose, event, out);
            }
            ModelCallEnd { usage, stop_reason, duration_ms, .. } => {
                let mut metadata = origin(event);
                metadata["usage"] = json!(usage);
                metadata["stopReason"] = json!(stop_reason);
                metadata["durationMs"] = json!(duration_ms);
                agent.end_step(metadata, out);
            }
            TextBlockStart { block_id } => agent.start_block(block_id, false, out),
            TextBlockDelta { block_id, delta } => agent.block_delta(block_id, false, delta, out),
            ThinkingBlockStart { block_id } => agent.start_block(block_id, true, out),
            ThinkingBlockDelta { block_id, delta } => agent.block_delta(block_id, true, delta, out),
            // What the vendor requires back stays with the session, which sends it.
            TextBlockEnd { block_id, .. } | ThinkingBlockEnd { block_id, .. } => {
                agent.end_block(block_id, out)
            }
            ToolCallStart { tool_call_id, tool_call_name } => {
                agent.start_call(tool_call_id, tool_call_name, out)
            }
            ToolCallDelta { tool_call_id, delta } => agent.call_delta(tool_call_id, delta, out),
            ToolCallEnd { tool_call_id, discarded, .. } => agent.end_call(tool_call_id, *discarded, out),
            ModelRetry { .. } | ModelFallback { .. } => {
                agent.forget_carrier();
                self.custom(event);
            }
            ToolResultTextDelta { tool_call_id, delta } => agent.result_of(tool_call_id).push_text(delta),
            ToolResultDataDelta { tool_call_id, data } => {
                // Clients before 1.0 have results of text only.
                let data = addressed(data, event);
                let has_place = self.requested.is_versioned && agent.result_of(tool_call_id).push_data(&data);
                if !has_place {
                    self.custom(event);
                }
            }
            ToolResultEnd { tool_call_id, state, duration_ms, .. } => {
                let mut metadata = origin(event);
                metadata["state"] = json!(state);
                metadata["durationMs"] = json!(duration_ms);
                self.result(reply, tool_call_id, metadata);
            }
            _ => self.custom(event),
        }
    }

    /// Creates the invocation of an agent that is new to the stream: it starts, or it was begun in
    /// an earlier run.
    fn started(&mut self, event: &AgentEvent, reply: &ReplyId) -> Invocation {
        let source = event.source();
        let parent = source.and_then(|source| {
            self.live.values().find(|invocation| invocation.session == source.parent_session_id)
        });
        let call = source.and_then(|source| source.parent_tool_call_id.as_ref());
        let cause = Cause {
            parent: parent.and_then(|parent| parent.tag.clone()),
            call: parent.zip(call).map(|(parent, call)| tool_call_id(&parent.reply, call)),
        };
        self.started += 1;
        Invocation::new(self.started, reply, event, self.requested.children, cause)
    }

    fn result(&mut self, reply: &ReplyId, call: &ToolCallId, metadata: Value) {
        let Some(agent) = self.live.get_mut(reply) else { return };
        let (content, id) = (agent.take_result(call).content(), tool_call_id(reply, call));
        // The result of a frontend's tool is a message of the frontend already.
        if self.requested.results.contains(&id) {
            return;
        }
        let message_id = format!("{id}/result");
        let body = Body::ToolCallResult { message_id: &message_id, tool_call_id: &id, content, role: "tool" };
        self.out.write_with(agent.tag.as_deref(), metadata, body);
    }

    fn end(&mut self, event: &AgentEvent, reply: &ReplyId) {
        let Some(mut agent) = self.live.remove(reply) else { return };
        agent.close(&mut self.out);
        let EventKind::AgentEnd { outcome, error, usage, duration_ms, .. } = &event.kind else { return };
        if agent.id.is_none() {
            self.end_root(event, agent.answer);
            return;
        }
        let Some(tag) = &agent.tag else {
            self.custom(event);
            return;
        };
        let mut metadata = origin(event);
        metadata["outcome"] = json!(outcome);
        metadata["usage"] = json!(usage);
        metadata["durationMs"] = json!(duration_ms);
        let unknown = Failure::new(outcome.as_str(), "the agent has no answer");
        let error = error.as_ref().unwrap_or(&unknown);
        let body = match outcome {
            Outcome::Success | Outcome::MaxIterations => {
                Body::SubagentFinished { result: agent.answer.as_deref(), outcome: SubagentOutcome::Success }
            }
            _ => Body::SubagentError { message: &error.message, code: Some(&error.code) },
        };
        self.out.write_with(Some(tag), metadata, body);
    }

    fn end_root(&mut self, event: &AgentEvent, answer: Option<String>) {
        let EventKind::AgentEnd { outcome, error, usage, .. } = &event.kind else { return };
        let (outcome, error, usage) = (*outcome, error.clone(), **usage);
        self.ending = Some(Ending { outcome, error, usage, answer });
    }

    fn custom(&mut self, event: &AgentEvent) {
        if self.out.is_muted {
            return;
        }
        let (name, value) = custom(event);
        self.custom_with(&name, value, event);
    }

    fn custom_with(&mut self, name: &str, value: Value, event: &AgentEvent) {
        let agent = event.reply_id().and_then(|reply| self.live.get(reply));
        let tag = agent.and_then(|agent| agent.tag.clone());
        self.out.write_with(tag.as_deref(), origin(event), Body::Custom { name, value });
    }
}
