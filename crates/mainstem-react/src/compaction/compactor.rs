//! Compacts the conversation of one invocation.

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::AtomicU32},
};

use mainstem_event::CallPurpose;
use mainstem_message::{Message, StopReason};
use mainstem_model::{ErrorKind, ModelError, ModelOptions, ModelRequest, ToolChoice, size_of};

use super::{
    estimate::{Cause, Estimate, Room, SMALL, Size},
    most, plan, text,
};
use crate::{AgentError, Answer, RunContext, agent::Parts, middleware::NextModel};

/// How many messages are left without their data one by one, each with a call of the model, before
/// all are.
const TRIES: usize = 2;

/// The tokens of a prompt from which its bytes a token are remembered for later turns.
const TYPICAL: u64 = 1_000;

/// To how many bytes the results of earlier calls are shortened.
const RESULT: usize = 1_024;

/// Compacts the conversation of an invocation when it becomes too long.
pub(crate) struct Compactor<'a> {
    agent: &'a Parts,
    cx: &'a RunContext,
    /// The request that the turn works on.
    input: Vec<Arc<Message>>,
    /// Messages with data that the model can't read.
    unreadable: Vec<Arc<Message>>,
    estimate: Estimate,
    /// A summary has failed: only a refused prompt is worth another.
    has_failed: bool,
    /// The size of the messages, in bytes, below which another compaction does not help.
    least: usize,
    /// Their size after the latest compaction.
    last: usize,
}

impl<'a> Compactor<'a> {
    /// Creates a compactor for an invocation on `input`, after `history`.
    pub(crate) fn new(
        agent: &'a Parts,
        cx: &'a RunContext,
        history: &[Arc<Message>],
        input: Vec<Arc<Message>>,
    ) -> Self {
        let token = agent.compaction.of_model(&*agent.model, |known| known.token);
        // A person who asks for a compaction has the answer to the last request.
        let is_asked = cx.purpose() == Some(CallPurpose::Compaction);
        let input = if is_asked { input } else { plan::with_request(history, input) };
        let (estimate, unreadable) = (Estimate::new(token), Vec::new());
        Self { agent, cx, input, unreadable, estimate, has_failed: false, least: 0, last: 0 }
    }

    /// Returns `true` if a prompt of this size exceeds the threshold, or has grown to where it
    /// leaves no room for an answer.
    pub(crate) fn is_due(&self, request: &ModelRequest, size: Size) -> bool {
        let compaction = &self.agent.compaction;
        let window = self.window().filter(|_| compaction.is_on && !self.has_failed);
        let Some(window) = window else { return false };
        let exceeds = |tokens| self.estimate.exceeds(size, tokens);
        size.messages >= self.least && exceeds(compaction.limit(window, &request.options))
            || size.messages >= self.last + SMALL && exceeds(most(window, &request.options))
    }

    /// Returns `true` if a model call failed because its prompt is too long, or has data that the
    /// model can't read, and may be made again once the conversation is shorter.
    pub(crate) fn is_refused(&self, error: &AgentError) -> bool {
        let compaction = &self.agent.compaction;
        if let Some(refusal) = overflow(error) {
            compaction.learn(&*self.agent.model, refusal);
        }
        compaction.is_on && (overflow(error).is_some() || is_about_data(error))
    }

    /// Returns `true` if a prompt is too long.
    pub(crate) fn is_overflow(&self, error: &AgentError) -> bool {
        overflow(error).is_some()
    }

    /// Removes the older half of the data of a conversation whose request had too many bytes for
    /// its service, for good; returns `false` if that was not the error, or only the request that
    /// the turn works on has data.
    pub(crate) fn remove_data(&self, messages: &[Arc<Message>], error: &AgentError) -> bool {
        let is_too_large = overflow(error).is_some_and(ModelError::is_too_large);
        let said = self.cx.messages().len();
        let lighter = if is_too_large { plan::with_less_data(messages, &self.input) } else { None };
        lighter.map(|lighter| self.cx.replace_conversation(lighter, said)).is_some()
    }

    /// Returns the messages with notes in place of data that the model can't read.
    pub(crate) fn readable(&self, messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
        if self.unreadable.is_empty() { messages } else { plan::without_data(messages, &self.unreadable) }
    }

    /// Leaves the data of a further message out of this invocation's requests: that of the latest
    /// ones first, then that of all. The conversation keeps it. Returns `false` if the error was
    /// not about data, or only the request that the turn works on has some.
    pub(crate) fn leave_out_data(&mut self, messages: &[Arc<Message>], error: &AgentError) -> bool {
        if !is_about_data(error) {
            return false;
        }
        let mut left = plan::with_data(messages, &self.input);
        left.retain(|message| !self.unreadable.iter().any(|one| Arc::ptr_eq(one, message)));
        let count = if self.unreadable.len() < TRIES { 1 } else { left.len() };
        let is_empty = left.is_empty();
        self.unreadable.extend(left.into_iter().rev().take(count));
        !is_empty
    }

    fn window(&self) -> Option<u64> {
        self.agent.compaction.window(&*self.agent.model)
    }

    /// Measures a request.
    pub(crate) fn size(&mut self, request: &ModelRequest) -> Size {
        self.estimate.size(request)
    }

    /// Learns from an answer what the service counts for a prompt of this size. An answer that was
    /// repeated has the count of several prompts.
    pub(crate) fn calibrate(&mut self, size: Size, answer: &Answer) {
        let tokens = answer.usage.map_or(0, |usage| usage.input_tokens);
        if !answer.is_repeated && tokens > 0 {
            let token = self.estimate.calibrate(size, tokens);
            // A short prompt says little about others: most of it may be the service's own.
            if tokens >= TYPICAL {
                self.agent.compaction.of_model(&*self.agent.model, |known| known.token = Some(token));
            }
        }
    }

    /// Compacts the conversation in a request that is too long; returns `false` if it can't be
    /// shortened.
    ///
    /// # Errors
    /// The invocation is over: it was cancelled, for instance, or is out of its budget. Also if a
    /// person asked for it and the model can't summarize.
    pub(crate) async fn compact(&mut self, request: &ModelRequest, cause: Cause) -> Result<bool, AgentError> {
        let before = plan::size(&request.messages);
        let said = self.cx.messages().len();
        let compaction = &self.agent.compaction;
        let room = self.estimate.room(request, cause, compaction, self.window());
        let compacted = self.compacted(&request.messages, &room, cause).await;
        (self.last, self.least) = (before, before + room.messages / 4);
        match compacted {
            Ok(messages) if plan::size(&messages) < before => {
                self.last = plan::size(&messages);
                self.least = self.last + room.messages / 4;
                self.cx.replace_conversation(messages, said);
                Ok(true)
            }
            Ok(_) => Ok(false),
            Err(error) if cause != Cause::Asked && is_of_summary(&error) => {
                let agent = self.cx.agent();
                tracing::warn!(%agent, %error, "a conversation can't be summarized; it stays as it is");
                self.has_failed = true;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the conversation that replaces this one.
    async fn compacted(
        &self,
        messages: &[Arc<Message>],
        room: &Room,
        cause: Cause,
    ) -> Result<Vec<Arc<Message>>, AgentError> {
        let is_lasting = |tool: &str| self.agent.tools.get(tool).is_some_and(|tool| tool.is_lasting());
        let first = plan::boundary(messages, room.latest);
        let (older, latest) = messages.split_at(first);
        let short = plan::with_short_results(older, RESULT, is_lasting);
        if cause != Cause::Asked && plan::size(&short) + plan::size(latest) <= room.messages / 4 * 3 {
            return Ok(short.into_iter().chain(latest.iter().cloned()).collect());
        }
        // The input of the turn stays.
        let is_input = |message: &Arc<Message>| self.input.iter().any(|one| Arc::ptr_eq(one, message));
        let older: Vec<_> = older.iter().filter(|message| !is_input(message)).cloned().collect();
        let older = plan::older(&older, room.notes, is_lasting);
        let notes = self.summarize(&older, room).await?;
        let state = self.state().await;
        let new = plan::replacement(&notes, &older.retained, &state, &self.input, latest);
        Ok(fitting(new, room.messages, is_lasting))
    }

    /// Returns notes that replace older messages.
    async fn summarize(&self, older: &plan::Older, room: &Room) -> Result<String, AgentError> {
        let mut notes = older.notes.clone();
        let mut pieces = VecDeque::from(plan::pieces(&older.messages, room.piece));
        while let Some(piece) = pieces.pop_front() {
            match self.ask(text::request(&notes, &piece)).await {
                Ok(said) => notes = text::shortened(&said, room.notes.max(SMALL)).unwrap_or(said),
                Err(error) if overflow(&error).is_some() && piece.len() > SMALL => {
                    let half = plan::pieces(&lines(&piece), piece.len() / 2 + 1);
                    half.into_iter().rev().for_each(|piece| pieces.push_front(piece));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(notes)
    }

    /// Makes one model call for the summary, through the agent's middleware.
    async fn ask(&self, prompt: String) -> Result<String, AgentError> {
        let mut options = ModelOptions::new();
        options.on_cut = self.agent.options.on_cut;
        // Fields for the vendor of the agent's own model, such as a tier of its service.
        if self.agent.compaction.model.is_none() {
            options.extra = self.agent.options.extra.clone();
        }
        let request = ModelRequest {
            agent: self.agent.id.clone(),
            agent_key: self.cx.key(),
            session: self.cx.root_session_id().as_str().into(),
            cache_key: None,
            system: Some(text::INSTRUCTIONS.into()),
            messages: vec![Arc::new(Message::user(prompt))],
            tools: Arc::default(),
            tool_choice: ToolChoice::Auto,
            options: Arc::new(options),
        };
        let mut agent = self.agent.clone();
        if let Some(model) = &self.agent.compaction.model {
            agent.model = model.clone();
        }
        let calls = AtomicU32::new(0);
        let next = NextModel { agent: &agent, rest: &agent.middleware, calls: &calls };
        let answer = next.run(&self.cx.for_compaction(), request).await?;
        let said = answer.message.text();
        match answer.stop {
            StopReason::ContentFilter => Err(AgentError::Filtered),
            StopReason::Refusal => Err(AgentError::Declined { said: said.trim().into() }),
            _ if said.trim().is_empty() => Err(AgentError::EmptyReply),
            _ => Ok(said),
        }
    }

    /// Returns what the agent has at present, by its middleware.
    async fn state(&self) -> Vec<String> {
        let mut sections = Vec::new();
        for middleware in &self.agent.middleware {
            sections.extend(middleware.state(self.cx).await);
        }
        sections
    }
}

/// Returns `true` if an error concerns only the summary: the conversation can go on without.
fn is_of_summary(error: &AgentError) -> bool {
    use AgentError::*;
    matches!(
        error,
        Model(_)
            | EmptyReply
            | Filtered
            | Declined { .. }
            | TooLong { .. }
            | CutTooOften { .. }
            | Output { .. }
    )
}

/// Returns `true` if the model can't read data of the conversation.
fn is_about_data(error: &AgentError) -> bool {
    error.model_error().is_some_and(ModelError::is_about_data)
}

/// Returns the model's error if it is that a prompt is too long.
fn overflow(error: &AgentError) -> Option<&ModelError> {
    error.model_error().filter(|error| error.kind() == ErrorKind::ContextOverflow)
}

/// Returns messages with their results shortened as far as they must be to fit, and can be.
fn fitting(
    messages: Vec<Arc<Message>>,
    bytes: usize,
    is_lasting: impl Fn(&str) -> bool,
) -> Vec<Arc<Message>> {
    if plan::size(&messages) <= bytes {
        return messages;
    }
    let results = messages.iter().filter(|message| message.tool_results().next().is_some());
    let (count, size) =
        results.fold((0, 0), |(count, size), one| (count + one.content.len(), size + size_of(one)));
    let left = bytes.saturating_sub(plan::size(&messages) - size);
    plan::with_short_results(&messages, (left / count.max(1)).max(SMALL), is_lasting)
}

fn lines(text: &str) -> Vec<String> {
    text.split_inclusive('\n').map(str::to_owned).collect()
}
