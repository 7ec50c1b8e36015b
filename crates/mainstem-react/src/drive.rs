//! The driver: the only loop that waits. `step` decides what comes next.

use std::{
    convert::Infallible,
    future::pending,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use futures_util::{FutureExt, future::BoxFuture};
use mainstem_event::{CallPurpose, CancelReason, EventKind, Outcome, Rollup};
use mainstem_message::{BlockId, Failure, Message, Role, SessionId, ToolCall};
use mainstem_model::{ModelRequest, ToolChoice};
use mainstem_tool::unless;

use crate::{
    Agent, AgentError, Answer, RunContext,
    ask::recorded,
    batch,
    bracket::Bracket,
    compaction::{Cause, Compactor, Size},
    error::panic_message,
    middleware::NextModel,
    repetition::{Repetition, Verdict},
    span,
    step::{Progress, Step, after_answer, before_call},
};

/// How an invocation ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunOutcome {
    /// The kind of end.
    pub outcome: Outcome,
    /// The answer, if there is one.
    pub answer: Option<Arc<Message>>,
    /// The error, if it failed.
    pub error: Option<AgentError>,
    /// Its usage and cost, with those of its children.
    pub usage: Rollup,
}

impl RunOutcome {
    /// Returns the outcome of a run that was cancelled before it began.
    pub fn cancelled(reason: CancelReason) -> Self {
        Self::never_began(AgentError::Cancelled(reason))
    }

    /// That of a run that was refused before it began.
    pub fn refused(why: Failure) -> Self {
        Self::never_began(AgentError::Refused(why))
    }

    fn never_began(error: AgentError) -> Self {
        let (outcome, error) = (Outcome::Cancelled, Some(error));
        Self { outcome, answer: None, error, usage: Rollup::default() }
    }
}

/// Runs an agent on an input, from its `AGENT_START` to its `AGENT_END`; `aside` is polled
/// meanwhile, and dropped after that.
pub(crate) async fn drive(
    agent: Agent,
    cx: RunContext,
    history: Vec<Arc<Message>>,
    input: Vec<Arc<Message>>,
    mut aside: BoxFuture<'static, ()>,
) -> RunOutcome {
    // Declared before the work, so that a drop drops the work first and children end before their
    // parent.
    let own_input = input.clone();
    let bracket = Bracket::open(&cx, agent.name(), input);
    let work = async {
        let mut work = Work::new(&agent, &cx, history, own_input);
        let steps = async {
            match cx.purpose() {
                Some(CallPurpose::Compaction) => work.compact().await,
                _ => work.run().await,
            }
        };
        let out_of_grace = async {
            let aside = async {
                aside.as_mut().await;
                pending::<Infallible>().await
            };
            tokio::select! {
                biased;
                () = agent.parts().out_of_grace(&cx) => {}
                never = aside => match never {},
            }
        };
        // Tools and middleware that are still running then are dropped, and closed by the bracket.
        unless(out_of_grace, steps).await.unwrap_or_else(|| Err(AgentError::cancelled(&cx)))
    };
    let result = AssertUnwindSafe(work).catch_unwind().await;
    let result = result.unwrap_or_else(|panic| Err(AgentError::Panicked(panic_message(&*panic))));
    let outcome = bracket.close(result);
    span::invoked(&outcome);
    outcome
}

struct Work<'a> {
    agent: &'a Agent,
    cx: &'a RunContext,
    history: Vec<Arc<Message>>,
    cache_key: Arc<str>,
    system: Option<Arc<str>>,
    calls: AtomicU32,
    progress: Progress,
    repetition: Repetition,
    compactor: Compactor<'a>,
}

impl<'a> Work<'a> {
    fn new(
        agent: &'a Agent,
        cx: &'a RunContext,
        history: Vec<Arc<Message>>,
        input: Vec<Arc<Message>>,
    ) -> Self {
        let (system, cache_key) = (system_prompt(agent, cx), cache_key(cx.session_id()));
        let (calls, repetition) = (AtomicU32::new(0), Repetition::new(agent.parts().repetition));
        let compactor = Compactor::new(agent.parts(), cx, &history, input);
        let progress = Progress::default();
        Self { agent, cx, history, cache_key, system, calls, progress, repetition, compactor }
    }

    async fn run(&mut self) -> Result<Outcome, AgentError> {
        let mut step = Step::Ask;
        loop {
            step = match step {
                Step::Ask => {
                    let answer = self.ask().await?;
                    after_answer(self.progress, &answer.message, &answer.stop)
                }
                Step::Act(calls) => {
                    self.progress.empty = 0;
                    batch::run(self.agent.parts(), self.cx, &calls).await;
                    if batch::is_denied(self.cx) {
                        self.cx.emit(EventKind::AllToolsDenied { denied_tool_calls: calls.clone() });
                    }
                    self.check_repetition(&calls)?;
                    self.go_on()?
                }
                Step::GoOn => self.go_on()?,
                Step::Remind => {
                    self.progress.empty += 1;
                    self.hint("empty_response", EMPTY);
                    self.go_on()?
                }
                Step::SumUp => {
                    let (max_iters, current_iter) = (self.agent.parts().max_iterations, self.progress.calls);
                    self.cx.emit(EventKind::ExceedMaxIters { max_iters, current_iter });
                    self.hint("max_iterations", SUM_UP);
                    self.progress.summed_up = true;
                    Step::Ask
                }
                Step::Finish(outcome) => return recorded(self.cx).map(|()| outcome),
                Step::Fail(error) => return Err(error),
            }
        }
    }

    /// Compacts the conversation, without an answer.
    async fn compact(&mut self) -> Result<Outcome, AgentError> {
        self.compactor.compact(&self.request(), Cause::Asked).await?;
        recorded(self.cx).map(|()| Outcome::Success)
    }

    /// Tells an agent that it repeats itself.
    ///
    /// # Errors
    /// It was told and has gone on with it.
    fn check_repetition(&mut self, calls: &[ToolCall]) -> Result<(), AgentError> {
        let tools = &self.agent.parts().tools;
        if calls.iter().any(|call| tools.get(&call.name).is_some_and(|tool| tool.is_polled())) {
            return Ok(());
        }
        let repetition = &mut self.repetition;
        let verdict = self.cx.with_transcript(|transcript| {
            let results = transcript.messages().last().filter(|message| message.role == Role::Tool);
            repetition.round(calls, results.into_iter().flat_map(|message| message.tool_results()))
        });
        match verdict {
            Verdict::GoOn => {}
            Verdict::Tell => self.hint("no_progress", NO_PROGRESS),
            Verdict::End(times) => return Err(AgentError::NoProgress { times }),
        }
        Ok(())
    }

    fn go_on(&self) -> Result<Step, AgentError> {
        if self.cx.is_cancelled() {
            return Err(AgentError::cancelled(self.cx));
        }
        recorded(self.cx)?;
        Ok(before_call(self.progress, self.agent.parts().max_iterations))
    }

    async fn ask(&mut self) -> Result<Answer, AgentError> {
        let agent = self.agent.parts();
        if agent.tools.sources().next().is_some() {
            unless(self.cx.cancelled(), agent.tools.ready()).await;
        }
        let (request, size) = self.fitting_request().await?;
        let answer = match self.next().run(self.cx, request).await {
            Err(error) if self.compactor.is_refused(&error) => self.ask_with_less(error).await?,
            answer => {
                let answer = answer?;
                self.compactor.calibrate(size, &answer);
                answer
            }
        };
        let answer = self.next().emit_answer(self.cx, answer).await?;
        self.progress.calls = self.calls.load(Ordering::Relaxed);
        Ok(answer)
    }

    /// Calls the model with less, after its service has refused the prompt as too long, or can't
    /// read data of it.
    async fn ask_with_less(&mut self, refusal: AgentError) -> Result<Answer, AgentError> {
        let (mut error, mut is_compacted) = (refusal, false);
        loop {
            let is_less = self.compactor.leave_out_data(&self.conversation(), &error)
                || self.compactor.remove_data(&self.request().messages, &error);
            if !is_less {
                // Once is enough, and it does not help if the data of the request can't be read.
                let may_help = !is_compacted && self.compactor.is_overflow(&error);
                if !may_help || !self.compactor.compact(&self.request(), Cause::Refused).await? {
                    return Err(error);
                }
                is_compacted = true;
            }
            match self.next().run(self.cx, self.request()).await {
                Err(again) if self.compactor.is_refused(&again) => error = again,
                answer => return answer,
            }
        }
    }

    fn conversation(&self) -> Vec<Arc<Message>> {
        self.cx.conversation(&self.history)
    }

    fn next(&self) -> NextModel<'_> {
        let agent = self.agent.parts();
        NextModel { agent, rest: &agent.middleware, calls: &self.calls }
    }

    /// Returns the next request and its size, after the conversation was compacted if it is too
    /// long.
    async fn fitting_request(&mut self) -> Result<(ModelRequest, Size), AgentError> {
        let (request, size) = self.measured_request();
        if self.compactor.is_due(&request, size) && self.compactor.compact(&request, Cause::Full).await? {
            return Ok(self.measured_request());
        }
        Ok((request, size))
    }

    fn measured_request(&mut self) -> (ModelRequest, Size) {
        let request = self.request();
        let size = self.compactor.size(&request);
        (request, size)
    }

    fn request(&self) -> ModelRequest {
        let agent = self.agent.parts();
        let last = self.progress.summed_up;
        let messages = self.compactor.readable(self.conversation());
        ModelRequest {
            agent: agent.id.clone(),
            agent_key: self.cx.key(),
            session: self.cx.root_session_id().as_str().into(),
            cache_key: Some(self.cache_key.clone()),
            system: self.system.clone(),
            messages,
            tools: if last { Arc::default() } else { agent.tools.specs() },
            tool_choice: ToolChoice::Auto,
            options: agent.options.clone(),
        }
    }

    fn hint(&self, source: &str, text: &str) {
        let block_id = BlockId::from_lossy(format!("{source}-{}", self.progress.calls));
        self.cx.emit(EventKind::HintBlock { block_id, hint_source: source.into(), hint: text.into() });
    }
}

/// Returns the agent's instructions with the sections of its middleware.
fn system_prompt(agent: &Agent, cx: &RunContext) -> Option<Arc<str>> {
    let parts = agent.parts();
    let sections: Vec<_> =
        parts.middleware.iter().filter_map(|middleware| middleware.system_prompt(cx)).collect();
    if sections.is_empty() {
        return parts.system_prompt.clone();
    }
    let own = parts.system_prompt.as_deref();
    Some(own.into_iter().chain(sections.iter().map(String::as_str)).collect::<Vec<_>>().join("\n\n").into())
}

/// Returns the cache key of a session, in which an agent has its one conversation. It is a hash,
/// because vendors get it and people name sessions; another release of Rust may have another hash,
/// so that one prompt of a resumed session is not in a cache.
fn cache_key(session: &SessionId) -> Arc<str> {
    let mut hasher = DefaultHasher::new();
    session.as_str().hash(&mut hasher);
    format!("mainstem-{:016x}", hasher.finish()).into()
}

const EMPTY: &str = "<system-reminder>\nYour last reply was empty. Write your answer as the content of the \
reply, not as thinking.\n</system-reminder>";

const NO_PROGRESS: &str = "<system-reminder>\nYou have made the same tool calls several times in a row, with the \
same results. They will not change. Try another way, or answer with what you have and say what is missing. If you go \
on like this, you are stopped.\n</system-reminder>";

const SUM_UP: &str = "<system-reminder>\nThis is your last reply: the limit of steps is reached and no tool can be \
called now. Reply now with what you have, and say what is still missing.\n</system-reminder>";

#[cfg(test)]
mod tests;
