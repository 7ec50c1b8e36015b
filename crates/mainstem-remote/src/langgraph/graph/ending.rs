//! What becomes of a turn when a run's stream has ended.

use mainstem_event::{Decision, EventKind, Outcome};
use mainstem_message::{ConfirmId, Failure, ToolCall, ToolCallId, ToolState};
use serde_json::{Map, Value, json};

use super::{
    super::{
        interrupts::Question,
        wire::{Failed, Message, Metadata, Run, State},
    },
    Graph, ROOT,
};

/// The error of a graph that has taken more steps than it may.
const TOO_MANY_STEPS: &str = "GraphRecursionError";

/// What the call of a question becomes that another client has answered.
const ELSEWHERE: &str = "another client has answered";

impl Graph {
    /// Ends the turn, or asks what the graph asks; returns `true` if it asks.
    ///
    /// # Errors
    /// The state has too many messages.
    pub(in super::super) fn settle(&mut self, run: &Run, state: &State) -> Result<bool, String> {
        for interrupt in state.tasks.iter().flat_map(|task| &task.interrupts) {
            self.interrupt(ROOT, interrupt.clone());
        }
        if let Some(failed) = self.failed.take() {
            self.fail(&failed);
            return Ok(false);
        }
        match &*run.status {
            "error" => self.fail(&Failed { error: "error".into(), message: task_error(state) }),
            "timeout" => {
                self.end(Outcome::Timeout, Some(("timeout", "the run took too long at its server".into())))
            }
            _ if !self.interrupts.is_empty() => {
                self.ask();
                return Ok(true);
            }
            "interrupted" => {
                self.end(
                    Outcome::Cancelled,
                    Some(("cancelled", "the run was cancelled at its server".into())),
                );
            }
            _ if !state.next.is_empty() => {
                let what = format!("the graph stopped at a breakpoint, before {}", state.next.join(", "));
                self.end(Outcome::Error, Some(("remote_failed", what)));
            }
            _ => self.succeed(state)?,
        }
        Ok(false)
    }

    /// Ends the turn because this side has cancelled it.
    pub(in super::super) fn cancelled(&mut self) {
        self.end(Outcome::Cancelled, Some(("cancelled", "cancelled".into())));
    }

    /// Takes in an answer; returns the value that resumes the graph if it was the last one.
    pub(in super::super) fn answer(&mut self, id: &ConfirmId, decision: Decision) -> Option<Value> {
        self.questions.answer(id, decision);
        if !self.questions.are_answered() {
            return None;
        }
        let next = self.questions.next();
        let questions = std::mem::replace(&mut self.questions, next);
        for (id, decision) in questions.decisions() {
            self.answer_stand_in(id, decision);
        }
        Some(questions.resume())
    }

    /// Withdraws the questions, because another client has answered.
    pub(in super::super) fn answered_elsewhere(&mut self) {
        let next = self.questions.next();
        let questions = std::mem::replace(&mut self.questions, next);
        self.answered.extend(questions.interrupts().map(str::to_owned));
        for id in questions.open() {
            self.answer_stand_in(&id, &Decision::Deny(ELSEWHERE.to_owned()));
            self.add(EventKind::UserConfirmResult { confirm_id: id, confirm_results: Vec::new() });
        }
    }

    /// Says what the stream has left out, and what the graph ends with.
    fn succeed(&mut self, state: &State) -> Result<(), String> {
        let mut messages = state.messages();
        for message in &mut messages {
            message.rename_calls(|id| self.recorded.rename(id));
        }
        let asked = messages.iter().rposition(|message| message.id.as_deref() == Some(self.turn.id.as_str()));
        let new = &messages[asked.map_or(messages.len(), |asked| asked + 1)..];
        self.close(|_| true);
        for message in new {
            if !self.is_said(message) {
                self.say("", message, &Metadata::default())?;
            }
        }
        let last = new.iter().rev().find(|message| message.is_answer());
        let root = &mut self.agents[ROOT].speaker;
        match last {
            Some(last) if !root.ends_with(last.id.as_deref().unwrap_or_default()) => root.repeat(last),
            None if messages.is_empty() && !is_empty(&state.values) => {
                root.ensure_answer_with(&state.values.to_string());
            }
            _ => {}
        }
        root.ensure_answer();
        self.end(Outcome::Success, None);
        Ok(())
    }

    /// Returns `true` if the stream had the message. Answers have ids; a result of a call that has
    /// one is left out by the translation.
    fn is_said(&self, message: &Message) -> bool {
        let id = message.id.as_deref().unwrap_or_default();
        let is_known =
            self.recorded.has_shown(id) || self.agents.iter().any(|agent| agent.speaker.has_said(id));
        is_known || !(message.is_answer() || message.kind == "tool")
    }

    fn fail(&mut self, failed: &Failed) {
        let outcome = if failed.error == TOO_MANY_STEPS { Outcome::MaxIterations } else { Outcome::Error };
        let what = match (&*failed.error, &*failed.message) {
            ("error", "") => "the run failed at its server, which does not say why".to_owned(),
            ("error", message) => message.to_owned(),
            (error, message) => format!("{error}: {message}"),
        };
        self.end(outcome, Some(("remote_failed", what)));
    }

    fn end(&mut self, outcome: Outcome, failure: Option<(&str, String)>) {
        let failure = failure.map(|(code, message)| Failure::new(code, message));
        if outcome != Outcome::Success {
            for agent in &mut self.agents {
                agent.failure = agent.failure.take().or_else(|| failure.clone());
            }
        }
        self.close(|_| true);
        self.agents[ROOT].speaker.agent.end(outcome, failure);
        self.drain(ROOT);
    }

    /// Asks a person what the graph asks. The answers that made the calls are complete.
    fn ask(&mut self) {
        let (interrupts, mut asked) = (std::mem::take(&mut self.interrupts), Vec::new());
        // This ends agents below. The assistant asks their questions.
        interrupts.iter().for_each(|(at, _)| self.begin_answer(*at));
        if interrupts.iter().any(|(at, _)| self.is_over(*at)) {
            self.begin_answer(ROOT);
        }
        for (at, interrupt) in interrupts {
            let at = if self.is_over(at) { ROOT } else { at };
            self.agents[at]
                .speaker
                .custom("langgraph.interrupt", json!({ "id": interrupt.id, "value": interrupt.value }));
            let mut taken = Vec::new();
            for question in self.questions.add(interrupt) {
                let call = self.asked_call(at, &question, &taken);
                taken.push(call.id.clone());
                asked.push((at, question, call));
            }
        }
        for (at, question, call) in &mut asked {
            // A stand-in begins an answer, which ends the calls of the one before.
            if !self.agents[*at].speaker.agent.is_open(&call.id) {
                *call = self.stand_in(*at, question);
            }
        }
        for (at, question, call) in asked {
            let agent = &mut self.agents[at].speaker.agent;
            agent.end_answer();
            agent.other(EventKind::require_user_confirm(question.id, vec![call]));
            self.drain(at);
        }
    }

    /// Returns the call that a question is about: an open one of that name, or the only open one;
    /// else a call that stands for the question.
    fn asked_call(&mut self, at: usize, question: &Question, taken: &[ToolCallId]) -> ToolCall {
        let agent = &mut self.agents[at].speaker.agent;
        let open: Vec<_> = agent.open_calls().filter(|call| !taken.contains(&call.id)).collect();
        let action = &question.action;
        // Another process has asked it.
        let is_it =
            |call: &&ToolCall| call.name == action.name && is_same(&call.arguments, &action.arguments);
        if let Some(call) = open.iter().find(is_it) {
            return call.clone();
        }
        let found = match &*open {
            [only] if !question.is_call => {
                Some(ToolCall::new(only.id.clone(), &*only.name, merged(&only.arguments, &action.arguments)))
            }
            _ => {
                let named = open.iter().find(|call| call.name == action.name);
                named.map(|call| ToolCall::new(call.id.clone(), &*action.name, &*action.arguments))
            }
        };
        found.unwrap_or_else(|| self.stand_in(at, question))
    }

    fn is_over(&self, at: usize) -> bool {
        self.agents[at].speaker.agent.is_over()
    }

    /// Begins a call that stands for a question.
    fn stand_in(&mut self, at: usize, Question { action, .. }: &Question) -> ToolCall {
        let agent = &mut self.agents[at].speaker.agent;
        agent.call(&action.id, &action.name);
        agent.arguments(&action.id, &action.arguments);
        action.clone()
    }

    /// Says the answer as the result of a call that stands for its question.
    fn answer_stand_in(&mut self, id: &ConfirmId, decision: &Decision) {
        let id = ToolCallId::new(id.as_str());
        let has_call = |agent: &super::Agent| agent.speaker.agent.open_calls().any(|call| call.id == id);
        let Some(at) = self.agents.iter().position(has_call) else { return };
        let (text, state) = match decision {
            Decision::Allow => ("allowed".to_owned(), ToolState::Success),
            Decision::AllowWith(value) => (value.to_string(), ToolState::Success),
            Decision::Deny(reason) => (reason.clone(), ToolState::Denied),
        };
        let agent = &mut self.agents[at].speaker.agent;
        agent.begin_result(&id, "");
        agent.result(&id, &text);
        agent.end_result(&id, state);
        self.drain(at);
    }
}

fn is_empty(values: &Value) -> bool {
    values.is_null() || values.as_object().is_some_and(Map::is_empty)
}

/// Returns the arguments of a call with the question that it asks.
fn merged(arguments: &str, question: &str) -> String {
    let parsed = |json: &str| serde_json::from_str::<Value>(json).unwrap_or_default();
    let mut all = parsed(arguments).as_object().cloned().unwrap_or_default();
    all.insert("interrupt".to_owned(), parsed(question));
    Value::Object(all).to_string()
}

fn is_same(one: &str, other: &str) -> bool {
    let parsed = |json: &str| serde_json::from_str::<Value>(json).ok();
    parsed(one) == parsed(other)
}

/// Returns why a task of a thread failed.
fn task_error(state: &State) -> String {
    let error = state.tasks.iter().map(|task| &task.error).find(|error| !error.is_null());
    error.map(super::shown_error).unwrap_or_default()
}
