//! An agent: a model, instructions, tools, limits.

use std::{
    fmt,
    future::{Future, pending},
    sync::Arc,
    time::Duration,
};

use mainstem_event::{EventSink, Ids, LogOptions, Origin, RandomIds, SessionLog, SystemClock};
use mainstem_message::{Message, ReplyId, RunId, SessionId};
use mainstem_model::{Model, ModelOptions};
use mainstem_tool::{Tool, ToolSet, ToolSetError};
use tracing::Instrument;

use crate::{
    AnswerLimits, Compaction, Middleware, RepetitionLimits, RunContext, RunOutcome, RunStream, drive::drive,
    span,
};

/// An agent. Cheap to clone; one value serves many concurrent runs, and holds no state of them.
///
/// ```
/// use mainstem_react::prelude::*;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mainstem_react::tool::ToolSetError> {
/// let model = ScriptedModel::new().agent("main", [Turn::new().text("Hello.")]);
/// let agent = Agent::builder("main", model).with_system_prompt("Be brief.").build()?;
///
/// // To its end …
/// let outcome = agent.call("Hi").await;
/// assert_eq!(outcome.answer.map(|answer| answer.text()), Some("Hello.".to_owned()));
/// // … or as a stream of events.
/// assert_eq!(agent.stream_events("Hi").text().collect::<String>().await, "Hello.");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Agent(Arc<Parts>);

#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) id: Arc<str>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) system_prompt: Option<Arc<str>>,
    pub(crate) tools: ToolSet,
    pub(crate) middleware: Vec<Arc<dyn Middleware>>,
    pub(crate) max_iterations: u32,
    pub(crate) options: Arc<ModelOptions>,
    pub(crate) grace: Duration,
    pub(crate) answer_limits: AnswerLimits,
    pub(crate) repetition: RepetitionLimits,
    pub(crate) compaction: Compaction,
}

impl Parts {
    /// Resolves once the invocation is cancelled and its grace is over.
    pub(crate) async fn out_of_grace(&self, cx: &RunContext) {
        cx.cancelled().await;
        tokio::time::sleep(self.grace).await;
    }
}

impl Agent {
    /// Creates a builder of an agent with this id and model.
    pub fn builder(id: impl Into<Arc<str>>, model: impl Model) -> AgentBuilder {
        AgentBuilder {
            parts: Parts {
                id: id.into(),
                name: None,
                model: Arc::new(model),
                system_prompt: None,
                tools: ToolSet::new(),
                middleware: Vec::new(),
                max_iterations: 10,
                options: Arc::default(),
                grace: Duration::from_secs(2),
                answer_limits: AnswerLimits::default(),
                repetition: RepetitionLimits::default(),
                compaction: Compaction::default(),
            },
            tools: Vec::new(),
        }
    }

    /// Returns its id.
    pub fn id(&self) -> &Arc<str> {
        &self.0.id
    }

    /// Returns the display name: its own, or else its id.
    pub fn name(&self) -> &Arc<str> {
        self.0.name.as_ref().unwrap_or(&self.0.id)
    }

    /// Returns its model.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.0.model
    }

    /// Returns its tools, those of its middleware included.
    pub fn tools(&self) -> &ToolSet {
        &self.0.tools
    }

    /// Returns the agent with one more middleware inside all others; the tools of that middleware
    /// are left out.
    #[must_use]
    pub fn with_innermost(&self, middleware: Arc<dyn Middleware>) -> Self {
        let mut parts = (*self.0).clone();
        parts.middleware.push(middleware);
        Self(Arc::new(parts))
    }

    /// Returns the agent with middleware around all of its own; the tools of that middleware are
    /// left out.
    #[must_use]
    pub fn with_outermost(&self, middleware: &[Arc<dyn Middleware>]) -> Self {
        let mut parts = (*self.0).clone();
        parts.middleware.splice(..0, middleware.iter().cloned());
        Self(Arc::new(parts))
    }

    /// Returns the agent with further tools, which its models see after its own.
    ///
    /// # Errors
    /// If the agent has, or may have, a tool of the same name.
    pub fn with_tools(&self, tools: &ToolSet) -> Result<Self, ToolSetError> {
        let mut parts = (*self.0).clone();
        for name in tools.names() {
            if parts.tools.may_have(&name) {
                return Err(ToolSetError::Duplicate(name));
            }
            if let Some(tool) = tools.get(&name) {
                parts.tools.insert(tool)?;
            }
        }
        Ok(Self(Arc::new(parts)))
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.0
    }

    /// Runs it in a session of its own, and returns the live events. The run starts with the first
    /// poll.
    pub fn stream_events(&self, input: impl Into<Message>) -> RunStream {
        let ids = RandomIds;
        let session = SessionId::from_lossy(ids.next("session-"));
        let log = SessionLog::with(session.clone(), Arc::new(SystemClock), LogOptions::default());
        let (run, reply) = (RunId::from_lossy(ids.next("run-")), ReplyId::from_lossy(ids.next("reply-")));
        let origin = Origin::root(session, run, reply, self.id());
        let cx = RunContext::root(self.id().clone(), EventSink::root(log, origin)).build();
        self.stream_in(cx, Vec::new(), vec![Arc::new(input.into())])
    }

    /// Runs it in a session of its own, as [`stream_events`](Self::stream_events) does, and returns
    /// the outcome.
    ///
    /// Dropping the future stops everything.
    pub async fn call(&self, input: impl Into<Message>) -> RunOutcome {
        self.stream_events(input).finish().await
    }

    /// Runs it as the root of a session; `history` is the conversation before `input`.
    pub fn stream_in(
        &self,
        cx: RunContext,
        history: Vec<Arc<Message>>,
        input: Vec<Arc<Message>>,
    ) -> RunStream {
        let log = cx.sink().log().clone();
        RunStream::new(self.run(cx, history, input), log.attach())
    }

    /// Runs it within the polled future: a child within its parent's tool. Its events go to the
    /// context's sink.
    ///
    /// Never fails and never panics: the result is in the outcome and in its `AGENT_END`. Dropping
    /// the future stops the agent and all agents below it; open blocks and calls are closed in the
    /// log as cancelled.
    pub fn run(
        &self,
        cx: RunContext,
        history: Vec<Arc<Message>>,
        input: Vec<Arc<Message>>,
    ) -> impl Future<Output = RunOutcome> + Send + 'static {
        self.run_beside(cx, history, input, pending())
    }

    /// Runs it as [`run`](Self::run) does, with a future beside it, which is polled when it is
    /// woken and dropped once the invocation has ended. The end of that future changes nothing.
    pub fn run_beside(
        &self,
        cx: RunContext,
        history: Vec<Arc<Message>>,
        input: Vec<Arc<Message>>,
        aside: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = RunOutcome> + Send + 'static {
        let span = span::invoke_agent(self, &cx);
        drive(self.clone(), cx, history, input, Box::pin(aside)).instrument(span)
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("id", &self.0.id).field("tools", &self.0.tools).finish_non_exhaustive()
    }
}

/// Builds an [`Agent`].
#[must_use]
pub struct AgentBuilder {
    parts: Parts,
    tools: Vec<Arc<dyn Tool>>,
}

impl AgentBuilder {
    /// Sets the display name; the id by default.
    pub fn with_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.parts.name = Some(name.into());
        self
    }

    /// Sets the instructions.
    pub fn with_system_prompt(mut self, prompt: impl Into<Arc<str>>) -> Self {
        self.parts.system_prompt = Some(prompt.into());
        self
    }

    /// Adds a tool.
    pub fn with_tool(self, tool: impl Tool) -> Self {
        self.with_shared_tool(Arc::new(tool))
    }

    /// Adds a shared tool.
    pub fn with_shared_tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Inserts the tools of a set before those added one by one; replaces an earlier set.
    pub fn with_tools(mut self, tools: ToolSet) -> Self {
        self.parts.tools = tools;
        self
    }

    /// Adds a middleware; the first is the outermost.
    pub fn with_middleware(self, middleware: impl Middleware) -> Self {
        self.with_shared_middleware(Arc::new(middleware))
    }

    /// Adds a shared middleware.
    pub fn with_shared_middleware(mut self, middleware: Arc<dyn Middleware>) -> Self {
        self.parts.middleware.push(middleware);
        self
    }

    /// Sets the maximum number of model calls of a run, after which one last call without tools
    /// sums up. 10 by default, at least 1.
    pub fn with_max_iterations(mut self, most: u32) -> Self {
        self.parts.max_iterations = most.max(1);
        self
    }

    /// Sets the options of its model calls.
    pub fn with_options(mut self, options: ModelOptions) -> Self {
        self.parts.options = Arc::new(options);
        self
    }

    /// Sets how long tools and middleware may continue after a cancel before they are dropped. 2 s
    /// by default.
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.parts.grace = grace;
        self
    }

    /// Sets the limits of its answers.
    pub fn with_answer_limits(mut self, limits: AnswerLimits) -> Self {
        self.parts.answer_limits = limits;
        self
    }

    /// Sets how often it may repeat itself.
    pub fn with_repetition_limits(mut self, limits: RepetitionLimits) -> Self {
        self.parts.repetition = limits;
        self
    }

    /// Sets when and how its conversations are compacted.
    pub fn with_compaction(mut self, compaction: Compaction) -> Self {
        self.parts.compaction = compaction;
        self
    }

    /// Builds the agent.
    ///
    /// # Errors
    /// If two tools have one name, or a tool's schema is not valid.
    pub fn build(mut self) -> Result<Agent, ToolSetError> {
        let contributed = self.parts.middleware.iter().flat_map(|middleware| middleware.tools());
        for tool in self.tools.into_iter().chain(contributed) {
            self.parts.tools.insert(tool)?;
        }
        Ok(Agent(Arc::new(self.parts)))
    }
}

impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder").field("id", &self.parts.id).finish_non_exhaustive()
    }
}
