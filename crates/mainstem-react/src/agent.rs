//! An agent: a model, instructions, tools, limits.

use std::{
    fmt,
    future::{Future, pending},
    sync::Arc,
    time::Duration,
};

use mainstem_event::{EventSink, Ids, LogOptions, Origin, RandomIds, SessionLog, SystemClock};
use mainstem_message::Message;
use mainstem_model::{Model, ModelOptions};
use mainstem_tool::{Tool, ToolSet, ToolSetError};
use tracing::Instrument;

use crate::{AnswerLimits, Middleware, RunContext, RunOutcome, RunStream, drive::drive, span};

/// What runs. Cheap to clone; one value serves many runs at once and keeps nothing of them.
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
}

impl Parts {
    /// Resolves once somebody has asked the invocation to stop and its grace is over.
    pub(crate) async fn out_of_grace(&self, cx: &RunContext) {
        cx.cancelled().await;
        tokio::time::sleep(self.grace).await;
    }
}

impl Agent {
    /// An agent of this id, thinking with this model.
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
            },
            tools: Vec::new(),
        }
    }

    /// Its id.
    pub fn id(&self) -> &Arc<str> {
        &self.0.id
    }

    /// The name to show: its own, else its id.
    pub fn name(&self) -> &Arc<str> {
        self.0.name.as_ref().unwrap_or(&self.0.id)
    }

    /// Its model.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.0.model
    }

    /// Its tools, those of its middleware included.
    pub fn tools(&self) -> &ToolSet {
        &self.0.tools
    }

    /// The same agent with a middleware inside all others; tools that it contributes are left out.
    #[must_use]
    pub fn with_innermost(&self, middleware: Arc<dyn Middleware>) -> Self {
        let mut parts = (*self.0).clone();
        parts.middleware.push(middleware);
        Self(Arc::new(parts))
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.0
    }

    /// Runs it in a session of its own, and hands out what happens, live. Nothing happens before
    /// the first poll.
    pub fn stream_events(&self, input: impl Into<Message>) -> RunStream {
        let ids = RandomIds;
        let session = mainstem_message::SessionId::new(ids.next("session-"));
        let log = SessionLog::with(session.clone(), Arc::new(SystemClock), LogOptions::default());
        let origin = Origin {
            session_id: session,
            run_id: Some(ids.next("run-").into()),
            reply_id: Some(ids.next("reply-").into()),
            source: None,
        };
        let cx = RunContext::root(self.id().clone(), EventSink::root(log, origin)).build();
        self.stream_in(cx, Vec::new(), vec![Arc::new(input.into())])
    }

    /// Runs it in a session of its own, and gives the end. The same path as
    /// [`stream_events`](Self::stream_events), read to its end.
    ///
    /// Dropping the future stops everything.
    pub async fn call(&self, input: impl Into<Message>) -> RunOutcome {
        self.stream_events(input).finish().await
    }

    /// Runs it as the root of a session: `history` was said before, `input` is new.
    pub fn stream_in(
        &self,
        cx: RunContext,
        history: Vec<Arc<Message>>,
        input: Vec<Arc<Message>>,
    ) -> RunStream {
        let log = cx.sink().log().clone();
        RunStream::new(self.run(cx, history, input), log.attach())
    }

    /// Runs it inside whatever polls the future: a child inside its parent's tool. Its events go to
    /// the context's sink.
    ///
    /// Never fails and never panics: how it ended is in the outcome, and in its `AGENT_END`.
    /// Dropping the future stops the agent and all below it; what was open is closed in the log as
    /// cancelled.
    pub fn run(
        &self,
        cx: RunContext,
        history: Vec<Arc<Message>>,
        input: Vec<Arc<Message>>,
    ) -> impl Future<Output = RunOutcome> + Send + 'static {
        self.run_beside(cx, history, input, pending())
    }

    /// The same, with something else that goes on beside it: asked only when it was woken, and
    /// dropped once the invocation has ended. Its own end changes nothing.
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
    /// The name to show, if it is not the id.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.parts.name = Some(name.into());
        self
    }

    /// The instructions.
    pub fn system_prompt(mut self, prompt: impl Into<Arc<str>>) -> Self {
        self.parts.system_prompt = Some(prompt.into());
        self
    }

    /// Adds a tool.
    pub fn tool(self, tool: impl Tool) -> Self {
        self.shared_tool(Arc::new(tool))
    }

    /// Adds a tool that others have too.
    pub fn shared_tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Puts all of a set before the tools added one by one; replaces an earlier set.
    pub fn tools(mut self, tools: ToolSet) -> Self {
        self.parts.tools = tools;
        self
    }

    /// Adds a middleware; the first is the outermost.
    pub fn middleware(self, middleware: impl Middleware) -> Self {
        self.shared_middleware(Arc::new(middleware))
    }

    /// Adds a middleware that others have too.
    pub fn shared_middleware(mut self, middleware: Arc<dyn Middleware>) -> Self {
        self.parts.middleware.push(middleware);
        self
    }

    /// Most model calls of a run; then one last call without tools sums up. 10 by default, 1 at
    /// least.
    pub fn max_iterations(mut self, most: u32) -> Self {
        self.parts.max_iterations = most.max(1);
        self
    }

    /// How the model shall answer.
    pub fn options(mut self, options: ModelOptions) -> Self {
        self.parts.options = Arc::new(options);
        self
    }

    /// How long tools and middleware may go on after a cancel before they are dropped. 2 s by
    /// default.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.parts.grace = grace;
        self
    }

    /// How much the model can say before it is stopped.
    pub fn answer_limits(mut self, limits: AnswerLimits) -> Self {
        self.parts.answer_limits = limits;
        self
    }

    /// The agent.
    ///
    /// # Errors
    /// Two tools of one name, or a tool whose schema is none.
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
