//! Compacts the conversation of one invocation.

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::AtomicU32},
};

use mainstem_message::{Message, StopReason, ToolSpec};
use mainstem_model::{ErrorKind, ModelError, ModelOptions, ModelRequest, ToolChoice, size_of, size_of_tool};

use super::{plan, share, text};
use crate::{AgentError, Answer, RunContext, agent::Parts, middleware::NextModel};

/// To how many bytes the results of earlier calls are shortened.
const RESULT: usize = 1_024;

/// Texts below this size are not split further.
const SMALL: usize = 4_096;

/// The bytes of a token, before a service has counted.
const TOKEN: f64 = 4.0;

/// Compacts the conversation of an invocation when it becomes too long.
pub(crate) struct Compactor<'a> {
    agent: &'a Parts,
    cx: &'a RunContext,
    /// The input of the turn.
    input: Vec<Arc<Message>>,
    /// The bytes of a token, as the service counts.
    token: f64,
    /// The tools whose size is known.
    tools: Option<(Arc<[ToolSpec]>, usize)>,
    /// A summary has failed: only a refused prompt is worth another.
    has_failed: bool,
    /// The size of the messages, in bytes, below which another compaction does not help.
    least: usize,
}

/// Why a conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The next prompt would exceed the threshold.
    Full,
    /// The service refused a prompt.
    Refused,
    /// A person asked for it.
    Asked,
}

/// The parts of a prompt, in bytes.
struct Room {
    /// What the messages may have.
    messages: usize,
    /// What the latest of them may have.
    latest: usize,
    /// What the notes may have, and what results that last may have.
    notes: usize,
    /// What one call for the summary may have, which has neither tools nor instructions of the
    /// agent.
    piece: usize,
}

impl<'a> Compactor<'a> {
    pub(crate) fn new(agent: &'a Parts, cx: &'a RunContext, input: Vec<Arc<Message>>) -> Self {
        Self { agent, cx, input, token: TOKEN, tools: None, has_failed: false, least: 0 }
    }

    /// Returns `true` if the prompt exceeds the threshold.
    pub(crate) fn is_due(&mut self, request: &ModelRequest) -> bool {
        let compaction = &self.agent.compaction;
        let window =
            compaction.window(self.agent.model.name()).filter(|_| compaction.is_on && !self.has_failed);
        let Some(window) = window else { return false };
        let limit = self.bytes(compaction.limit(window, &request.options));
        let (messages, overhead) = (plan::size(&request.messages), self.overhead(request));
        let has_room = overhead + SMALL <= limit;
        has_room && messages >= self.least && messages + overhead > limit
    }

    /// Returns `true` if a model call failed because its prompt is too long, and may be made again
    /// once the conversation is compacted.
    pub(crate) fn is_refused(&self, error: &AgentError) -> bool {
        let compaction = &self.agent.compaction;
        if let Some(refusal) = overflow(error) {
            compaction.learn(self.agent.model.name(), refusal);
        }
        compaction.is_on && overflow(error).is_some()
    }

    /// Learns from the service's count of a prompt how many bytes a token has. An answer that was
    /// repeated has the count of several prompts.
    pub(crate) fn calibrate(&mut self, bytes: usize, answer: &Answer) {
        let tokens = answer.usage.map_or(0, |usage| usage.input_tokens);
        if bytes > 0 && tokens > 0 && !answer.is_repeated {
            self.token = (as_f64(bytes as u64) / as_f64(tokens)).clamp(TOKEN / 2.0, TOKEN * 2.0);
        }
    }

    /// Returns the size of a request in bytes.
    pub(crate) fn size(&mut self, request: &ModelRequest) -> usize {
        plan::size(&request.messages) + self.overhead(request)
    }

    fn overhead(&mut self, request: &ModelRequest) -> usize {
        let known = self.tools.as_ref().filter(|(tools, _)| Arc::ptr_eq(tools, &request.tools));
        let tools = match known {
            Some((_, size)) => *size,
            None => {
                let size = request.tools.iter().map(size_of_tool).sum();
                self.tools = Some((request.tools.clone(), size));
                size
            }
        };
        tools + request.system.as_ref().map_or(0, |text| text.len())
    }

    /// Compacts the conversation in a request that is too long; returns `false` if it can't be
    /// shortened.
    ///
    /// # Errors
    /// The invocation is over: it was cancelled, for instance, or is out of its budget. Also if a
    /// person asked for it and the model can't sum up.
    pub(crate) async fn compact(&mut self, request: &ModelRequest, cause: Cause) -> Result<bool, AgentError> {
        let before = plan::size(&request.messages);
        let said = self.cx.messages().len();
        let room = self.room(request, cause);
        let shortened = self.shortened(&request.messages, &room, cause).await;
        self.least = before + room.messages / 4;
        match shortened {
            Ok(messages) if plan::size(&messages) < before => {
                self.least = plan::size(&messages) + room.messages / 4;
                self.cx.replace_conversation(messages, said);
                Ok(true)
            }
            Ok(_) => Ok(false),
            Err(error) if cause != Cause::Asked && is_of_summary(&error) => {
                let agent = self.cx.agent();
                tracing::warn!(%agent, %error, "a conversation can't be summed up; it stays as it is");
                self.has_failed = true;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns how long messages may become. The window may be unknown when a prompt was refused:
    /// then that prompt was a little longer.
    fn room(&mut self, request: &ModelRequest, cause: Cause) -> Room {
        let compaction = &self.agent.compaction;
        let (said, overhead) = (plan::size(&request.messages), self.overhead(request));
        let known = compaction.window(self.agent.model.name());
        let sent = share(self.tokens(said + overhead), 0.9);
        let window = match cause {
            Cause::Refused => known.map_or(sent, |window| window.min(sent)),
            Cause::Full | Cause::Asked => known.unwrap_or(sent),
        };
        let limit = self.bytes(compaction.limit(window, &request.options));
        let fits = limit.saturating_sub(overhead);
        let messages = match cause {
            Cause::Full => fits,
            // The estimate may be wrong: a half is shorter in any case.
            Cause::Refused => fits.max(said / 2),
            // The prompt did fit.
            Cause::Asked => fits.max(said),
        };
        let keep = self.bytes(share(window, compaction.keep)).max(said / 4).min(messages / 2);
        let latest = if cause == Cause::Asked { keep.min(said / 4) } else { keep };
        Room { messages, latest, notes: latest.min(messages / 4), piece: (limit / 4 * 3).max(SMALL) }
    }

    /// Returns the conversation that replaces this one.
    async fn shortened(
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
        let notes = self.sum_up(&older, room).await?;
        let state = self.state().await;
        let new = plan::replacement(&notes, &older.retained, &state, &self.input, latest);
        Ok(fitting(new, room.messages, is_lasting))
    }

    /// Returns notes that replace older messages.
    async fn sum_up(&self, older: &plan::Older, room: &Room) -> Result<String, AgentError> {
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
        let request = ModelRequest {
            agent: self.agent.id.clone(),
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

    fn tokens(&self, bytes: usize) -> u64 {
        share(bytes as u64, 1.0 / self.token)
    }

    fn bytes(&self, tokens: u64) -> usize {
        usize::try_from(share(tokens, self.token)).unwrap_or(usize::MAX)
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

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn as_f64(number: u64) -> f64 {
    number as f64
}
