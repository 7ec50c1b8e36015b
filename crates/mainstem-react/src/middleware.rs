//! Code around each model call and each tool call.

use std::{
    fmt,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use async_trait::async_trait;
use futures_util::{FutureExt, future::BoxFuture};
use mainstem_event::EventKind;
use mainstem_message::{StopReason, ToolCallId};
use mainstem_model::{Model, ModelRequest, ModelStream};
use mainstem_tool::{Tool, ToolError, ToolOutput};
use serde_json::Value;

use crate::{
    AgentError, Answer, Passing, RunContext,
    agent::Parts,
    ask::{Call, ask},
    error::panic_message,
};

/// Code around the calls of the loop. The first registered is the outermost.
///
/// Events do not pass through it; it emits its own through [`RunContext::emit`].
///
/// Written with `async_trait`, its two methods are `async fn(&self, &RunContext, ModelRequest,
/// NextModel<'_>)` and the same for tools; their signatures are spelled out here so that a method
/// that is not overridden adds no future between the loop and the model.
///
/// ```
/// use mainstem_react::{NextTool, PendingCall, prelude::*};
///
/// /// Refuses to delete.
/// struct Careful;
///
/// #[async_trait]
/// impl Middleware for Careful {
///     async fn on_tool_call(
///         &self,
///         cx: &RunContext,
///         call: PendingCall,
///         next: NextTool<'_>,
///     ) -> Result<ToolOutput, ToolError> {
///         match &*call.name {
///             "delete" => Err(ToolError::new("nothing is deleted here")),
///             _ => next.run(cx, call).await,
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait Middleware: Send + Sync + 'static {
    /// Returns the tools that it contributes. Called once, when the agent is built.
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// Returns a section that it adds to the instructions. Called once an invocation.
    fn system_prompt(&self, _cx: &RunContext) -> Option<String> {
        None
    }

    /// Wraps a model call: may change the request, call more than once (one call after the other),
    /// or answer itself.
    ///
    /// Calls that summarize a conversation pass through it, too: see [`RunContext::purpose`]. Their
    /// answers stay out of the conversation.
    ///
    /// An answer other than the model's last one is emitted as one more model call, of a model
    /// named `middleware`, and enters the conversation. Tool calls of an answer that is replaced
    /// are not run. On a cancel it has the agent's grace, as a tool has; a panic ends the
    /// invocation.
    ///
    /// # Errors
    /// An error ends the invocation.
    fn on_model_call<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        cx: &'life1 RunContext,
        request: ModelRequest,
        next: NextModel<'life2>,
    ) -> BoxFuture<'async_trait, Result<Answer, AgentError>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        next.run(cx, request)
    }

    /// Returns a section on what the agent has at present, such as running tasks, which it could
    /// learn only from messages that compaction removes. Called when a conversation is summarized.
    async fn state(&self, _cx: &RunContext) -> Option<String> {
        None
    }

    /// Wraps a tool call whose arguments are JSON: may change them, wait, run the tool again, or
    /// answer itself.
    ///
    /// `TOOL_RESULT_START` is emitted when the tool first runs, with the arguments that it gets
    /// then. A panic ends the invocation.
    ///
    /// # Errors
    /// An error goes to the model.
    fn on_tool_call<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        cx: &'life1 RunContext,
        call: PendingCall,
        next: NextTool<'life2>,
    ) -> BoxFuture<'async_trait, Result<ToolOutput, ToolError>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        next.run(cx, call)
    }
}

#[deny(clippy::missing_trait_methods, reason = "a default would hide the middleware's own")]
#[async_trait]
impl<M: Middleware + ?Sized> Middleware for Arc<M> {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        (**self).tools()
    }

    fn system_prompt(&self, cx: &RunContext) -> Option<String> {
        (**self).system_prompt(cx)
    }

    async fn state(&self, cx: &RunContext) -> Option<String> {
        (**self).state(cx).await
    }

    fn on_model_call<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        cx: &'life1 RunContext,
        request: ModelRequest,
        next: NextModel<'life2>,
    ) -> BoxFuture<'async_trait, Result<Answer, AgentError>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        (**self).on_model_call(cx, request, next)
    }

    fn on_tool_call<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        cx: &'life1 RunContext,
        call: PendingCall,
        next: NextTool<'life2>,
    ) -> BoxFuture<'async_trait, Result<ToolOutput, ToolError>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        (**self).on_tool_call(cx, call, next)
    }
}

/// A tool call that is about to run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PendingCall {
    /// The call.
    pub id: ToolCallId,
    /// The tool's name.
    pub name: Arc<str>,
    /// Its arguments.
    pub arguments: Value,
}

/// The rest of the stack around a model call.
#[derive(Clone, Copy)]
pub struct NextModel<'a> {
    pub(crate) agent: &'a Parts,
    pub(crate) rest: &'a [Arc<dyn Middleware>],
    pub(crate) calls: &'a AtomicU32,
}

impl<'a> NextModel<'a> {
    /// Returns the name of the agent's model.
    pub fn model_name(&self) -> &str {
        self.agent.model.name()
    }

    /// Returns `true` if the model's vendor enforces the output schema: see
    /// [`Model::can_enforce_schema`](mainstem_model::Model::can_enforce_schema).
    pub fn can_enforce_schema(&self, request: &ModelRequest) -> bool {
        self.agent.model.can_enforce_schema(request)
    }

    /// Continues with the request.
    ///
    /// # Errors
    /// Errors of the rest of the stack, or of the model.
    pub fn run<'b>(
        self,
        cx: &'b RunContext,
        request: ModelRequest,
    ) -> BoxFuture<'b, Result<Answer, AgentError>>
    where
        'a: 'b,
    {
        if let Some((first, rest)) = self.rest.split_first() {
            return first.on_model_call(cx, request, Self { rest, ..self });
        }
        Box::pin(async move {
            let model = &self.agent.model;
            let request = cx.with_loaded_data(request).await.map_err(AgentError::Refused)?;
            self.ask(cx, Some(&**model), model.stream(request)).await
        })
    }

    async fn ask(
        self,
        cx: &RunContext,
        model: Option<&dyn Model>,
        stream: ModelStream,
    ) -> Result<Answer, AgentError> {
        // A middleware may have dropped a call half way, or replaced an answer that calls tools.
        cx.close(&StopReason::Cancelled);
        let window = model.and_then(|model| self.agent.compaction.window(model));
        let iteration = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let limits = self.agent.answer_limits;
        ask(cx, model, Call { iteration, limits, window }, stream).await
    }

    /// Emits an answer of a middleware.
    pub(crate) async fn emit_answer(self, cx: &RunContext, answer: Answer) -> Result<Answer, AgentError> {
        if answer.is_emitted(cx) {
            return Ok(answer);
        }
        Box::pin(self.ask(cx, None, answer.replay())).await
    }
}

/// The rest of the stack around a tool call.
#[derive(Clone, Copy)]
pub struct NextTool<'a> {
    pub(crate) agent: &'a Parts,
    pub(crate) rest: &'a [Arc<dyn Middleware>],
}

impl<'a> NextTool<'a> {
    /// Continues with the call.
    ///
    /// # Errors
    /// Errors of the rest of the stack, or of the tool; a panic of the tool is an error, too.
    pub fn run<'b>(
        self,
        cx: &'b RunContext,
        call: PendingCall,
    ) -> BoxFuture<'b, Result<ToolOutput, ToolError>>
    where
        'a: 'b,
    {
        match self.rest.split_first() {
            Some((first, rest)) => first.on_tool_call(cx, call, Self { rest, ..self }),
            None => Box::pin(self.execute(cx, call)),
        }
    }

    async fn execute(self, cx: &RunContext, mut call: PendingCall) -> Result<ToolOutput, ToolError> {
        if cx.is_cancelled() {
            return Err(ToolError::new("interrupted before it began"));
        }
        let mut tool;
        (tool, call.arguments) = self.agent.tools.resolve(&call.name, call.arguments)?;
        match pass(cx, &*tool, &call).await {
            Ok(None) => {}
            Ok(Some(arguments)) => {
                (tool, call.arguments) = self.agent.tools.resolve(&call.name, arguments)?;
            }
            Err(refusal) => return Ok(refusal),
        }
        if !cx.with_transcript(|transcript| transcript.has_started(&call.id)) {
            cx.emit(EventKind::tool_result_start(call.id.clone(), call.name.clone(), call.arguments.clone()));
        }
        let cx = cx.tool_context(&call.id);
        let running = async { tool.call(&cx, call.arguments).await };
        AssertUnwindSafe(running).catch_unwind().await.unwrap_or_else(|panic| {
            Err(ToolError::new(format!("tool {} panicked: {}", call.name, panic_message(&*panic))))
        })
    }
}

/// Passes the run's gate, if it has one.
async fn pass(cx: &RunContext, tool: &dyn Tool, call: &PendingCall) -> Result<Option<Value>, ToolOutput> {
    let Some(gate) = cx.gate() else { return Ok(None) };
    let PendingCall { id, name, arguments } = call;
    gate.pass(cx, Passing { id, name, arguments, is_read_only: tool.is_read_only() }).await
}

impl fmt::Debug for NextModel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NextModel({} more)", self.rest.len())
    }
}

impl fmt::Debug for NextTool<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NextTool({} more)", self.rest.len())
    }
}
